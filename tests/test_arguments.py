"""Whatever argument is given to the library, an answer or one plain sentence comes back."""

import math
import re

import numpy as np
import pytest
import torch
from support import corpus

from vit_demo import faithful, knockout
from vit_demo.export import description, json_text
from vit_demo.map_settings import MapSettings
from vit_demo.view import Preprocess

LONG, NONSENSE = "x" * 10_000_000, object()
NO_INDEX = [99, -99, 1.5, math.nan, math.inf, "a", LONG, [1], {}, NONSENSE, 10**6000, b"1"]
NO_SHARE = [-0.1, 1.1, math.nan, math.inf, -math.inf, "0.5", LONG, [0.5], NONSENSE, 10**400, 1j]
NO_WORD = ["", "Mean", LONG, 5, None, ["mean"], {}, math.nan, NONSENSE]
NO_QUERY = [(99, 0), (0, 99), (0,), (0, 0, 0), "ab", ("a", "b"), (0.5, 0), 10**6000, LONG, NONSENSE]
NO_LABEL = ["no such label", LONG, -1, 99, 1.5, math.nan, NONSENSE, b"3", 10**6000, ""]
BAD = {
    "top": [(lambda e, x: e.top(x), [0, -1, 1.5, math.nan, math.inf, "3", LONG, [1], NONSENSE])],
    "layer": [
        (lambda e, x: e.rollout(x), NO_INDEX),
        (lambda e, x: e.rollout(start=x), [*NO_INDEX, None]),
        (lambda e, x: e.head_rollouts(x), NO_INDEX),
        (lambda e, x: e.attention(x), [*NO_INDEX, None]),
    ],
    "head": [(lambda e, x: e.attention(0, x), NO_INDEX)],
    "query": [
        (lambda e, x: e.rollout(query=x), NO_QUERY),
        (lambda e, x: e.head_rollouts(query=x), NO_QUERY),
        (lambda e, x: e.attention(0, 0, x), NO_QUERY),
        (lambda e, x: e.attention(0, 0, x, direction="to"), NO_QUERY),
        (lambda e, x: e.arrays(query=x), NO_QUERY),
    ],
    "shares": [
        (lambda e, x: e.rollout(residual=x), [*NO_SHARE, None]),
        (lambda e, x: e.rollout(discard=x), [*NO_SHARE, None, 1]),
        (lambda e, x: e.head_rollouts(residual=x), [*NO_SHARE, None]),
        (lambda e, x: e.head_rollouts(discard=x, below="same"), [*NO_SHARE, 1]),
    ],
    "words": [
        (lambda e, x: e.rollout(fusion=x), NO_WORD),
        (lambda e, x: e.head_rollouts(fusion=x), NO_WORD),
        (lambda e, x: e.head_rollouts(below=x), NO_WORD),
        (lambda e, x: e.attention(direction=x), NO_WORD),
        (lambda e, x: e.classifier.explain(corpus.picture(), x), NO_WORD),
    ],
    "label": [
        (lambda e, x: e.relevance(x), NO_LABEL),
        (lambda e, x: e.grad_cam([x, 0]), NO_LABEL),
        (lambda e, x: e.gradient_rollout(x), NO_LABEL),
        (lambda e, x: faithful.method_maps(e, x), NO_LABEL),
        (lambda e, x: knockout.knockout_wall(e, x), NO_LABEL),
        (lambda e, x: faithful.trust(e, e.rollout(), x), NO_LABEL),
    ],
    "faithful": [
        (lambda e, x: faithful.trust(e, x), [None, 5, LONG, torch.zeros(2), [[1]], NONSENSE]),
        (lambda e, x: faithful.trust(e, torch.full(e.grid, x)), [math.nan, math.inf]),
        (lambda e, x: faithful.trust(e, e.rollout(), remove=x), NO_WORD),
        (lambda e, x: faithful.trust(e, e.rollout(), orders=x), [0, 9, 10**12, 10.5, "ten", None]),
        (lambda e, x: faithful.trust(e, e.rollout(), steps=x), [0, -1, 1.5, math.nan, "a"]),
        (lambda e, x: faithful.trust(e, e.rollout(), batch=x), [0, -1, 1.5, math.nan, "a", None]),
        (lambda e, x: faithful.trust(e, e.rollout(), seed=x), [-1, 1.5, 10**30, "a", None]),
        (lambda e, x: faithful.random_weights(e, x), [LONG, "", 5, None, ["rollout"], NONSENSE]),
        (lambda e, x: faithful.random_weights(e, seed=x), [-1, 10**30, "a", None]),
    ],
    "knock-out": [
        (lambda e, x: knockout.without(e, heads=x), [5, None, [5], [(0,)], [(0, 99)], [("a", 0)]]),
        (lambda e, x: knockout.without(e, layers=x), [5, None, [99], ["a"], [None], [1.5]]),
        (lambda e, x: knockout.without(e, patches=x), [5, None, [5], [(99, 0)], [(0, "a")]]),
        (lambda e, x: knockout.without(e, patches=[(0, 0)], fill=x), NO_WORD),
        (lambda e, x: knockout.without(e, heads=[(0, 0)], top=x), [0, -1, 1.5, "a", None]),
    ],
}


@pytest.fixture(scope="module")
def explanation(vit_mnist):
    return vit_mnist.explain(corpus.picture())


@pytest.mark.parametrize("group", BAD)
def test_arguments_that_make_no_sense(explanation, group):
    for call, values in BAD[group]:
        for value in values:
            with pytest.raises(ValueError, match=r"; |\. ") as error:
                call(explanation, value)
            message = str(error.value)
            assert len(message) < 300 and message.endswith("."), message[:300]
            assert re.search(r"\b(use|give|ask|closest)\b", message, re.IGNORECASE), message
            assert "\n" not in message and "object at 0x" not in message or value is NONSENSE


def test_settings_of_numpy_numbers_can_be_written_as_json(explanation):
    one, half = np.int64(1), np.float32(0.5)
    theirs = MapSettings(layer=one, head=one, query=np.array([one, 2]), label=one, opacity=half)
    assert theirs == MapSettings(layer=1, head=1, query=(1, 2), label=1, opacity=0.5)
    assert '"query": [\n      1,\n      2' in json_text(description(explanation, theirs))
    size = Preprocess(size=np.array([32, 16])).size
    assert size == (32, 16) and all(type(side) is int for side in size)


def test_unusual_arguments_that_do_make_sense(explanation):
    """The checks are no stricter than Python: numpy's numbers, tensors and lists are as good."""
    e, one = explanation, np.int64(1)
    assert torch.equal(e.rollout(one), e.rollout(1))
    assert torch.equal(e.rollout(query=[1, one]), e.rollout(query=(1, 1)))
    assert torch.equal(e.rollout(query=np.array([1, 2])), e.rollout(query=(1, 2)))
    assert torch.equal(e.attention(0, torch.tensor(1)), e.attention(0, 1))
    half = e.rollout(residual=0.25)
    assert torch.equal(e.rollout(residual=np.float64(0.25)), half)
    assert torch.equal(e.rollout(residual=torch.tensor(0.25)), half)
    assert torch.equal(e.rollout(residual=1, discard=0), e.rollout(residual=1.0))
    assert torch.equal(e.relevance(one), e.relevance(1))
    assert e.top(10**6000) == e.top(10)
    assert len(faithful.trust(e, e.rollout(), steps=10**9).kept) == 17  # 16 patches
    assert knockout.without(e, heads=np.array([[0, 0]])).after
