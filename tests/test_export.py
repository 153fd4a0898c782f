"""The files that one takes away hold what is on the screen."""

import numpy as np
import pytest
import torch
from PIL import Image
from support.models import noise, small_classifier

from vit_demo import export, render
from vit_demo.map_settings import MapSettings
from vit_demo.ui.texts import EXPLORER_TEXTS


@pytest.fixture(scope="module")
def explanation():
    return small_classifier().explain(noise())


# Settings, and the library's own call that makes the same map.
VIEWS = {
    "rollout": (MapSettings(layer=1), lambda e: e.rollout(1)),
    "strongest": (
        MapSettings(head="max", query=(1, 2), residual=0.3, discard=0.2),
        lambda e: e.rollout(query=(1, 2), fusion="max", residual=0.3, discard=0.2),
    ),
    "head": (
        MapSettings(map="head_rollout", layer=1, head=2, query=(0, 3), below="same"),
        lambda e: e.head_rollouts(1, query=(0, 3), below="same")[2],
    ),
    "special": (
        MapSettings(map="head_rollout", head=0, part="special"),
        lambda e: e.head_rollouts(part="special")[0],
    ),
    "raw": (
        MapSettings(map="attention", layer=0, head=1, query=(3, 3), direction="to"),
        lambda e: e.attention(0, 1, (3, 3), direction="to"),
    ),
    "class": (MapSettings(map="relevance", label=2), lambda e: e.relevance(2)),
    "difference": (
        MapSettings(map="contribution", label=2, minus=1),
        lambda e: e.contribution(2, minus=1),
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_files_hold_the_map_that_is_shown(explanation, name):
    settings, expected = VIEWS[name]
    arrays = export.arrays_of(explanation, settings)
    np.testing.assert_allclose(arrays["map"], expected(explanation), atol=1e-6)
    about = export.description(explanation, settings)
    assert about["settings"]["map"] == settings.map and about["fit"] == "crop"
    assert about["prefix_mass"] == pytest.approx(float(arrays["map_prefix"].sum()), abs=1e-6)
    if name in ("rollout", "strongest", "head"):  # shares of 1
        assert arrays["map"].sum() + about["prefix_mass"] == pytest.approx(1, abs=1e-5)
    assert ("attention" in arrays) == (settings.map == "attention")
    assert export.map_picture(explanation, settings).width > 400


def test_raw_attention_of_every_head_is_in_the_file(explanation):
    settings, _ = VIEWS["raw"]
    arrays = export.arrays_of(explanation, settings)
    for layer in range(explanation.layers):
        expected = explanation.attention(layer, None, (3, 3), direction="to")
        np.testing.assert_allclose(arrays["attention"][layer], expected, atol=1e-7)
    about = export.description(explanation, settings)["settings"]
    assert (about["query"], about["direction"], about["head"]) == ((3, 3), "to", 1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rollout", "rollout · layer 2 · all heads"),
        ("strongest", "rollout · layer 3 · strongest · residual 0.3 · discard 0.2 · from patch row 2, column 3"),
        ("head", "head rollout · layer 2 · head 3 · same head number below · from patch row 1, column 4"),
        ("raw", "raw attention · layer 1 · head 2 · to patch row 4, column 4"),
        ("difference", "contribution · for label 2 · rather than label 1"),
    ],
)  # fmt: skip
def test_caption_says_what_is_shown(explanation, name, words):
    settings, _ = VIEWS[name]
    assert export.caption(explanation, settings) == words
    assert export.description(explanation, settings)["shows"] == words


def test_negative_numbers_are_told_as_what_they_are(explanation):
    rows, cols = explanation.grid
    last = {"layer": explanation.layers - 1, "head": explanation.heads - 1}
    asked = MapSettings(map="attention", layer=-1, head=-1, query=(-1, -2))
    about = export.description(explanation, asked)["settings"]
    assert {name: about[name] for name in last} == last
    assert tuple(about["query"]) == (rows - 1, cols - 2)
    assert f"from patch row {rows}, column {cols - 1}" in export.caption(explanation, asked)
    assert export.looks(explanation, asked)["query"] == (rows - 1, cols - 2)
    found = export.map_picture(explanation, asked)
    plain = MapSettings(map="attention", **last, query=(rows - 1, cols - 2))
    np.testing.assert_array_equal(found, export.map_picture(explanation, plain))


def test_the_patch_that_asks_does_not_darken_the_others():
    """It keeps most of the attention. The brightest of the others has the brightest colour."""
    maps = np.full((2, 4, 4), 0.01, np.float32)
    maps[:, 1, 2] = 0.8  # the patch that asks
    maps[1, 3, 0] = 0.02
    picture = noise().resize((64, 64))
    options = {"words": "", "quantity": "", "grid": (4, 4), "opacity": 1.0}
    frame = render.sheets(picture, maps, query=(1, 2), **options)[1]
    side = frame.width // 4
    brightest = render.colourise(np.ones(1), "inferno", (0, 1))[0]
    assert frame.getpixel((side // 2, 3 * side + side // 2)) == tuple(brightest)
    assert frame.getpixel((2 * side, side)) == (255, 255, 255)  # and has a frame


def test_animation_has_a_frame_a_layer_each_on_its_own_scale(explanation):
    settings = MapSettings(map="attention", head=1, query=(1, 1))
    frames = export.animation(explanation, settings)
    assert len(frames) == explanation.layers and len({frame.size for frame in frames}) == 1
    maps = torch.stack([explanation.attention(i, 1, (1, 1)) for i in range(explanation.layers)])
    looks = export.looks(explanation, settings) | {"layers": True}
    looks["words"] = f"{explanation.model_name}: {export.caption(explanation, settings, False)}"
    picture = explanation.view.preview(export.ANIMATION_SIDE)
    alike = render.sheets(picture, maps, **looks)
    for frame, expected in zip(frames, alike, strict=True):
        assert np.array_equal(np.asarray(frame), np.asarray(expected))
    # A layer in which all is ten times larger changes nothing in another one.
    others = maps.clone()
    others[0] *= 10
    apart = render.sheets(picture, others, **looks)
    assert np.array_equal(np.asarray(apart[1]), np.asarray(frames[1]))
    assert not np.array_equal(np.asarray(apart[0]), np.asarray(frames[0]))  # its numbers


@pytest.mark.parametrize(
    ("settings", "key", "ends"),
    [
        (VIEWS["special"][0], "special", ("-0.40 pp", "+0.40 pp")),
        (VIEWS["raw"][0], "to", ("0.10%", ">= 0.40%")),
        (VIEWS["rollout"][0], "share", ("0.10%", "0.40%")),
        (MapSettings(map="random"), "random", ("0.001", "0.004")),
        (VIEWS["class"][0], "logit", ("0.001", "0.004")),
    ],
    ids=["special", "to", "rollout", "random", "relevance"],
)
def test_a_sheet_measures_what_the_page_says(explanation, settings, key, ends):
    looks = export.looks(explanation, settings)
    assert looks["quantity"] == EXPLORER_TEXTS["en"][f"legend_{key}"]
    low = -0.004 if looks["signed"] else 0.001
    cut = looks["query"] is not None
    assert render.scale_words((low, 0.004), looks["signed"], looks["percent"], cut) == ends


def test_words_of_a_narrow_sheet_are_not_cut(explanation):
    """A legend with long words needs two lines there; nothing is drawn on the rim."""
    settings, _ = VIEWS["special"]
    looks = export.looks(explanation, settings)
    heat = export.shown_map(explanation, settings)[None]
    narrow, wide = (
        render.sheets(noise().resize((width, 448)), heat, **looks)[0] for width in (240, 480)
    )
    assert narrow.height > wide.height
    for sheet in (narrow, wide):
        assert (np.asarray(sheet)[450:, -8:] == 255).all()


@pytest.mark.parametrize("name", ["special", "raw"])
def test_a_gif_keeps_the_colours_of_its_legend(explanation, tmp_path, name):
    settings, _ = VIEWS[name]
    export.save_animation(explanation, settings, tmp_path / "layers.gif")
    ends = render.colourise(
        np.array([0.0, 0.5, 1.0]), "RdBu_r" if name == "special" else "inferno", (0, 1)
    )
    with Image.open(tmp_path / "layers.gif") as film:
        assert film.n_frames == explanation.layers
        for layer in range(film.n_frames):
            film.seek(layer)
            below = np.asarray(film.convert("RGB")).astype(int)[film.width + 40 :]
            for colour in ends:
                far = np.abs(below - colour.astype(int)).max(axis=-1)
                assert (far <= 6).sum() >= 10, (layer, colour)
