"""The explorer in Chromium: everything a visitor may do. Its numbers: tests/ui/test_javascript.py."""

import base64
import io
import itertools
import re
import runpy

import numpy as np
import pytest
from PIL import Image
from support.explorer import (
    ROOT,
    SMALL,
    after_drawing,
    look,
    patch_point,
    pixels,
    state,
)
from support.page import next_frames
from support.payloads import explain

from vit_demo.ui import explorer, payload

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.quick
def test_hover_shows_value_and_the_patchs_map(open_page):
    page = open_page()
    first = pixels(page, ".vx-picture")
    after_drawing(page, lambda: page.mouse.move(*patch_point(page, 6, 2)))
    tip = page.locator(".vx-tip")
    assert tip.is_visible() and "Row 7, column 3" in tip.inner_text()
    assert re.search(r"\d+\.\d+ %", tip.inner_text())
    assert "patch 7, 3" in page.locator(".vx-query-name").inner_text()  # follows the pointer
    assert not np.array_equal(first, pixels(page, ".vx-picture"))
    assert state(page)["query"] is None
    after_drawing(page, lambda: page.mouse.move(5, 5))
    assert not tip.is_visible()
    np.testing.assert_array_equal(first, pixels(page, ".vx-picture"))


def test_tooltip_has_the_number_that_is_drawn(open_page):
    page = open_page("small")
    page.mouse.move(*patch_point(page, 1, 4, (2, 6)))
    page.wait_for_function(f"Boolean({ROOT}.dataset.tip)")
    e = look(SMALL)
    drawn_value = 100 * float(e.rollout(-1, query=(1, 4))[1, 4])  # of the map that is drawn
    shown = float(re.search(r"([\d.]+) %", page.evaluate(f"{ROOT}.dataset.tip"))[1])
    assert shown == pytest.approx(drawn_value, rel=0.01)
    locked_value = 100 * float(e.rollout(-1)[1, 4])  # and of the one that stays
    locked = page.locator(".vx-tip small").first.inner_text()
    assert locked.endswith("class token")
    assert float(locked.split()[0]) == pytest.approx(locked_value, rel=0.01)
    share = 100 * e.rollout(tokens=True)[:3].numpy()
    words = page.locator(".vx-say").inner_text()
    page.mouse.move(5, 5)
    page.wait_for_function(f"!{ROOT}.dataset.tip")
    words = page.locator(".vx-say").inner_text()
    cls, registers = (float(x) for x in re.findall(r"([\d.]+) % of it stays", words))
    assert cls == pytest.approx(share[0], rel=0.01)
    assert registers == pytest.approx(share[1:].sum(), rel=0.01)


def test_click_chooses_a_patch_and_back(open_page):
    page = open_page()
    page.mouse.click(*patch_point(page, 3, 9))
    assert state(page)["query"] == [3, 9]
    assert page.locator(".vx-back").is_visible()
    page.mouse.move(*patch_point(page, 8, 8))  # a chosen patch stays
    next_frames(page)
    assert "patch 4, 10" in page.locator(".vx-query-name").inner_text()
    page.mouse.click(*patch_point(page, 3, 9))
    assert state(page)["query"] is None
    page.mouse.click(*patch_point(page, 0, 0))
    page.locator(".vx-back").click()
    assert state(page)["query"] is None and not page.locator(".vx-back").is_visible()


@pytest.mark.quick
def test_changes_are_drawn_without_a_request(open_page):
    page = open_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    change = """async (change) => {
        const root = document.querySelector(".vitx"), before = root.dataset.drawn;
        root.explorer.set(change);
        while (root.dataset.drawn === before) await new Promise(requestAnimationFrame);
    }"""
    changes = [{"layer": layer, "head": head} for layer, head in itertools.product((3, 11), (0, 7))]
    changes += [{"query": [r, r]} for r in range(4)] + [{"query": None}]
    changes += [{"map": "head_rollout", "head": 2, "part": "special"}, {"picture": "seen"}]
    changes += [{"map": "attention"}, {"direction": "to"}, {"map": "rollout"}, {"opacity": 0.3}]
    changes += [{"colours": "cividis"}, {"smooth": True}, {"residual": 0.3}]
    for one in changes:
        page.evaluate(change, one)
    page.select_option("select[id$=head]", "max")  # through the controls, too
    page.locator("input[id$=layer]").fill("3")
    assert (state(page)["layer"], state(page)["head"]) == (3, "max")
    for index, _ in enumerate(range(5)):
        page.mouse.move(*patch_point(page, index, index))
    next_frames(page)
    assert requests == []


