"""The wall of heads in Chromium: its three views, their colours, sorting, and the way to the picture."""

import matplotlib
import numpy as np
import pytest
import torch
from support.explorer import BIG, ROOT, look, pixels, state, swipe
from support.page import EXPLORER, choose_example, next_frames

from vit_demo import attention
from vit_demo.ui.texts import EXPLORER_TEXTS

pytestmark = pytest.mark.usefixtures("one_thread")

FIRST_TILE = 24 + 8, 16 + 8  # a point in it
TOP = 0.99  # the few largest values are cut


@pytest.fixture(scope="module")
def big():
    return look(BIG)


def views(e) -> dict[str, np.ndarray]:
    """What the wall can show, from the library: (layers, heads, patches)."""
    raw = torch.stack([e.attention(layer) for layer in range(e.layers)])
    found = {"special": e.head_rollouts(None, part="special"), "whole": e.head_rollouts(None)}
    found["attention"] = raw
    return {name: maps.flatten(2).double().numpy() for name, maps in found.items()}


def colours(maps: np.ndarray, signed: bool) -> np.ndarray:
    """The colours of one layer's tiles, the scale of the layer: from -x to x, or from the least."""
    high = np.quantile(np.abs(maps) if signed else maps, TOP)
    low = -high if signed else maps.min()
    table = matplotlib.colormaps["RdBu_r" if signed else "inferno"]
    return table((maps - low) / (high - low), bytes=True)[..., :3]


