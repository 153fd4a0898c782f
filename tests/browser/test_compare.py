"""Side by side, in Chromium, against the library."""

import json

import numpy as np
import pytest
from PIL import Image
from support.models import noise
from support.page import (
    DEIT,
    EXPLORER,
    MODEL,
    PHONE,
    SECONDS,
    WIDE,
    after_new_result,
    choose_example,
    next_frames,
    open_tab,
    serious_axe_violations,
    shown_id,
    state,
    until_state,
    upload,
)

from vit_demo.compare import compare, matching_patch
from vit_demo.map_settings import FUSIONS, settings_from
from vit_demo.ui import payload
from vit_demo.ui.compare import texts
from vit_demo.ui.html import EXAMPLES

TAB = "document.querySelector('#compare .cmp')"


def until_ready(page, second: str | None = None) -> None:
    other = "" if second is None else f" && {TAB}.dataset.second !== '{second}'"
    page.wait_for_function(f"{TAB}?.dataset.state === 'ready' && {TAB}.dataset.second{other}")
    next_frames(page)


def second_id(page) -> str:
    return page.evaluate(f"{TAB}.dataset.second")


def both(page, site):
    return [site.server.store.get(id) for id in (shown_id(page), second_id(page))]


def assert_comparison(page, site, precision: float = 1 / 255) -> None:
    """What the browser computed is what the library says for the same settings."""
    until_ready(page)
    expected = compare(*both(page, site), settings_from(state(page)))
    views = page.evaluate(
        f"""(() => {{ const views = {TAB}.compare.views(); return {{
            difference: Array.from(views.difference), grid: views.grid, seen: views.seen,
            correlation: views.correlation, states: views.sides.map((side) => side.state),
        }}; }})()"""
    )
    assert views["grid"] == list(expected.seen.shape)
    assert views["seen"] == expected.seen.flatten().tolist()
    # Codes are 8 bits of a square root, so a row's largest value is right to 1 / 255; in a column, where
    # one asks who looks here, each comes from another row, whose largest is up to 1.
    to = state(page)["direction"] == "to"
    atol = 1 / 510 if to else precision * float(expected.maps.abs().max())
    np.testing.assert_allclose(views["difference"], expected.difference.flatten(), atol=atol)
    assert views["correlation"] == pytest.approx(expected.correlation, abs=0.02)
    theirs = views["states"][1]
    if not expected.settings[1].is_class_map:
        assert theirs["layer"] == expected.settings[1].layer
        assert theirs["head"] == expected.settings[1].head
        query = expected.settings[1].query
        assert theirs["query"] == (None if query is None else list(query))
    assert float(page.locator(".cmp-correlation").get_attribute("data-value")) == pytest.approx(
        views["correlation"]
    )


def pointed(side: int, patch: tuple[int, int] | None) -> str:
    """The picture of a side where this patch is marked."""
    where = "" if patch is None else ",".join(map(str, patch))
    return f".cmp-side[data-side='{side}'] canvas[data-pointed='{where}']"


def middle_of(page, side: int, patch: tuple[int, int], grid: tuple[int, int]) -> tuple:
    """Where a patch lies in the window."""
    box = page.locator(f".cmp-side[data-side='{side}'] canvas").bounding_box()
    (row, col), (rows, cols) = patch, grid
    x = box["x"] + (col + 0.5) * box["width"] / cols
    return x, box["y"] + (row + 0.5) * box["height"] / rows