def test_every_control_changes_the_picture(open_page):
    page = open_page()
    page.evaluate("document.querySelector('.vx-more').open = true")
    seen = [pixels(page, ".vx-picture")]

    def act(change) -> None:
        after_drawing(page, change)
        next_frames(page)
        seen.append(pixels(page, ".vx-picture"))
        assert not np.array_equal(seen[-2], seen[-1])

    act(lambda: page.locator("[name$=map][value=head_rollout]").check())
    act(lambda: page.select_option("select[id$=head]", label="Head 4"))
    act(lambda: page.locator("[name$=part][value=special]").check())
    act(lambda: page.locator("[name$=part][value=whole]").check())
    act(lambda: page.get_by_role("switch").check())
    act(lambda: page.locator("input[id$=residual]").fill("0.2"))
    act(lambda: page.locator("input[id$=discard]").fill("0.9"))
    act(lambda: page.locator("[name$=below][value=same]").check())
    act(lambda: page.locator("input[id$=opacity]").fill("0.8"))
    act(lambda: page.locator("[name$=smooth][value=true]").check())
    act(lambda: page.select_option("select[id$=colours]", "viridis"))
    page.locator("[name$=wall][value=whole]").check()  # the same kind of map as the picture's
    act(lambda: page.locator("[value=shared]").check())
    act(lambda: page.locator("[name$=map][value=attention]").check())
    act(lambda: page.locator("[name$=direction][value=to]").check())
    act(lambda: page.get_by_role("button", name="Picture only").click())
    expected = {"map": "attention", "head": 3, "direction": "to", "residual": 0.2, "discard": 0.9}
    expected |= {"below": "same", "opacity": 0.8, "smooth": True, "colours": "viridis"}
    assert state(page) == state(page) | expected | {"scale": "shared"}
    page.get_by_role("button", name="Reset").click()
    assert state(page)["residual"] == 0.5 and state(page)["smooth"] is False


def test_keyboard_alone(open_page):
    page = open_page()
    page.locator(".vx-picture").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_function(f"{ROOT}.dataset.tip?.startsWith('Row 7, column 7')")
    tip, spoken = page.evaluate(f"{ROOT}.dataset.tip"), page.locator(".vx-live").inner_text()
    assert spoken.replace(":", "", 1).startswith(f"{tip} · ")  # the number that is seen
    page.keyboard.press("Enter")
    assert state(page)["query"] == [6, 6]
    page.keyboard.press("Enter")
    assert state(page)["query"] is None
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    assert state(page)["query"] == [7, 6]
    page.keyboard.press("Escape")
    assert state(page)["query"] is None
    reached = set()
    page.locator("body").press("Tab")
    for _ in range(32):
        page.keyboard.press("Tab")
        name = "document.activeElement.className || document.activeElement.id || document.activeElement.name"
        reached.add(page.evaluate(f"{name} || document.activeElement.tagName").split("-")[-1])
    expected = {"picture", "tiles", "play", "map", "head", "layer", "sort", "wall", "gloss", "seen"}
    assert expected <= reached, reached


def test_play_walks_through_the_layers(open_page):
    page = open_page("small")
    page.locator("input[id$=layer]").fill("1")
    page.evaluate(
        f"""() => {{
            const root = {ROOT}, note = () => seen.push(JSON.parse(root.dataset.state).layer);
            window.seen = [];
            new MutationObserver(note).observe(root, {{ attributeFilter: ["data-state"] }});
        }}"""
    )
    page.locator(".vx-play").click()
    page.wait_for_function("seen.includes(3)")
    page.wait_for_selector(".vx-play[aria-label='Play through the layers']")  # it stops by itself
    assert list(dict.fromkeys(page.evaluate("seen"))) == [2, 3]  # on from where it stood
    page.locator(".vx-play").click()  # from the last: once more from the first
    page.wait_for_function("seen.slice(-1)[0] === 1")
    page.locator(".vx-play").click()  # pause
    assert page.locator(".vx-play").get_attribute("aria-label") == "Play through the layers"
    paused = state(page)["layer"]
    page.evaluate("seen.length = 0")
    page.locator(".vx-play").click()
    page.wait_for_function("seen.includes(3)")
    assert list(dict.fromkeys(page.evaluate("seen"))) == list(range(paused + 1, 4))


