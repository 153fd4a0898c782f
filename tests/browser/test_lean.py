"""A large model on the page: what was not sent at first comes when it is needed, and pointing is free."""

import numpy as np
import pytest
from PIL import Image
from support.page import EXPLORER, after_new_result, state, upload

from vit_demo.ui import payload

MAP = f"([changes, query]) => {EXPLORER}.explorer.maps.mapOf({{ ...{EXPLORER}.explorer.state, ...changes }}, query)"


@pytest.fixture
def lean(arrive, monkeypatch, tmp_path):
    """Even the small model is sent as large ones are: of a picture that nobody has seen before."""

    def lean(query: str):
        page = arrive(query)
        monkeypatch.setattr(payload, "FULL_LIMIT", 0)
        pixels = np.random.default_rng().integers(0, 256, (12, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((120, 120)).save(tmp_path / "new.png")
        after_new_result(page, lambda: upload(page, tmp_path / "new.png"))
        assert page.evaluate(f"{EXPLORER}.explorer.data.full") is False
        return page

    return lean


def point(page, row: int, col: int) -> tuple[float, float]:
    """The middle of one of the 12 x 12 patches."""
    picture = page.locator("#explorer .vx-picture")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    return (
        box["x"] + (col + 0.5) * box["width"] / 12,
        box["y"] + (row + 0.5) * box["height"] / 12,
    )


def until_here(page, wanted: str) -> None:
    page.wait_for_function(f"{EXPLORER}.explorer.maps.remembers({wanted})")


def assert_drawn(page, query, expected) -> None:
    found = page.evaluate(f"Array.from(({MAP})([{{}}, {list(query) if query else 'null'}]))")
    np.testing.assert_allclose(found, expected, atol=0.01 * float(expected.max()))


def test_pointing_needs_no_request_once_the_layer_is_here(lean, site):
    page = lean("?map=head_rollout&layer=3&head=1&part=whole")
    until_here(page, "{ layer: 3 }")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    e = site.explanation(page)
    for query in ((0, 0), (5, 7), (11, 11)):
        page.mouse.move(*point(page, *query))
        assert_drawn(page, query, e.head_rollouts(3, query=query, tokens=True)[1])
    page.wait_for_timeout(400)  # longer than anything waits before it asks
    assert asked == []
    page.locator("#explorer input[id$=layer]").fill("4")
    until_here(page, "{ layer: 4 }")
    assert asked
    assert_drawn(page, (5, 7), e.head_rollouts(4, query=(5, 7), tokens=True)[1])


def test_a_chosen_patch_fills_the_wall(lean, site):
    page = lean("?map=attention&layer=2&head=0")
    page.wait_for_selector("#explorer [data-wall]", state="attached")
    walls = int(page.locator("#explorer [data-wall]").get_attribute("data-wall"))
    page.mouse.click(*point(page, 4, 4))
    until_here(page, "{ query: [4, 4] }")
    page.wait_for_function(f"+{EXPLORER}.dataset.wall > {walls}")
    assert state(page)["query"] == [4, 4]
    assert_drawn(page, (4, 4), site.explanation(page).attention(2, 0, (4, 4), tokens=True))


@pytest.mark.parametrize("fusion", ["max", "min"])
def test_the_strongest_and_the_weakest_heads_come_when_they_are_chosen(lean, site, fusion):
    page = lean("?map=rollout")
    assert not page.evaluate(f"{EXPLORER}.explorer.maps.remembers({{ fusion: '{fusion}' }})")
    page.select_option("#explorer select[id$=head]", fusion)
    until_here(page, f"{{ fusion: '{fusion}' }}")
    layer = state(page)["layer"]
    assert_drawn(page, None, site.explanation(page).rollout(layer, fusion=fusion, tokens=True))