@pytest.mark.quick
def test_two_pictures_in_one_model(arrive, site, tmp_path):
    """Nothing is asked before the tab is open; controls and keys are for both sides; a picture of one's
    own, one that is none, and another first one."""
    page = arrive("?model=many&map=attention")
    assert second_id(page) is None or second_id(page) == ""
    open_tab(page, "compare")
    assert_comparison(page, site)
    first, second = both(page, site)
    assert first.classifier is second.classifier
    pressed = page.locator(".cmp-examples [aria-pressed=true]")
    assert pressed.get_attribute("data-second") == EXAMPLES["photo"][1]

    page.locator(".cmp-side[data-side='0'] canvas").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".cmp-side[data-side='1'] canvas[data-pointed]:not([data-pointed=''])")
    assert "%" in page.locator(".cmp .vx-live").text_content()
    page.keyboard.press("Enter")
    until_state(page, "s.query !== null")
    assert_comparison(page, site)
    page.keyboard.press("Escape")
    until_state(page, "s.query === null")
    page.select_option("#cmp-head", "1")
    until_state(page, "s.head === 1")
    page.locator("#cmp-layer").fill("0")
    until_state(page, "s.layer === 0")
    assert_comparison(page, site)
    page.check(".cmp input[value=class]", force=True)
    until_state(page, "s.map === 'contribution'")
    page.select_option("#cmp-method", "grad_cam")
    until_state(page, "s.map === 'grad_cam'")
    until_ready(page)
    page.click(".cmp-controls button:has-text('Back')")
    until_state(page, "s.map === 'attention'")

    before = second_id(page)
    noise(5).save(tmp_path / "mine.png")
    page.set_input_files(".cmp-file", str(tmp_path / "mine.png"))
    until_ready(page, before)
    assert both(page, site)[1].view.original.size == noise(5).size
    (tmp_path / "no.png").write_text("no picture")
    page.set_input_files(".cmp-file", str(tmp_path / "no.png"))
    page.wait_for_selector(".cmp[data-state=failed] .cmp-status:has-text('not a picture')")
    page.click(f".cmp-examples [data-second={EXAMPLES['photo'][1]}]")
    until_ready(page)
    before = second_id(page)
    choose_example(page, EXAMPLES["photo"][1])  # which stood beside it: now the next one does
    until_ready(page, before)
    assert_comparison(page, site)
    assert pressed.get_attribute("data-second") == EXAMPLES["photo"][2]


def test_controls_and_names_say_what_is_shown(arrive):
    """A head's rollout: all heads would be another map. What is special is named, and so are labels."""
    page = arrive("?tab=compare&map=head_rollout&layer=2&head=1&part=whole&lang=ko")
    until_ready(page)
    heads, what = page.locator("#cmp-head option"), page.locator(".cmp-what")
    values = [option.get_attribute("value") for option in heads.all()]
    assert values[:3] == ["max", "min", "0"]
    text = texts()["ko"]
    for part, said in (("special", True), ("whole", False)):
        page.evaluate(f"{EXPLORER}.explorer.set({{ part: '{part}' }})")
        until_state(page, f"s.part === '{part}'")
        next_frames(page)
        for side in (0, 1):
            assert (text["part_special"] in what.nth(side).inner_text()) == said
        assert (heads.first.get_attribute("value") == "0") == said
    page.evaluate(f"{EXPLORER}.explorer.set({{ map: 'rollout' }})")
    until_state(page, "s.map === 'rollout'")
    next_frames(page)
    assert [option.get_attribute("value") for option in heads.all()] == list(FUSIONS)
    page.click(".cmp-labels button >> nth=0")
    until_state(page, "s.map === 'contribution'")
    until_ready(page)
    name = page.locator(".cmp-labels button").first.inner_text()
    for side in (0, 1):
        assert what.nth(side).inner_text() == f"{text['contribution']} · {name.strip()}"
    assert not name.isascii()