def test_the_png_shows_the_map_with_its_settings(open_page):
    page = open_page()
    change = "{ map: 'head_rollout', layer: 10, head: 4, query: [2, 3] }"
    page.evaluate(f"{ROOT}.explorer.set({change})")
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").click()
    assert (
        download.value.suggested_filename
        == "small-head_rollout-layer11-head-5-from-row3-column4-crop.png"
    )
    picture = Image.open(download.value.path())
    assert picture.format == "PNG" and picture.width == 896 + 64 and picture.height > picture.width
    body = np.asarray(picture.convert("RGB"))
    assert (body[:20] == 255).all()  # a margin
    assert len(np.unique(body[32:928, 32:928].reshape(-1, 3), axis=0)) > 100  # the picture
    assert (body[960:] < 128).any()  # the words


@pytest.mark.parametrize(("name", "language"), [("big", "en"), ("korean", "ko")])
def test_the_words_on_the_png_are_those_on_the_page(open_page, name, language):
    """Every word that is drawn, in order; the caption may be broken into lines."""
    page = open_page(name)
    page.evaluate(f"{ROOT}.explorer.set({{ map: 'attention', layer: 3, head: 2, query: [1, 4] }})")
    page.evaluate("""() => {
        window.written = [];
        const write = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
            window.written.push(text);
            return write.call(this, text, ...place);
        };
    }""")
    with page.expect_download():
        page.get_by_role("button", name="PNG").click()
    written = " ".join(page.evaluate("window.written")).split()
    caption = page.locator(".vx-say").inner_text().split()
    assert " ".join(caption) in " ".join(written)
    hangul = [word for word in caption if any("가" <= letter <= "힣" for letter in word)]
    assert bool(hangul) == (language == "ko")


@pytest.mark.quick
def test_python_snippet_runs_and_gives_the_same_picture(open_page, tmp_path, monkeypatch):
    import vit_demo

    e = look(SMALL)
    monkeypatch.setattr(vit_demo, "load", lambda name: {"small": Loaded(e)}[name])
    page = open_page("small", permissions=["clipboard-read", "clipboard-write"])
    states = [
        {"map": "head_rollout", "head": 1, "layer": 2, "query": [1, 3], "residual": 0.3},
        {"map": "head_rollout", "head": 2, "part": "special"},
        {"map": "head_rollout", "head": "max", "below": "same", "discard": 0.4, "smooth": True},
        {"map": "rollout", "head": "min", "query": None, "colours": "viridis", "wall": "whole"},
        {"scale": "shared", "picture": "seen"},
        {"scale": "own", "picture": "own"},
        {"map": "attention", "head": 2, "direction": "to", "query": [0, 5], "opacity": 1},
        {"map": "attention", "head": "mean", "direction": "from", "query": None},
        {"map": "contribution", "label": 1, "opacity": 0.5},
        {"map": "contribution", "label": 1, "minus": 0},
        {"map": "relevance", "label": 1, "opacity": 0.5},
        {"map": "grad_cam", "label": 1, "minus": 0, "smooth": False},
        {"map": "random", "label": 0},
    ]
    for change in states:
        after_drawing(
            page, lambda change=change: page.evaluate(f"(s) => {ROOT}.explorer.set(s)", change)
        )
        next_frames(page)
        page.get_by_role("button", name=re.compile("Copy as Python|Copied")).click()
        code = page.evaluate("navigator.clipboard.readText()")
        assert code == page.evaluate(f"{ROOT}.dataset.python") and "explain(" in code
        file = tmp_path / "attention.png"
        tmp_path.joinpath("snippet.py").write_text(code.replace("attention.png", str(file)))
        runpy.run_path(str(tmp_path / "snippet.py"))
        made = np.asarray(Image.open(file).convert("RGB")).astype(int)
        heat = page.evaluate(
            f"() => {{ const c = {ROOT}.explorer.sheet(); return c.toDataURL(); }}"
        )
        sheet = Image.open(io.BytesIO(base64.b64decode(heat.split(",")[1]))).convert("RGB")
        w, h = 896, round(896 / 3)
        sheet = sheet.crop((32, 32, 32 + w, 32 + h)).resize(made.shape[1::-1], Image.Resampling.BOX)
        # the browser resamples the picture a little differently, and frames the chosen patch
        assert np.median(np.abs(np.asarray(sheet).astype(int) - made)) <= 3, change


