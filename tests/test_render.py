"""Pictures: the right pixels carry the right colours."""

import numpy as np
import pytest
from models import small_classifier
from PIL import Image

from vit_demo import render

WHITE = Image.new("RGB", (64, 32), "white")


def test_an_overlay_paints_each_patch_as_one_flat_block():
    heat = np.zeros((2, 4))
    heat[1, 2] = 1
    picture = np.asarray(render.overlay(WHITE, heat, opacity=1, least_size=64))
    assert picture.shape == (32, 64, 3)
    top = render.colourise(np.ones(1), "inferno", (0, 1))
    bottom = render.colourise(np.zeros(1), "inferno", (0, 1))
    expected = np.broadcast_to(bottom, picture.shape).copy()
    expected[16:32, 32:48] = top
    np.testing.assert_array_equal(picture, expected)


def test_opacity_mixes_with_the_grey_picture():
    heat = np.ones((2, 4))
    untouched = np.asarray(render.overlay(WHITE, heat, opacity=0, least_size=64))
    np.testing.assert_array_equal(untouched, np.asarray(WHITE))
    half = np.asarray(render.overlay(WHITE, heat, opacity=0.5, scale=(0, 1), least_size=64))
    colour = render.colourise(np.ones(1), "inferno", (0, 1)).astype(float)
    assert np.abs(half[0, 0] - (255 + colour) / 2).max() <= 1


def test_small_pictures_are_enlarged_and_smooth_has_no_blocks():
    heat = np.random.default_rng(0).random((7, 7))
    small = Image.new("L", (28, 28))
    blocks = np.asarray(render.overlay(small, heat, opacity=1))
    assert blocks.shape == (448, 448, 3)
    assert len(np.unique(blocks.reshape(-1, 3), axis=0)) <= 49
    smooth = np.asarray(render.overlay(small, heat, opacity=1, smooth=True))
    assert len(np.unique(smooth.reshape(-1, 3), axis=0)) > 49


def test_the_colour_scale_is_monotone_and_safe_for_flat_maps():
    for name in render.COLOUR_MAPS:
        ramp = render.colourise(np.linspace(0, 1, 64), name, (0, 1)).astype(float)
        lightness = ramp @ [0.2126, 0.7152, 0.0722]
        assert (np.diff(lightness) > 0).mean() > 0.95
    flat = render.colourise(np.full(3, 0.2), "viridis", render.scale_of(np.full(3, 0.2)))
    assert len(np.unique(flat, axis=0)) == 1
    with pytest.raises(ValueError, match="inferno"):
        render.colourise(np.zeros(1), "jet", (0, 1))


def test_the_wall_shows_the_last_layer_on_top_on_one_scale():
    maps = np.zeros((3, 2, 4, 4))
    maps[2, 1] = 1
    wall = np.asarray(render.wall(maps, tile=20))
    bright = render.colourise(np.ones(1), "inferno", (0, 1))
    rows, cols = np.where((wall == bright).all(axis=-1))
    tile = (rows < 60) & (cols > 64)  # the legend has the colour too
    assert rows[tile].max() - rows[tile].min() == 19
    assert cols[tile].max() - cols[tile].min() == 19
    assert rows[tile].min() < 30  # the first row of tiles
    own = np.asarray(render.wall(maps * 0.5 + np.linspace(0, 1, 4), shared=False, tile=20))
    assert not np.array_equal(own, wall)


@pytest.mark.parametrize("options", [{}, {"num_classes": 0}, {"image_size": (16, 48)}])
def test_the_figure_has_picture_answer_map_and_heads(options):
    explanation = small_classifier(**options).explain(Image.new("RGB", (90, 60), "teal"))
    heads = dict(enumerate(explanation.head_rollouts().numpy()))
    page = render.figure(explanation, explanation.rollout(), heads, title="a", heads_title="b")
    assert page.width > 1000 and page.height > 400
    pixels = np.asarray(page)
    assert (pixels == (0, 128, 128)).all(axis=-1).any()  # the original is on it
    if explanation.labels:
        accent = (0x2F, 0x6F, 0xDE)
        assert (pixels[:, 800:] == accent).all(axis=-1).sum() > 500  # and the bars
