"""Pictures: the right pixels carry the right colours."""

import numpy as np
import pytest
from PIL import Image, ImageColor
from support.models import small_classifier

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
        accent = ImageColor.getrgb(render.ACCENT)
        assert (pixels[:, 800:] == accent).all(axis=-1).sum() > 500  # and the bars


def test_differences_have_zero_in_the_middle_whatever_the_values():
    for heat in (np.array([[0.0, 3.0]]), np.array([[-3.0, 1.0]]), np.zeros((1, 2))):
        low, high = render.scale_around_zero(heat)
        assert low == -high < 0
        (zero,) = render.colourise(np.zeros(1), render.DIFFERENCES, (low, high))
        assert zero.min() > 240  # white
    assert render.scale_around_zero(np.array([[-3.0, 1.0]])) == (-3, 3)
    ramp = render.colourise(np.linspace(-1, 1, 65), render.DIFFERENCES, (-1, 1)).astype(int)
    red, blue = ramp[:, 0], ramp[:, 2]
    assert (red[40:] > blue[40:]).all() and (red[:25] < blue[:25]).all()


def test_a_difference_is_drawn_with_its_scale_below():
    heat = np.zeros((2, 4))
    heat[0, 0], heat[1, 3] = 2, -1
    picture = np.asarray(render.difference(WHITE, heat, "dog", "cat")).astype(int)
    assert picture.shape[0] > picture.shape[1] // 2 and picture.shape[1] == 448
    plus, minus, zero = picture[10, 10], picture[214, 438], picture[10, 438]
    assert plus[0] > plus[2] + 40 and minus[2] > minus[0] + 20 and np.ptp(zero) < 15
    row = picture[224 + 18]
    coloured = np.flatnonzero(np.ptp(row, axis=-1) > 20)
    assert coloured[0] + coloured[-1] == pytest.approx(447, abs=3)  # as long on either side
    assert row[coloured[0] + 3, 2] > row[coloured[0] + 3, 0]  # blue on the left
    assert row[coloured[-1] - 3, 0] > row[coloured[-1] - 3, 2]  # red on the right