class Loaded:
    def __init__(self, explanation):
        self.explanation = explanation

    def explain(self, source, fit):
        assert source == "your-picture.jpg" and fit == "crop"
        return self.explanation


def test_the_explorer_fits_a_phone(open_page):
    for name in ("big", "korean", "small"):
        page = open_page(
            name, viewport={"width": 360, "height": 800}, has_touch=True, is_mobile=True
        )
        page.evaluate("document.querySelector('.vx-more').open = true")
        page.evaluate(f"{ROOT}.explorer.set({{ query: [0, 1], head: 2 }})")
        next_frames(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        explorer_box = page.locator(".vx-explorer").bounding_box()
        wall_box = page.locator(".vx-wall").bounding_box()
        assert wall_box["y"] >= explorer_box["y"] + explorer_box["height"]
    page = open_page("big", viewport={"width": 360, "height": 800}, has_touch=True, is_mobile=True)
    page.touchscreen.tap(*patch_point(page, 2, 2))
    page.wait_for_function(f"JSON.parse({ROOT}.dataset.state).query !== null")
    assert state(page)["query"] == [2, 2]


def test_dark_and_light(open_page):
    backgrounds = {}
    for scheme in ("light", "dark"):
        page = open_page("small", color_scheme=scheme)
        backgrounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.evaluate("getComputedStyle(document.querySelector('.vx-say')).color")
        assert ink == {"light": "rgb(27, 31, 36)", "dark": "rgb(232, 234, 237)"}[scheme]
    assert backgrounds["dark"] == "rgb(22, 25, 29)"
    page = open_page("small")
    page.evaluate("document.body.classList.add('dark')")  # as Gradio does
    ink = page.evaluate("getComputedStyle(document.querySelector('.vx-say')).color")
    assert ink == "rgb(232, 234, 237)"


def test_korean_and_switching(open_page):
    page = open_page("korean")
    assert page.locator("h2").first.inner_text() == "탐색기"
    page.evaluate(f"{ROOT}.explorer.set({{ map: 'head_rollout', head: 2, layer: 4 }})")
    next_frames(page)
    assert "5번 레이어 3번 헤드" in page.locator(".vx-say").inner_text()
    page.evaluate(f"{ROOT}.dispatchEvent(new CustomEvent('language', {{ detail: 'en' }}))")
    next_frames(page)
    assert "Head 3 of layer 5" in page.locator(".vx-say").inner_text()
    assert state(page)["head"] == 2
    page.locator("input[id$=layer]").fill("7")
    assert state(page)["layer"] == 7


def test_states_from_links_are_made_to_fit(visit, tmp_path):
    wild = {"map": "nonsense", "layer": 99, "head": 42, "query": [50, "x"], "residual": "0.25"}
    wild |= {"discard": 7, "opacity": None, "smooth": "true", "colours": "jet", "extra": "<script>"}
    file = tmp_path / "page.html"
    file.write_text(explorer.standalone_html(explain(), "en", wild), encoding="utf-8")
    page = visit(file.as_uri())
    page.wait_for_selector(".vitx[data-wall]")
    found = state(page)
    place = found["map"], found["layer"], found["head"], found["query"]
    assert place == ("rollout", 3, "mean", None)
    assert (found["residual"], found["discard"], found["smooth"]) == (0.25, 0.99, True)
    assert found["colours"] == "inferno" and "extra" not in found


def test_lean_page_without_a_server(visit, tmp_path, monkeypatch):
    monkeypatch.setattr(payload, "FILE_LIMIT", 0)
    file = tmp_path / "page.html"
    state = {"map": "head_rollout", "head": 1, "part": "special"}
    file.write_text(explorer.standalone_html(explain(), "en", state), encoding="utf-8")
    page = visit(file.as_uri())
    page.wait_for_selector(".vitx[data-wall]")
    page.mouse.click(*patch_point(page, 1, 1, (4, 4)))
    next_frames(page)
    assert "the mean of the heads" in page.locator(".vx-say").inner_text()
    assert "share on one patch" in page.locator(".vx-legend").first.inner_text()  # what is drawn
    page.locator("[name$=map][value=rollout]").check()
    next_frames(page)
    assert "Layers 1 to 4" in page.locator(".vx-say").inner_text()