def cielab(rgb: np.ndarray) -> np.ndarray:
    linear = rgb / 255
    linear = np.where(linear > 0.04045, ((linear + 0.055) / 1.055) ** 2.4, linear / 12.92)
    xyz = linear @ np.array([[41.24, 35.76, 18.05], [21.26, 71.52, 7.22], [1.93, 11.92, 95.05]]).T
    f = xyz / np.array([95.05, 100, 108.9])
    x, y, z = np.moveaxis(np.where(f > 0.008856, np.cbrt(f), 7.787 * f + 16 / 116), -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def difference_to_the_eye(maps: np.ndarray, signed: bool) -> float:
    """Mean distance of the heads' colours from their mean."""
    lab = np.stack([cielab(colours(layer, signed).astype(float)) for layer in maps])
    return float(np.linalg.norm(lab - lab.mean(axis=1, keepdims=True), axis=-1).mean())


def tile(page) -> tuple[float, float]:
    box = page.locator(".vx-tiles").bounding_box()
    return box["x"] + FIRST_TILE[0], box["y"] + FIRST_TILE[1]


def show(page, view: str) -> None:
    before = page.evaluate(f"{ROOT}.dataset.wall")
    page.locator(f"[name$=wall][value={view}]").check()
    if view == "attention":
        page.wait_for_function(f"{ROOT}.dataset.wall !== '{before}'")
    next_frames(page)
    next_frames(page)


@pytest.mark.quick
def test_opens_in_the_view_in_which_heads_differ_most_to_the_eye(open_page, big):
    maps = views(big)
    special, whole = (difference_to_the_eye(maps[v], v == "special") for v in ("special", "whole"))
    expected = "special" if special > whole else "whole"
    assert abs(special - whole) > 1  # otherwise this test says nothing
    page = open_page()
    assert state(page)["wall"] == expected
    assert page.locator(f"[name$=wall][value={expected}]").is_checked()


def test_what_a_visitor_chooses_stays(visit, tmp_path, big):
    from vit_demo.ui.explorer import standalone_html

    for view in ("special", "whole", "attention"):
        file = tmp_path / "page.html"
        file.write_text(standalone_html(big, "en", {"wall": view}), encoding="utf-8")
        page = visit(file.as_uri())
        page.wait_for_selector(".vitx[data-wall]")
        assert state(page)["wall"] == view


@pytest.mark.parametrize("view", ["special", "whole", "attention"])
def test_tiles_have_the_colours_of_their_values(open_page, big, view):
    page = open_page()
    other = "whole" if state(page)["wall"] == "special" else "special"
    show(page, other)
    show(page, view)
    expected = colours(views(big)[view][11], view == "special")[0].reshape(14, 14, 3)
    shown = pixels(page, ".vx-tiles")
    layout = page.evaluate("(() => { const r = document.querySelector('.vx-tiles');"
                           " return [r.width, r.clientWidth]; })()")  # fmt: skip
    assert layout[0] == layout[1]  # one pixel a pixel
    found = tile_pixels(shown)
    inside = np.s_[1:-1, 1:-1]  # a frame around the chosen layer covers the rim
    different = np.abs(found[inside].astype(int) - expected[inside].astype(int)).max(axis=-1) > 12
    assert different.mean() < 0.03, different.mean()


def tile_pixels(wall: np.ndarray) -> np.ndarray:
    """The first tile, a pixel a patch: from its left upper corner to the gap after it."""
    row = wall[16 + 2, 24:]
    background = wall[0, 0]
    width = int(np.argmax((row == background).all(axis=-1)))
    middles = (np.arange(14) + 0.5) * width / 14
    y, x = (16 + middles).astype(int), (24 + middles).astype(int)
    return wall[np.ix_(y, x)]


def test_a_tile_opens_in_the_view_of_the_wall(open_page, big):
    page = open_page()
    opened = {"special": ("head_rollout", "special"), "whole": ("head_rollout", "whole")}
    for view, place in (opened | {"attention": ("attention", "whole")}).items():
        show(page, view)
        page.mouse.click(*tile(page))
        found = state(page)
        assert (found["map"], found["part"], found["layer"], found["head"]) == (*place, 11, 0)
        next_frames(page)
        values = np.array(page.evaluate(f"Array.from({ROOT}.explorer.values)"))
        expected = views(big)[view][11, 0]
        np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_the_special_view_has_its_unit_and_its_zero(open_page):
    page = open_page()
    page.evaluate(
        f"{ROOT}.explorer.set({{ map: 'head_rollout', head: 3, part: 'special', layer: 5 }})"
    )
    next_frames(page)
    legend = page.locator(".vx-explorer .vx-legend").inner_text()
    low, high = legend.split(" pp")[0], legend.split(" pp")[1].strip()
    assert low.startswith("\u2212") and high == "+" + low[1:], legend
    assert "against the mean of the layer's heads" in page.locator(".vx-say").inner_text()
    assert page.locator("select[id$=colours]").is_disabled()
    page.locator(".vx-picture").hover()
    next_frames(page)
    assert page.evaluate(f"{ROOT}.dataset.tip").endswith(" pp")


def test_all_heads_is_not_offered_where_it_is_rollout(open_page):
    page = open_page()
    options = page.locator("select[id$=head] option")
    assert options.all_inner_texts() == ["All heads", "Strongest", "Weakest"]
    page.locator("[name$=map][value=head_rollout]").check()
    assert options.all_inner_texts()[:3] == ["Strongest", "Weakest", "Head 1"]
    assert state(page)["head"] == 0
    page.evaluate(f"{ROOT}.explorer.set({{ discard: 0.4 }})")  # now it is a map of its own
    assert options.all_inner_texts()[0] == "All heads"
    page.evaluate(f"{ROOT}.explorer.set({{ discard: 0, part: 'special' }})")
    assert options.all_inner_texts()[0] == "Head 1"
    page.locator("[name$=map][value=attention]").check()
    assert options.all_inner_texts()[0] == "All heads"


def test_names_facts_and_keys(open_page, big):
    page = open_page()
    show(page, "whole")
    page.mouse.move(*tile(page))
    page.wait_for_function(f"{ROOT}.dataset.name.startsWith('Layer 12, head 1 ')")
    A = big.layer_attention(11)
    distance = float(attention.attention_distance(A, big.grid, (16, 16), 1)[0])
    bits = entropies(views(big)["whole"])[11, 0]
    stays = 100 * float(big.head_rollouts(tokens=True)[0, 0])
    assert 0.01 <= stays < 1  # three digits
    assert page.evaluate(f"{ROOT}.dataset.name") == (
        f"Layer 12, head 1 · attention distance {distance:.0f} px · "
        f"entropy of this map {bits:.1f} bits · {stays:.3f} % on the class token"
    )
    page.mouse.click(*tile(page))
    page.locator(".vx-tiles").focus()
    for key in ("Right", "Right", "Down", "Left", "Up", "Up", "Down"):
        page.keyboard.press(f"Arrow{key}")
    assert (state(page)["layer"], state(page)["head"]) == (10, 1)
    page.locator("[name$=map][value=rollout]").check()
    assert state(page)["head"] == "mean"


def entropies(maps: np.ndarray) -> np.ndarray:
    shares = np.abs(maps) / np.abs(maps).sum(axis=-1, keepdims=True)
    return -(shares * np.log2(np.maximum(shares, 1e-300))).sum(axis=-1)


def test_by_focus_sorts_by_the_map_that_is_shown(open_page, big):
    page = open_page()
    page.locator("[value=focus]").check()
    firsts = set()
    for view, maps in views(big).items():
        show(page, view)
        page.mouse.click(*tile(page))
        found = state(page)["layer"], state(page)["head"]
        bits = entropies(maps)
        assert bits[found] == pytest.approx(bits.min(), rel=1e-3), view
        firsts.add(found)
    assert len(firsts) > 1  # each view has an order of its own


@pytest.mark.parametrize("language", ["en", "ko"])
def test_by_focus_says_what_its_order_is_and_which_tile_is_which(open_page, language):
    words, name = EXPLORER_TEXTS[language], "big" if language == "en" else "korean"
    page = open_page(name)
    assert words["wall_hint"] in page.locator(".vx-name").inner_text()
    left = np.s_[100:400, 24:40]  # of several tiles, below the frame of a row
    white = (pixels(page, ".vx-tiles")[left] == 255).all(axis=-1).sum()
    page.locator("[value=focus]").check()
    next_frames(page)
    said = page.locator(".vx-name").inner_text()
    assert words["wall_hint"] not in said
    assert words["wall_hint_focus"] in said and words["wall_hint_numbers"] in said
    marked = (pixels(page, ".vx-tiles")[left] == 255).all(axis=-1).sum()
    assert marked > white + 300  # numbers on white


def test_a_head_that_looks_at_no_patch_is_hatched_and_says_where_it_looks(arrive, site):
    page = arrive("?example=shepherd&map=attention&wall=attention&layer=0&head=0")
    page.wait_for_selector("#explorer [data-wall]", state="attached")
    e = site.explanation(page)
    shares = torch.stack([e.attention(layer, tokens=True)[:, 0] for layer in range(e.layers)])
    assert shares[0, 0] > 0.9 > shares[0, 1]
    name = f"{EXPLORER}.dataset.name"
    page.wait_for_function(f"{name}.endsWith('· {100 * shares[0, 0]:.1f} % on the class token')")
    next_frames(page)
    wall = pixels(page, "#explorer .vx-tiles")
    line = np.array((0x8A, 0x92, 0x9C))
    near = np.abs(wall.astype(int) - line).max(axis=-1) < 24  # lines aslant are blurred
    middles = np.argwhere(near).mean(axis=0) / wall.shape[:2]
    assert near.sum() > 100 and middles[0] > 0.8 and middles[1] < 0.3  # below, on the left
    page.evaluate(f"{EXPLORER}.explorer.set({{ map: 'rollout', head: 'mean' }})")
    next_frames(page)
    hatched = EXPLORER_TEXTS["en"]["wall_hint_hatched"]
    assert hatched in page.locator("#explorer .vx-name").inner_text()


def test_a_tap_brings_the_picture_into_view(open_page):
    page = open_page("big", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    wall = page.locator(".vx-tiles")
    wall.scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, document.querySelector('.vx-wall').offsetTop)")
    seen = "(() => { const b = document.querySelector('.vx-picture').getBoundingClientRect();" \
           " return Math.min(b.bottom, innerHeight) - Math.max(b.top, 0); })()"  # fmt: skip
    assert page.evaluate(seen) < 100
    box = wall.bounding_box()
    page.touchscreen.tap(box["x"] + FIRST_TILE[0], box["y"] + FIRST_TILE[1])
    height = page.locator(".vx-picture").bounding_box()["height"]
    page.wait_for_function(f"{seen} > {0.9 * height}")
    assert (state(page)["layer"], state(page)["head"]) == (11, 0)


@pytest.mark.parametrize("part", [".vx-picture", ".vx-tiles"])
def test_a_thumb_scrolls_the_page(open_page, part):
    page = open_page("big", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page.locator(part).scroll_into_view_if_needed()
    before, chosen = page.evaluate("scrollY"), state(page)
    box = page.locator(part).bounding_box()
    middle = max(200, min(600, box["y"] + box["height"] / 2))
    swipe(page, box["x"] + box["width"] / 2, middle, 150 if before > 150 else -150)
    page.wait_for_function(f"scrollY !== {before}")
    assert state(page) == chosen  # nothing was tapped


def test_a_slider_knows_where_a_thumb_goes(open_page):
    """Up or down scrolls the page, and the layer stays; a tap or a thumb that goes sideways means it."""
    page = open_page("big", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    slider = page.locator(".vx-layer input")
    layer = f"JSON.parse({ROOT}.dataset.state).layer"
    slider.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    before, box = page.evaluate("scrollY"), slider.bounding_box()
    swipe(page, box["x"] + box["width"] / 4, box["y"] + box["height"] / 2, -150)
    page.wait_for_function(f"scrollY > {before + 50}")
    next_frames(page)
    assert page.evaluate(layer) == int(slider.input_value()) == 11
    box = slider.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.touchscreen.tap(*middle)
    page.wait_for_function(f"{layer} > 3 && {layer} < 8")
    across(page, *middle, -box["width"] / 2)
    page.wait_for_function(f"{layer} < 2")


def across(page, x: float, y: float, way: float) -> None:
    """A thumb that moves to the side."""
    devtools = page.context.new_cdp_session(page)
    places = [{"x": x + way * step / 10, "y": y} for step in range(11)]
    kinds = ["touchStart"] + ["touchMove"] * 10
    for kind, place in zip(kinds, places, strict=True):
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [place]})
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_the_view_it_opened_in_stays_with_the_next_picture(arrive):
    page = arrive()
    page.wait_for_selector("#explorer [data-wall]", state="attached")
    opened = page.evaluate(f"{EXPLORER}.explorer.state.wall")
    for example in ("goldfish", "camel"):
        choose_example(page, example)
        assert page.evaluate(f"{EXPLORER}.explorer.state.wall") == opened