def test_two_models_on_one_picture(arrive, site, shared):
    """Every map; a patch pointed at is marked on the other side, and nobody is asked; one chosen on the
    second side asks on both; labels go by name."""
    page = arrive(f"?tab=compare&with={DEIT}&example=koala")
    assert_comparison(page, site)
    first, second = both(page, site)
    assert second.model_name == DEIT and first.model_name == MODEL
    for setting in (
        {"map": "head_rollout", "layer": 2, "head": 1, "part": "whole"},
        {"map": "attention", "head": "mean", "query": [5, 6]},
        {"map": "attention", "direction": "to", "head": 0},
    ):
        page.evaluate(f"{EXPLORER}.explorer.set({json.dumps(setting)})")
        next_frames(page)
        assert_comparison(page, site)
    assert "numbered arbitrarily" in page.locator(".cmp-notes").inner_text()

    asked = []
    page.on("request", lambda request: asked.append(request.url))
    rows, cols = first.grid
    for patch in ((rows // 2, cols // 2), (1, cols - 2)):
        page.mouse.move(*middle_of(page, 0, patch, first.grid))
        page.wait_for_selector(pointed(0, patch))
        page.wait_for_selector(pointed(1, matching_patch(first, second, patch)))
    assert asked == []
    page.mouse.move(5, 5)
    page.wait_for_selector(pointed(1, None))
    patch = (second.grid[0] // 2, second.grid[1] // 2 + 1)
    page.mouse.click(*middle_of(page, 1, patch, second.grid))
    expected = list(matching_patch(second, first, patch))
    until_state(
        page, f"JSON.stringify(s.query) === '{json.dumps(expected, separators=(',', ':'))}'"
    )
    until_ready(page)
    assert page.evaluate(f"{TAB}.compare.views().sides[1].state.query") == list(patch)

    page.click(".cmp-labels button:has-text('koala')")
    until_state(page, "s.map === 'contribution' && s.label !== null")
    assert_comparison(page, site)
    label = page.evaluate(f"{TAB}.compare.views().sides[1].state.label")
    assert second.labels[label].startswith("koala")
    assert first.labels[state(page)["label"]] == "koala"
    assert serious_axe_violations(page) == []


def test_lean_data_give_the_same_comparison(arrive, site, monkeypatch, tmp_path):
    """Large models: what a map needs is fetched, for both sides. The pictures are new to the server."""
    page = arrive("?tab=compare")
    until_ready(page)
    monkeypatch.setattr(payload, "FULL_LIMIT", 0)
    for seed, name in enumerate(("first.png", "second.png")):
        noise(seed).save(tmp_path / name)
    after_new_result(page, lambda: upload(page, tmp_path / "first.png"))
    until_ready(page)
    before = second_id(page)
    page.set_input_files(".cmp-file", str(tmp_path / "second.png"))
    until_ready(page, before)
    asked = []
    page.on("request", lambda request: asked.append(request.post_data or ""))
    for setting in (
        {"map": "head_rollout", "layer": 2, "head": 1, "part": "whole", "query": [5, 6]},
        {"map": "attention", "layer": 4, "head": 2, "query": [3, 4]},
        {"map": "head_rollout", "layer": 3, "head": 0, "part": "special", "query": None},
        {"map": "rollout", "head": "max"},
    ):
        page.evaluate(f"{EXPLORER}.explorer.set({json.dumps(setting)})")
        next_frames(page)
        assert_comparison(page, site, precision=0.01)  # what is special is less than what was coded
        assert setting.items() <= state(page).items()
    for id in (shown_id(page), second_id(page)):
        assert sum(id in body for body in asked) >= 3  # a patch, another one, the strongest heads


def test_a_second_model_and_what_it_lacks(arrive, site):
    """One that cannot be had, one without labels, one that has not this label; the address names it."""
    page = arrive("?tab=compare&model=many&with=no_such_vit&map=contribution&label=3")
    page.wait_for_selector(".cmp[data-state=failed] .cmp-status:has-text('no_such_vit')")
    page.check(".cmp input[value=pictures]", force=True)
    until_ready(page)  # everything else works
    page.check(".cmp input[value=models]", force=True)
    page.wait_for_selector(".cmp[data-state=failed]")
    page.fill(".cmp-model input", MODEL)
    page.keyboard.press("Enter")
    page.wait_for_selector(".cmp-notes:has-text('has no label of this name')")
    until_ready(page)
    second = both(page, site)[1]
    views = f"{TAB}.compare.views().sides"
    assert page.evaluate(f"{views}[1].state.label") == second.label_index()
    found = page.evaluate(f"Array.from({views}[1].values)")
    np.testing.assert_allclose(found, second.contribution().flatten(), rtol=1e-4, atol=1e-6)
    assert page.locator(".cmp-agree").get_attribute("data-agree") == "null"
    page.fill(".cmp-model input", "headless")
    page.keyboard.press("Enter")
    page.wait_for_function("location.search.includes('with=headless')")
    page.wait_for_selector(".cmp-answer >> nth=1 >> text=for maps only")
    assert page.locator(".cmp-labels").is_hidden()


def test_link_and_png_carry_both_in_every_language(arrive, visit, site):
    page = arrive("?tab=compare&model=many&lang=ko")
    until_ready(page)
    before = second_id(page)
    page.click(f".cmp-examples [data-second={EXAMPLES['photo'][4]}]")
    until_ready(page, before)
    before = second_id(page)
    assert "순위 상관" in page.locator(".cmp-correlation").inner_text()
    page.click("#language [data-language=en]")
    page.wait_for_selector(".cmp-correlation:has-text('Rank correlation')")
    until_ready(page)
    assert second_id(page) == before  # nothing is asked again
    with page.expect_download() as download:
        page.click(".cmp-controls button:has-text('PNG')")
    assert download.value.suggested_filename == "compare.png"
    with Image.open(download.value.path()) as sheet:
        assert sheet.width > 3 * 448 and sheet.height > 448
    page.click("#link button")
    page.wait_for_selector("#link button[data-address]")
    address = page.locator("#link button").get_attribute("data-address")
    assert f"beside={EXAMPLES['photo'][4]}" in address and "tab=compare" in address
    correlation = page.locator(".cmp-correlation").get_attribute("data-value")
    again = visit(address, viewport=WIDE)
    again.set_default_timeout(SECONDS * 1000)
    until_ready(again)
    again.wait_for_selector(".cmp-correlation:not([data-value=''])", state="attached")
    assert again.locator(".cmp-correlation").get_attribute("data-value") == correlation


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(WIDE, "dark", id="wide-dark", marks=pytest.mark.slow),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_serious(arrive, viewport, scheme):
    page = arrive("?tab=compare&map=contribution", viewport=viewport, color_scheme=scheme)
    until_ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert serious_axe_violations(page) == []


OVERLAPS = """() => {
    const parts = ".cmp-controls :is(button, select, label, output, .gloss)";
    const seen = [...document.querySelectorAll(parts)].filter((part) => part.checkVisibility());
    const places = seen.map((part) => part.getBoundingClientRect());
    const inside = (a, b) => seen[a].contains(seen[b]) || seen[b].contains(seen[a]);
    const apart = (p, q) => p.right <= q.left + 1 || q.right <= p.left + 1
        || p.bottom <= q.top + 1 || q.bottom <= p.top + 1;
    const found = [], name = (a) => seen[a].outerHTML.slice(0, 80);
    for (let a = 0; a < seen.length; a++)
        for (let b = a + 1; b < seen.length; b++)
            if (!inside(a, b) && !apart(places[a], places[b])) found.push([name(a), name(b)]);
    return found;
}"""


@pytest.mark.parametrize("language", ["en", "ko"])
def test_no_control_is_printed_over_another(arrive, language):
    page = arrive(f"?tab=compare&lang={language}", viewport=WIDE)
    until_ready(page)
    for map in ("class", "head_rollout"):
        page.click(f".cmp-controls label:has([value={map}])")
        for width in (1440, 1280, 1000, 390):
            page.set_viewport_size({"width": width, "height": 900})
            next_frames(page)
            assert page.evaluate(OVERLAPS) == [], (map, width)
        page.set_viewport_size(WIDE)


@pytest.mark.parametrize("size", [(900, 500), (500, 900)], ids=["wide", "tall"])
@pytest.mark.parametrize("width", [1440, 1000, 390])
def test_every_picture_keeps_its_column_and_its_shape(arrive, tmp_path, size, width):
    """Native pictures are as wide or tall as they are, beside square ones, of another picture and of
    another model."""
    noise().resize(size).save(tmp_path / "mine.png")
    page = arrive("?fit=native&tab=compare", viewport={"width": width, "height": 900})
    until_ready(page)
    after_new_result(page, lambda: upload(page, tmp_path / "mine.png"))
    assert_in_columns(page, width)
    page.check(".cmp input[value=models]", force=True)
    page.fill(".cmp-model input", "many")
    page.keyboard.press("Enter")
    page.wait_for_function("location.search.includes('with=many')")
    assert_in_columns(page, width)


def assert_in_columns(page, width: int) -> None:
    until_ready(page)
    next_frames(page)
    places = page.evaluate("""() => [...document.querySelectorAll(".cmp-side")].map((side) => {
        const picture = side.querySelector(".vx-picture").getBoundingClientRect(),
            shape = side.querySelector(".vx-stage").style.getPropertyValue("--vx-aspect"),
            column = side.getBoundingClientRect();
        return { left: picture.left - column.left, right: column.right - picture.right,
            top: picture.top - column.top, below: column.bottom - picture.bottom,
            shape: picture.width / picture.height, expected: +shape, width: picture.width };
    })""")
    assert len(places) == 3
    for place in places:
        assert min(place[side] for side in ("left", "right", "top", "below")) >= -0.5, places
        assert place["shape"] == pytest.approx(place["expected"], rel=0.01), places
        assert place["width"] > 70, places
    assert page.evaluate("document.documentElement.scrollWidth") <= width
