"""Why this label? The maps of a class in Chromium, against the library."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image
from support.page import (
    EXPLORER,
    WIDE,
    ask_why,
    assert_map,
    come_to_the_methods,
    label_indices,
    next_frames,
    state,
    until_state,
)


def questions(page) -> list[str]:
    """From now on: what the page asks the server besides its files."""
    asked = []
    page.on("request", lambda r: asked.append(r.url) if "component_server" in r.url else None)
    return asked


@pytest.mark.quick
def test_a_label_shows_its_map_and_goes_back(arrive, site):
    page = arrive()
    e, (first, second, *_) = site.explanation(page), label_indices(page)
    asked = questions(page)
    ask_why(page, 2)
    until_state(page, f"s.map === 'contribution' && s.label === {second}")
    assert_map(page, e.contribution(second))
    row = page.locator("ol.answer li:nth-child(2) .ask")
    assert row.get_attribute("aria-pressed") == "true"
    assert e.labels[second].split(",")[0] in page.locator("#explorer .vx-say").inner_text()
    assert page.locator("#explorer input[id$=layer]").is_disabled()
    for method in ("relevance", "gradient_rollout", "grad_cam"):
        page.select_option("#explorer select[id$=method]", method)
        assert_map(page, getattr(e, method)(second))
    ask_why(page, 1)
    until_state(page, f"s.map === 'grad_cam' && s.label === {first}")
    assert_map(page, e.grad_cam(first))
    before = len(asked)
    ask_why(page, 2)  # its maps are remembered
    until_state(page, f"s.label === {second}")
    assert_map(page, e.grad_cam(second))
    maps = [url for url in asked[before:] if "why" not in url]
    assert len(asked) >= 2 and len(maps) <= 1  # at most the strip of methods asks something new
    ask_why(page, 2)  # the same row once more: back to the maps of all classes
    until_state(page, "s.map === 'rollout' && s.label === null")
    assert row.get_attribute("aria-pressed") == "false"


def test_two_labels_and_their_difference(arrive, site):
    page = arrive()
    e, (first, second, third, *_) = site.explanation(page), label_indices(page)
    ask_why(page, 3, "less")  # without another choice: from the predicted label
    until_state(page, f"s.label === {first} && s.minus === {third}")
    assert_map(page, e.contribution(first, minus=third), atol=1e-5)  # the page subtracts
    ask_why(page, 2)
    until_state(page, f"s.label === {second} && s.minus === {third}")
    expected = e.contribution(second, minus=third).numpy()
    assert_map(page, expected, atol=1e-5)
    names = [e.labels[label].split(",")[0] for label in (second, third)]
    page.wait_for_selector(f"#explorer .vx-say:has-text('Red: speaks for {names[0]} rather than')")
    low, high = (
        float(page.locator(f"#explorer .vx-legend >> nth=0 >> span >> nth={k}").inner_text()
              .replace("\u2212", "-")) for k in (0, 1)
    )  # fmt: skip
    assert low == -high == pytest.approx(-np.abs(expected).max(), rel=0.01)  # zero in the middle
    page.evaluate(f"{EXPLORER}.explorer.set({{ opacity: 1 }})")
    page.wait_for_function(f"JSON.parse({EXPLORER}.dataset.state).opacity === 1")
    next_frames(page)
    strongest = np.unravel_index(np.abs(expected).argmax(), expected.shape)
    red, _, blue = colour_at(page, strongest, expected.shape)
    assert (red > 90 and blue < 60) if expected[strongest] > 0 else (blue > 90 and red < 60)
    ask_why(page, 3, "less")  # once more: no difference any more
    until_state(page, "s.minus === null")


def colour_at(page, patch, grid) -> tuple[int, int, int]:
    data = page.evaluate("document.querySelector('#explorer .vx-picture').toDataURL()")
    picture = Image.open(io.BytesIO(base64.b64decode(data.split(",")[1]))).convert("RGB")
    x, y = ((k + 0.5) * side / n for k, side, n in zip(patch[::-1], picture.size, grid[::-1]))
    return picture.getpixel((int(x), int(y)))


def test_search_finds_any_label(arrive, site):
    page = arrive("?model=many")
    e, top = site.explanation(page), label_indices(page)
    label = next(index for index in range(10, 40) if index not in top)
    field = page.locator("#answer [role=combobox]")
    field.click()
    field.press_sequentially(f"label {label}")
    page.wait_for_selector("#found [role=option]")
    assert field.get_attribute("aria-expanded") == "true"
    assert field.get_attribute("aria-activedescendant") == "found-0"
    page.keyboard.press("Enter")
    until_state(page, f"s.label === {label}")
    assert_map(page, e.contribution(label))
    row = page.locator(f"ol.also li[data-index='{label}']")
    page.wait_for_function("document.querySelector('ol.also .percent').textContent !== ''")
    share = 100 * float(e.logits.softmax(dim=-1)[label])
    assert row.locator(".percent").inner_text().startswith(f"{share:.1f}")
    ask_why(page, 1)  # the searched label stays, and can be subtracted
    until_state(page, f"s.label === {top[0]}")
    row.locator(".less").click()
    until_state(page, f"s.minus === {label}")
    field.click()
    field.fill("no such thing")
    page.wait_for_selector("#answer .search p:has-text('No label')")


def test_by_keyboard_alone(arrive):
    page = arrive()
    page.locator("ol.answer li:nth-child(2) .ask").focus()
    page.keyboard.press("Enter")
    until_state(page, "s.label !== null")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # past the row's own minus, which is off, to the next row's
    assert page.evaluate("document.activeElement.className") in ("less", "ask")
    page.locator("ol.answer li:nth-child(3) .less").focus()
    page.keyboard.press("Space")
    until_state(page, "s.minus !== null")
    page.locator("#explorer .vx-back").focus()
    page.keyboard.press("Enter")
    until_state(page, "s.map === 'rollout'")


def test_link_and_files_of_a_class_map(arrive, site, visit, tmp_path):
    page = arrive("?example=koala")
    e, (_, second, third, *_) = site.explanation(page), label_indices(page)
    page = arrive(f"?map=grad_cam&label={second}&minus={third}&example=koala")
    found = state(page)
    assert (found["map"], found["label"], found["minus"]) == ("grad_cam", second, third)
    expected = (e.grad_cam(second) - e.grad_cam(third)).numpy()
    assert_map(page, expected)
    page.click("#link button")
    page.wait_for_function("document.querySelector('#link button').dataset.address")
    address = page.evaluate("document.querySelector('#link button').dataset.address")
    assert "map=grad_cam&" in address and f"label={second}&minus={third}" in address
    for kind in ("gif", "webp"):
        assert page.locator(f"#take [data-kind={kind}]").is_disabled()
    paths = {}
    for kind in ("json", "npz", "html"):
        with page.expect_download() as waiting:
            page.click(f"#take [data-kind={kind}]")
        paths[kind] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(paths[kind])
    settings = json.loads(paths["json"].read_text(encoding="utf-8"))["settings"]
    assert (settings["map"], settings["label"], settings["minus"]) == ("grad_cam", second, third)
    with np.load(paths["npz"]) as maps:
        np.testing.assert_allclose(maps["map"], expected, atol=1e-6)
    alone = visit(paths["html"].as_uri(), viewport=WIDE)
    alone.wait_for_selector(".vitx[data-ready=true][data-drawn]")
    shown = alone.evaluate("Array.from(document.querySelector('.vitx').explorer.values)")
    np.testing.assert_allclose(shown, expected.ravel(), rtol=1e-4, atol=1e-6)


def test_another_picture_begins_anew(arrive, site):
    page = arrive("?model=many")
    come_to_the_methods(page)
    page.click("#why [data-at='1,0']")
    page.wait_for_selector("#why .why-cell[aria-pressed=true]")
    ask_why(page, 2)
    until_state(page, "s.label !== null")
    before = page.evaluate(f"{EXPLORER}.dataset.id")
    page.click("[data-example=espresso]")
    page.wait_for_function(f"{EXPLORER}.dataset.id !== {json.dumps(before)}")
    page.wait_for_function("!document.querySelector('#why .why-cell[aria-pressed=true]')")
    top = label_indices(page)[0]
    until_state(page, f"s.map === 'contribution' && s.label === {top} && s.minus === null")
    assert_map(page, site.explanation(page).contribution())
