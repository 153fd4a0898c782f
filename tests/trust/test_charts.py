"""Charts: every number is where it belongs."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from support.models import small_classifier

from vit_demo import faithful
from vit_demo.render import ACCENT
from vit_demo.trust import charts


def has(picture, colour: str) -> bool:
    """Whether a colour is in a picture, to the bit."""
    wanted = np.round(np.multiply(to_rgb(colour), 255)).astype(int)
    return bool((np.asarray(picture) == wanted).all(axis=-1).any())


def test_the_wall_of_heads_has_the_last_layer_on_top_and_zero_white():
    changes = torch.zeros(3, 2)
    changes[0, 0], changes[2, 1] = -0.5, 0.25  # the first layer down on the left
    picture = np.asarray(charts.heads(changes, "cat")).astype(int)
    height, width = picture.shape[:2]
    inside = picture[: int(height * 0.85), : int(width * 0.8)]  # without the legend
    blue = np.argwhere(inside[..., 2] > inside[..., 0] + 60)
    red = np.argwhere(inside[..., 0] > inside[..., 2] + 60)
    assert blue[:, 0].min() > red[:, 0].max() and blue[:, 1].max() < red[:, 1].min()
    dark = inside[tuple(blue.T)].sum(axis=-1).min()
    assert dark < inside[tuple(red.T)].sum(axis=-1).min()  # half the change, half the colour


@pytest.mark.parametrize("methods", [("rollout",), tuple(faithful.METHODS)])
def test_trust_has_a_column_for_each_map(picture, methods):
    explanation = small_classifier().explain(picture)
    maps = {name: faithful.METHODS[name](explanation, 1) for name in methods}
    page = charts.trust(explanation, maps, faithful.trust_all(explanation, maps, 1))
    assert page.width == pytest.approx(299 * (len(methods) + 1), abs=2)
    for colour in (ACCENT, charts.WARM, charts.ALL_ORDERS):
        assert has(page, colour)


@pytest.mark.parametrize("options", [{}, {"channels": 1}, {"image_size": (16, 48)}])
def test_random_weights_have_a_row_for_each_method(picture, options):
    classifier = small_classifier(**options)
    if "channels" in options:
        from dataclasses import replace

        classifier.preprocess = replace(classifier.preprocess, mean=(0.5,), std=(0.5,))
    explanation = classifier.explain(picture)
    checks = {name: faithful.random_weights(explanation, name) for name in ("raw", "random")}
    both, one = (
        charts.random_weights(explanation, dict(list(checks.items())[:count])) for count in (2, 1)
    )
    assert both.height > one.height and both.width == one.width
    assert has(both, charts.WARM)  # chance fails
    maps = {"raw": explanation.attention(-1, "mean")}
    assert charts.trust(explanation, maps, faithful.trust_all(explanation, maps)).width > 500
