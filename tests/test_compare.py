"""Two explanations beside each other, against formulas written another way."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.models import WITH_HEAD, noise, small_classifier

from vit_demo.checkpoints import Checkpoint
from vit_demo.compare import (
    SHARES,
    common_grid,
    compare,
    coverage,
    figure,
    matched,
    matching,
    matching_patch,
    on_grid,
    shared_labels,
)
from vit_demo.explain import Classifier
from vit_demo.export import shown_map
from vit_demo.labels import same_labels
from vit_demo.map_settings import CLASS_MAPS, PLAIN_MAPS, MapSettings
from vit_demo.view import Preprocess

pytestmark = pytest.mark.usefixtures("one_thread")


def cropping(classifier: Classifier, crop_pct: float, labels: list[str] | None = None):
    """The same model with another way to cut out the centre, or with other names for its classes."""
    preprocess = Preprocess(size=classifier.preprocess.size, crop_pct=crop_pct)
    labels = labels or classifier.labels
    return Classifier(Checkpoint(classifier.name, classifier.model, labels, preprocess), "cpu")


@pytest.fixture(scope="module")
def small() -> Classifier:
    return small_classifier()


@pytest.fixture(scope="module")
def deep() -> Classifier:
    """More layers, heads and patches than the small one, which it does not see the edge of."""
    options = {"image_size": 40, "patch_size": 5, "depth": 5, "heads": 4, "embed_dim": 24}
    return cropping(small_classifier(1, **options), 0.7)


@pytest.fixture
def pair(small, deep, picture):
    return small.explain(picture), deep.explain(picture)


# The common grid


def raster(heat: np.ndarray, box: tuple, frame: tuple, unit: int) -> np.ndarray:
    """A map as density on single points, `unit` of them a length: the plain way to share out by area.
    Box and frame lie on whole points."""
    height, width = (frame[3] - frame[1]) * unit, (frame[2] - frame[0]) * unit
    points = np.zeros((height, width))
    tall, wide = (box[3] - box[1]) * unit, (box[2] - box[0]) * unit
    block = tall // heat.shape[0], wide // heat.shape[1]
    assert (block[0] * heat.shape[0], block[1] * heat.shape[1]) == (tall, wide)
    density = np.kron(heat, np.ones(block)) / (block[0] * block[1])
    top, left = (box[1] - frame[1]) * unit, (box[0] - frame[0]) * unit
    points[top : top + tall, left : left + wide] = density
    return points


def blocks(points: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    rows, cols = grid
    height, width = points.shape
    return points.reshape(rows, height // rows, cols, width // cols).sum(axis=(1, 3))


@pytest.mark.parametrize(
    ("shape", "box", "frame", "grid", "unit"),
    [
        ((4, 4), (0, 0, 1, 1), (0, 0, 1, 1), (6, 6), 12),
        ((12, 12), (0, 0, 1, 1), (0, 0, 1, 1), (14, 14), 84),
        ((3, 5), (2, 1, 7, 4), (0, 0, 10, 6), (4, 7), 28),
        ((2, 3), (-1, 0, 2, 2), (-1, -1, 4, 3), (8, 5), 6),
    ],
)
def test_a_map_on_another_grid_is_shared_out_by_area(shape, box, frame, grid, unit):
    heat = np.random.default_rng(0).normal(size=shape)
    found = on_grid(torch.from_numpy(heat), box, frame, grid)
    points = raster(heat, box, frame, unit)
    np.testing.assert_allclose(found, blocks(points, grid), atol=1e-14)
    inside = blocks(raster(np.ones((1, 1)), box, frame, unit), grid)  # of the box in each cell
    cell = (frame[2] - frame[0]) * (frame[3] - frame[1]) / (grid[0] * grid[1])
    area = (box[2] - box[0]) * (box[3] - box[1])
    np.testing.assert_allclose(coverage(box, frame, grid), inside * area / cell, atol=1e-14)


edges = st.tuples(*[st.floats(-50, 50)] * 2, *[st.floats(51, 300)] * 2)


@given(one=edges, other=edges, sizes=st.tuples(*[st.integers(1, 20)] * 4), seed=st.integers(0, 99))
def test_sums_stay_whatever_the_boxes(one, other, sizes, seed):
    frame = (*map(min, one[:2], other[:2]), *map(max, one[2:], other[2:]))
    grids = (sizes[:2], sizes[2:])
    grid = common_grid(frame, (one, other), grids)
    for box, shape in zip((one, other), grids, strict=True):
        heat = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()
        laid = on_grid(heat, box, frame, grid)
        assert laid.sum().item() == pytest.approx(heat.sum().item(), abs=1e-9)
        assert ((coverage(box, frame, grid) >= 0) & (coverage(box, frame, grid) < 1 + 1e-9)).all()


def test_on_the_same_grid_nothing_changes():
    heat = torch.rand(7, 9)
    box = (3.25, 1.5, 90.75, 71.5)
    assert torch.equal(on_grid(heat, box, box, (7, 9)), heat.double())
    assert common_grid(box, (box, box), ((7, 9), (7, 9))) == (7, 9)


def test_cells_are_as_large_as_the_smaller_patches():
    whole, middle = (0, 0, 100, 100), (10, 10, 90, 90)
    assert common_grid(whole, (whole, whole), ((12, 12), (14, 14))) == (14, 14)
    assert common_grid(whole, (whole, middle), ((8, 8), (16, 12))) == (20, 15)


# Which layer, head, patch and label


@given(st.integers(1, 40), st.integers(1, 40))
def test_first_to_first_last_to_last_and_in_order(count, others):
    found = [matching(index, count, others) for index in range(count)]
    assert found == sorted(found) and found[-1] == others - 1
    if count > 1:
        assert found[0] == 0
        for index, other in enumerate(found):  # nobody lies nearer
            place = index / (count - 1)
            near = [abs(place - k / (others - 1)) for k in range(others)] if others > 1 else [0]
            assert near[other] == pytest.approx(min(near))
    if count == others:
        assert found == list(range(count))


def test_a_patch_is_found_by_the_point_that_it_shows(pair):
    first, second = pair
    for row in range(first.grid[0]):
        for col in range(first.grid[1]):
            left, top, right, bottom = first.view.patch_box(row, col)
            x, y = (left + right) / 2, (top + bottom) / 2
            showing = [
                (r, c)
                for r in range(second.grid[0])
                for c in range(second.grid[1])
                if second.view.patch_box(r, c)[0] <= x < second.view.patch_box(r, c)[2]
                and second.view.patch_box(r, c)[1] <= y < second.view.patch_box(r, c)[3]
            ]
            found = matching_patch(first, second, (row, col))
            assert showing == ([] if found is None else [found])


def test_in_two_pictures_a_patch_is_found_by_its_place(small, deep):
    first, second = small.explain(noise(1)), small.explain(noise(2))
    for row in range(first.grid[0]):
        for col in range(first.grid[1]):
            assert matching_patch(first, second, (row, col)) == (row, col)
    finer = deep.explain(noise(2))  # 4 x 4 patches here, 8 x 8 there
    assert matching_patch(first, finer, (0, 3)) == (1, 7)
    assert matching_patch(first, finer, (-1, 1)) == (7, 3)


def test_a_patch_that_the_second_did_not_see(pair):
    first, second = pair
    assert matching_patch(first, second, (0, 0)) is None
    with pytest.raises(ValueError, match="did not see this patch"):
        compare(first, second, MapSettings(query=(0, 0)))
    assert matched(MapSettings(query=(1, 2)), first, second).query is not None


def test_labels_are_matched_by_name():
    here = ["tabby, tabby cat", "crane", "Lion", "crane, machine", "dog", "cat", "kitty"]
    there = ["lion, king of beasts", "tabby cat", "crane", "Dog", "cat, kitty"]
    assert same_labels(here, there) == {0: 1, 1: 2, 2: 0, 4: 3, 5: 4}
    assert same_labels(here, here) == {index: index for index in range(7)}
    assert same_labels(["crane, bird", "crane, machine"], ["crane"]) == {}  # it decides nothing
    assert same_labels([], there) == same_labels(here, []) == {}


def test_a_label_is_asked_about_by_name(small, deep, picture):
    turned = cropping(deep, 0.7, [f"Label {i}, thing" for i in (4, 3, 2, 1)] + ["other"])
    first, second = small.explain(picture), turned.explain(picture)
    comparison = compare(first, second, MapSettings(map="contribution", label=1, minus=4))
    own = comparison.settings
    assert (own[0].label, own[0].minus, own[1].label, own[1].minus) == (1, 4, 3, 0)
    torch.testing.assert_close(comparison.heats[1], second.contribution(3, minus=0))
    with pytest.raises(ValueError, match="has no label 'label 0'"):
        compare(first, second, MapSettings(map="relevance", label=0))
    each = compare(first, second, MapSettings(map="relevance")).settings
    assert (each[0].label, each[1].label) == (first.label_index(), second.label_index())
    by_name = compare(first, second, MapSettings(map="relevance", label="label 2"))
    assert by_name.settings[1].label == 2


# The comparison


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """From the textbook, with mean ranks, value by value."""

    def ranks(values):
        return [
            np.mean([k + 1 for k, other in enumerate(sorted(values)) if other == value])
            for value in values
        ]

    return float(np.corrcoef(ranks(list(a)), ranks(list(b)))[0, 1])


@pytest.mark.parametrize("name", [*PLAIN_MAPS, *CLASS_MAPS])
def test_both_maps_their_difference_and_correlation(pair, name):
    first, second = pair
    settings = MapSettings(map=name, layer=1, head="mean" if name == "rollout" else 2, query=(1, 2))
    if name in CLASS_MAPS:
        settings = MapSettings(map=name, label=1)
    comparison = compare(first, second, settings)
    ours, theirs = comparison.settings
    if name in PLAIN_MAPS:
        assert (ours.layer, theirs.layer) == (1, 2)  # 1 of 0..2 is 2 of 0..4
        assert name == "rollout" or theirs.head == 3  # the last of three, the last of four
        assert theirs.query == matching_patch(first, second, (1, 2))
    for explanation, own, heat in zip(pair, comparison.settings, comparison.heats, strict=True):
        assert torch.equal(heat, shown_map(explanation, own))
    frame = np.array(comparison.frame)
    boxes = np.array([e.view.box for e in pair])
    np.testing.assert_array_equal(frame, [*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)])
    for heat, laid in zip(comparison.heats, comparison.maps, strict=True):
        total = 1 if name in SHARES else heat.double().abs().sum()
        assert float(laid.sum()) == pytest.approx(float(heat.double().sum() / total), abs=1e-9)
    difference = comparison.maps[0] - comparison.maps[1]
    assert torch.equal(comparison.difference, difference)
    a, b = (laid[comparison.seen].float().numpy() for laid in comparison.maps)
    assert 4 < len(a) < comparison.seen.numel()  # the deep one does not see the edge
    assert comparison.correlation == pytest.approx(spearman(a, b), abs=1e-9)


@pytest.mark.parametrize("shape", WITH_HEAD)
def test_with_itself(shape, picture):
    explanation = small_classifier(**WITH_HEAD[shape]).explain(picture)
    for settings in (MapSettings(), MapSettings(map="head_rollout", head=1, layer=0)):
        comparison = compare(explanation, explanation, settings)
        assert comparison.difference.abs().max() == 0 and comparison.correlation == 1
        assert comparison.seen.all() and comparison.maps.shape[1:] == explanation.grid
        assert comparison.agree is True
        assert all(label.apart == 0 for label in comparison.labels)


def test_the_same_picture_opened_twice_is_one_picture(small, tmp_path):
    noise().save(tmp_path / "one.png")
    first, second = (small.explain(tmp_path / "one.png") for _ in range(2))
    assert compare(first, second).frame == first.view.box
    assert compare(first, small.explain(noise(5))).frame == (0, 0, 1, 1)


def test_two_pictures_of_different_shape(small):
    pictures = (noise(), Image.fromarray(np.asarray(noise(1)).transpose(1, 0, 2).copy()))
    first, second = (small.explain(picture, fit="native") for picture in pictures)
    assert first.grid != second.grid
    comparison = compare(first, second)
    assert comparison.maps.shape[1:] == tuple(map(max, first.grid, second.grid))
    assert comparison.seen.all()
    for heat, laid in zip(comparison.heats, comparison.maps, strict=True):
        assert float(laid.sum()) == pytest.approx(float(heat.double().sum()), abs=1e-9)


def test_the_labels_they_disagree_on(small, picture):
    other = cropping(small_classifier(3), 1.0, ["label 2", "label 0", "b", "c", "d"])
    first, second = small.explain(picture), other.explain(picture)
    p, q = (e.logits.double().softmax(0).tolist() for e in (first, second))
    expected = {("label 2", p[2], q[0]), ("label 0", p[0], q[1])}
    expected |= {(f"label {i}", p[i], None) for i in (1, 3, 4)}
    expected |= {(name, None, q[i]) for i, name in enumerate("bcd", start=2)}
    found = shared_labels(first, second)
    assert {(x.label, x.first, x.second) for x in found} == expected
    apart = [abs((x.first or 0) - (x.second or 0)) for x in found]
    assert apart == sorted(apart, reverse=True)
    few = shared_labels(first, second, top=1)
    assert len(few) <= 2 and {x.label for x in few} <= {x.label for x in found}


@pytest.mark.parametrize("names", ["same", "turned", "strange"])
def test_whether_they_agree(small, picture, names):
    first = small.explain(picture)
    best = first.label_index()
    labels = {
        "same": list(small.labels),
        "turned": [*small.labels[1:], small.labels[0]],  # the same logits, other names
        "strange": list("abcde"),
    }[names]
    second = cropping(small, 1.0, labels).explain(picture)
    assert second.label_index() == best
    assert compare(first, second).agree is {"same": True, "turned": False, "strange": None}[names]


def test_a_model_without_labels_has_maps_to_compare(small, picture):
    headless = small_classifier(2, num_classes=0).explain(picture)
    comparison = compare(small.explain(picture), headless)
    assert comparison.labels == [] and comparison.agree is None
    assert math.isfinite(comparison.correlation)
    with pytest.raises(ValueError, match="maps only"):
        compare(small.explain(picture), headless, MapSettings(map="contribution"))


def test_what_is_written_down(pair):
    comparison = compare(*pair, MapSettings(map="attention", head=1, layer=-1))
    about = json.loads(json.dumps(comparison.describe()))
    assert about["same_picture"] is True and about["grid"] == list(comparison.seen.shape)
    assert about["first"]["settings"]["layer"] == 2 and about["second"]["settings"]["layer"] == 4
    assert about["correlation"] == pytest.approx(comparison.correlation)
    assert about["first"]["sum"] == pytest.approx(float(comparison.maps[0].sum()), abs=1e-6)
    arrays = comparison.arrays()
    assert arrays["first"].shape == pair[0].grid and arrays["second"].shape == pair[1].grid
    np.testing.assert_array_equal(
        arrays["difference"], arrays["first_common"] - arrays["second_common"]
    )


NEGATIVE = MapSettings(map="attention", layer=-2, head=-1, query=(-3, -3))


def test_negative_numbers_and_names_are_told_as_what_they_are(pair):
    first, second = compare(*pair, NEGATIVE).settings
    rows, cols = pair[0].grid
    assert (first.layer, first.head) == (pair[0].layers - 2, pair[0].heads - 1)
    assert first.query == (rows - 3, cols - 3)
    assert min(second.layer, second.head, *second.query) >= 0
    names = MapSettings(map="contribution", label=pair[0].labels[1], minus=pair[0].labels[0])
    assert (compare(*pair, names).settings[0].label, names.minus) == (1, pair[0].labels[0])


@pytest.mark.parametrize(
    "settings",
    [
        MapSettings(),
        NEGATIVE,
        MapSettings(map="contribution", label=1),
        MapSettings(map="contribution", label="label 1", minus="label 0"),
    ],
)
def test_the_figure(pair, small, settings):
    for both in (pair, (small.explain(noise()), small.explain(noise(1)))):
        drawn = figure(compare(*both, settings))
        assert min(drawn.size) > 500
