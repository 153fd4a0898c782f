"""The answer without heads, layers and patches, in Chromium, against the library."""

import numpy as np
import pytest
from support.page import ask_why, come_to_the_methods, label_indices, until_done

from vit_demo import knockout


def after(page) -> dict[int, float]:
    rows = page.locator("#why .why-changes li").all()
    return {int(r.get_attribute("data-index")): float(r.get_attribute("data-after")) for r in rows}


def now_without(page, e, **off) -> None:
    """The list on the page is the library's answer."""
    expected = {c.index: c.after for c in knockout.without(e, **off).after}
    first, share = next(iter(expected.items()))
    page.wait_for_function(
        "([index, share]) => { const row = document.querySelector('#why .why-changes li');"
        " return +row.dataset.index === index && Math.abs(row.dataset.after - share) < 1e-4; }",
        arg=[first, share],
    )
    found = after(page)
    assert list(found) == list(expected)
    assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-4)


def test_knock_outs_give_the_librarys_answer(arrive, site):
    page = arrive()
    e = site.explanation(page)
    come_to_the_methods(page)
    rows, cols = e.grid
    now_without(page, e)
    page.click("#why [data-at='1,0']")
    now_without(page, e, heads=[(1, 0)])
    assert page.locator("#why [data-at='1,0']").get_attribute("aria-pressed") == "true"
    page.click("#why [data-at='0,-1']")  # a whole layer
    now_without(page, e, heads=[(1, 0)], layers=[0])
    canvas = page.locator("#why .why-paint")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()

    def point(row: int, col: int) -> tuple[float, float]:
        return (
            box["x"] + (col + 0.5) * box["width"] / cols,
            box["y"] + (row + 0.5) * box["height"] / rows,
        )

    page.mouse.move(*point(1, 1))
    page.mouse.down()
    page.mouse.move(*point(1, 3), steps=12)
    page.mouse.up()
    painted = [(1, 1), (1, 2), (1, 3)]
    now_without(page, e, heads=[(1, 0)], layers=[0], patches=painted)
    page.check("#why input[name=why-fill][value=blur]", force=True)
    now_without(page, e, heads=[(1, 0)], layers=[0], patches=painted, fill="blur")
    canvas.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):  # appears in the middle, walks, paints
        page.keyboard.press(key)
    painted.append((rows // 2, cols // 2 + 1))
    now_without(page, e, heads=[(1, 0)], layers=[0], patches=painted, fill="blur")
    page.click("#why button:has-text('Restore all')")
    now_without(page, e)
    assert page.locator("#why .why-cell[aria-pressed=true]").count() == 0


def test_wall_of_knock_outs(arrive, site):
    page = arrive()
    e, (_, second, *_) = site.explanation(page), label_indices(page)
    ask_why(page, 2)
    come_to_the_methods(page)
    page.click("#why button:has-text('Which head matters')")
    until_done(page, "wall")
    expected = knockout.knockout_wall(e, second).numpy()
    for layer, head in np.ndindex(*expected.shape):
        cell = page.locator(f"#why [data-at='{layer},{head}']")
        change = float(expected[layer, head])
        assert float(cell.get_attribute("data-change")) == pytest.approx(change, abs=1e-5)
    layer, head = np.unravel_index(np.abs(expected).argmax(), expected.shape)
    cell = page.locator(f"#why [data-at='{layer},{head}']")
    cell.hover()
    page.wait_for_selector(
        f"#why .why-head:has-text('Layer {layer + 1}, head {head + 1}: without')"
    )
    cell.click()
    now_without(page, e, heads=[(int(layer), int(head))])
    cell.focus()  # one stop of the Tab key, arrows inside
    page.keyboard.press("ArrowRight" if head == 0 else "ArrowLeft")
    neighbour = f"{layer},{head + 1 if head == 0 else head - 1}"
    assert page.evaluate("document.activeElement.dataset.at") == neighbour
    assert page.locator("#why .why-heads [tabindex='0']").count() == 1
