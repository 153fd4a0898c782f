"""Heads, layers and patches switched off, against models in which they are cut out of the weights."""

import copy

import pytest
import torch
from support.models import WITH_HEAD, small_classifier

from vit_demo.trust.knockout import knockout_wall, without
from vit_demo.trust.progress import Cancelled


def cut_out(model, layer: int, head: int):
    """The same model in which the projection no longer reads this head's output."""
    model = copy.deepcopy(model)
    d = model.config.embed_dim // model.config.heads
    model.blocks[layer].attn.proj.weight[:, head * d : (head + 1) * d] = 0
    return model


@pytest.mark.parametrize("shape", WITH_HEAD.values(), ids=WITH_HEAD.keys())
def test_the_wall_is_the_change_of_each_head_cut_out(shape, picture):
    explanation = small_classifier(**shape).explain(picture)
    index = explanation.top(1)[0].index
    before = explanation.logits.softmax(0)[index]
    seen = []
    wall = knockout_wall(explanation, progress=lambda *share: seen.append(share))
    assert wall.shape == (3, 3) and seen == [(1, 3), (2, 3), (3, 3)]
    for layer in range(3):
        for head in range(3):
            logits = cut_out(explanation.classifier.model, layer, head)(explanation.pixels)[0]
            expected = logits.softmax(0)
            assert wall[layer, head] == pytest.approx((expected[index] - before).item(), abs=1e-6)
            after = without(explanation, heads=[(layer, head)], top=5).after
            for change in after:
                assert change.after == pytest.approx(expected[change.index].item(), abs=1e-6)
    other = (index + 1) % 5
    by_number, by_name = (knockout_wall(explanation, x) for x in (other, f"label {other}"))
    assert torch.equal(by_number, by_name) and not torch.allclose(by_number, wall)


def test_without_anything_nothing_changes(picture):
    explanation = small_classifier().explain(picture)
    result = without(explanation, top=3)
    top = explanation.top(3)
    for changes in (result.before, result.after):
        assert [c.index for c in changes] == [p.index for p in top]
        assert [c.label for c in changes] == [p.label for p in top]
        for change, p in zip(changes, top, strict=True):
            assert change.before == pytest.approx(p.probability)
            assert change.after == pytest.approx(p.probability, abs=1e-6)


def test_a_whole_layer_leaves_the_bias_of_its_projection(picture):
    explanation = small_classifier().explain(picture)
    got = without(explanation, layers=[-1], top=5)
    model = copy.deepcopy(explanation.classifier.model)
    model.blocks[2].attn.proj.weight.zero_()
    expected = model(explanation.pixels)[0].softmax(0)
    assert [c.after for c in got.after] == pytest.approx(expected.sort(descending=True)[0].tolist())
    heads = without(explanation, heads=[(2, h) for h in range(3)], top=5)
    assert [c.after for c in heads.after] == pytest.approx([c.after for c in got.after])


def test_painted_patches_are_black_before_normalisation(picture):
    explanation = small_classifier().explain(picture)
    painted = explanation.view.picture.copy()
    painted.paste((0, 0, 0), (16, 8, 24, 16))  # row 1, column 2
    painted.paste((0, 0, 0), (0, 24, 8, 32))
    expected = explanation.classifier.explain(painted)
    got = without(explanation, patches=[(1, 2), (3, 0)], top=5)
    assert [c.index for c in got.after] == [p.index for p in expected.top(5)]
    for change, p in zip(got.after, expected.top(5), strict=True):
        assert change.after == pytest.approx(p.probability, abs=1e-6)
    blurred = without(explanation, patches=[(1, 2)], fill="blur", top=5)
    assert blurred.after != without(explanation, patches=[(1, 2)], top=5).after


def test_the_loaded_model_is_not_touched_and_stopping_stops(picture):
    explanation = small_classifier().explain(picture)
    weights = {k: v.clone() for k, v in explanation.classifier.model.state_dict().items()}
    with pytest.raises(Cancelled, match="1 of 3"):
        knockout_wall(explanation, progress=lambda done, total: False)
    without(explanation, layers=[0], heads=[(1, 1)], patches=[(0, 0)])
    for name, value in explanation.classifier.model.state_dict().items():
        assert torch.equal(value, weights[name])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"heads": [(0, 3)]}, "no head 3"),
        ({"layers": [3]}, "no layer 3"),
        ({"patches": [(4, 0)]}, "no row 4"),
        ({"patches": [(0, 0)], "fill": "red"}, "black"),
    ],
)
def test_wrong_questions_say_what_is_possible(picture, wrong, words):
    with pytest.raises(ValueError, match=words):
        without(small_classifier().explain(picture), **wrong)


def test_a_headless_model_has_no_answer_to_change(picture):
    explanation = small_classifier(num_classes=0).explain(picture)
    for ask in (without, knockout_wall):
        with pytest.raises(ValueError, match="maps only"):
            ask(explanation)
