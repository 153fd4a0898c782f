"""The parts that the tab Inside asks for: the library's numbers, small enough; the source as it is."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from support.models import noise, small_classifier
from support.paths import ROOT

from vit_demo import inside as library
from vit_demo.anatomy import anatomy
from vit_demo.embedded import example_path
from vit_demo.ui import inside
from vit_demo.ui import server_functions as ask
from vit_demo.ui.html import EXAMPLES
from vit_demo.ui.payload import unpack

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def explanation():
    return small_classifier(registers=2).explain(noise())


@pytest.fixture(scope="module")
def large():
    """As wide as ViT-B/16 at 384 px, with two of its twelve layers."""
    shape = {"image_size": 384, "patch_size": 16, "embed_dim": 768, "depth": 2, "heads": 12}
    return small_classifier(num_classes=1000, **shape).explain(noise())


def part(e, name: str, **request) -> dict:
    """What the browser makes of an answer: the header's names and the arrays' together."""
    answer = inside.inside_part(e, {"part": name, **request})
    json.dumps(answer)
    about, arrays = unpack(base64.b64decode(answer["data"]))
    return about | arrays


def close(found, expected, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    np.testing.assert_allclose(
        np.asarray(found).ravel(), np.asarray(expected).ravel(), rtol=rtol, atol=atol
    )


def signed(found: dict, name: str) -> np.ndarray:
    return found[name].astype(np.float64) * found[f"{name}_scale"]


PLACE = {"layer": 1, "head": 2, "query": [1, 3]}


def test_patches(explanation):
    found, expected = part(explanation, "patch", query=[1, 3]), explanation.inside().patch((1, 3))
    close(found["pixels"], expected.pixels)
    close(found["convolution"], expected.by_convolution)
    close(found["unfold"], expected.by_unfold)
    assert found["difference"] == expected.difference
    picture = np.asarray(explanation.view.picture)[8:16, 24:32].transpose(2, 0, 1)
    np.testing.assert_array_equal(found["values"], picture)
    strongest = part(explanation, "kernel", query=[1, 3])
    assert strongest["channel"] == int(expected.by_convolution.abs().argmax())
    for request, channel in (({"query": [1, 3]}, strongest["channel"]), ({"channel": 5}, 5)):
        opened = explanation.inside().patch_products(channel, (1, 3))
        kernel = part(explanation, "kernel", **request)
        close(kernel["kernel"], opened.kernel)
        assert kernel["bias"] == opened.bias


def test_tokens(explanation):
    walk = explanation.inside()
    found = part(explanation, "embedding")
    close(found["lengths"], walk.embedding().lengths)
    close(found["prefix"], walk.embedding().prefix.norm(dim=-1))
    for centred in (False, True):
        cosines = library.position_similarity(explanation.classifier.model, centred=centred)
        codes = part(explanation, "positions", centred=centred)["all"]
        close(codes / 127.5 - 1, cosines, atol=0.004)
    found = part(explanation, "norm", **PLACE)
    close(found["after"], walk.layer_norm(1, (1, 3)).after)
    again = (found["before"] - found["mean"]) / found["deviation"] * found["weight"] + found["bias"]
    close(again, found["after"], atol=1e-5)
    lengths = walk.lengths()
    close(signed(part(explanation, "lengths"), "lengths"), lengths, atol=2e-5 * lengths.max())


def test_shuffled(explanation):
    found, expected = part(explanation, "shuffle"), explanation.inside().shuffle()
    np.testing.assert_array_equal(found["order"], expected.order)
    assert found["difference"] < 1e-4
    shares = expected.without_positions.softmax(dim=-1)
    for label, share, index in found["without_positions"]:
        assert label == f"label {index}"
        assert share == pytest.approx(float(shares[index]), abs=1e-6)


def test_attention(explanation):
    walk = explanation.inside()
    expected = walk.attention(1, 2, (1, 3))
    found = part(explanation, "query", **PLACE)
    close(found["query"], expected.query)
    close(found["value"], expected.values[walk.token((1, 3))])
    keys = signed(part(explanation, "keys", layer=1, head=2), "keys")
    close(keys, expected.keys, atol=2e-5 * float(expected.keys.abs().max()))
    scores = keys @ found["query"] / np.sqrt(len(found["query"]))
    close(scores, expected.scores, rtol=1e-3, atol=1e-3)
    values = signed(part(explanation, "values", layer=1, head=2), "values")
    close(values, expected.values, atol=2e-5 * float(expected.values.abs().max()))


def test_heads_residual_and_units(explanation):
    walk = explanation.inside()
    found, expected = part(explanation, "heads", **PLACE), walk.heads(1, (1, 3))
    shares = (found["shares"] / 65535) ** 2 * found["shares_scale"][:, None]
    close(shares, expected.shares, rtol=1e-3, atol=1e-6)
    close(found["lengths"], expected.written.norm(dim=-1))
    close(found["seen"], expected.seen)
    assert found["part"] == pytest.approx(float(expected.part.norm()), rel=1e-5)
    residual = walk.residual((1, 3))
    found = part(explanation, "residual", query=[1, 3])
    close(found["lengths"], residual.lengths)
    close(found["cosines"], residual.cosines)
    found, expected = part(explanation, "units", **PLACE), walk.units(1, (1, 3))
    assert found["units"] == expected.units.tolist()
    close(found["maps"], expected.maps)
    assert found["active"] == expected.active


def test_layers_and_answer(explanation):
    walk = explanation.inside()
    found, logits = part(explanation, "lens"), walk.lens()
    answer = int(explanation.logits.argmax())
    ranks = [sorted(row, reverse=True).index(row[answer]) + 1 for row in logits.tolist()]
    assert found["ranks"] == ranks
    assert found["ranks"][-1] == 1
    random, own = part(explanation, "random_lens"), walk.random_lens()
    assert random["answer"] == explanation.labels[int(own[-1].argmax())]
    assert random["ranks"][-1] == 1
    found, expected = part(explanation, "ledger", label=3), walk.ledger(3)
    close(found["heads"], expected.heads)
    close(found["mlps"], expected.mlps)
    assert found["total"] == pytest.approx(found["logit"], abs=1e-4)
    found = part(explanation, "answer", label=3)
    assert found["products"].sum() + found["bias"] == pytest.approx(found["logit"], abs=1e-4)
    assert [index for _, _, index, _ in found["top"]] == [p.index for p in explanation.top(10)]
    for _, share, _, logit in found["top"]:
        assert np.exp(logit - found["total"]) == pytest.approx(share, rel=1e-4)
    close(part(explanation, "back", label=3)["map"], explanation.contribution(3))


def test_the_model_alone(explanation):
    classifier = explanation.classifier
    for k, name in enumerate(EXAMPLES["photo"][:2]):
        found = part(explanation, "example", example=k)
        expected = anatomy([classifier.explain(str(example_path(name)))])
        close(found["distance"], expected.distance)
        close(found["entropy"], expected.entropy)
        assert found["uniform"]["distance"] == expected.uniform_distance
    found = part(explanation, "filters")
    expected = library.filters(classifier.model)
    close(found["variance"], expected.variance)
    flat = found["components"].reshape(found["count"], -1) / 127.5 - 1
    most = expected.components.abs().amax(dim=(1, 2, 3), keepdim=True)
    close(flat, (expected.components / most).flatten(1), atol=0.004)
    grid = part(explanation, "position_grid")
    cosines = library.position_similarity(classifier.model)
    close(grid["cosines"] / 127.5 - 1, cosines, atol=0.004)


def test_a_part_of_a_large_model_is_below_100_kB(large):
    place = {"layer": 1, "head": 3, "query": [5, 7], "label": 7, "channel": 9, "example": 0}
    for name in inside.PARTS:
        if name == "example":  # not a question about this picture
            continue
        size = len(inside.inside_part(large, {"part": name, **place})["data"])
        assert size < 100_000, f"{name}: {size} bytes"


def test_many_positions_are_compared_with_one(large):
    found = part(large, "positions", query=[5, 7])
    cosines = library.position_similarity(large.classifier.model)
    close(found["row"], cosines[5 * 24 + 7], atol=1e-5)
    grid = part(large, "position_grid")
    assert grid["shown"] == [11, 11] and grid["cosines"].shape == (121, 576)
    close(grid["cosines"][-1] / 127.5 - 1, cosines[-1], atol=0.004)


def test_more_numbers_than_fit_come_in_8_bits():
    x = torch.randn(700, 64, generator=torch.Generator().manual_seed(0))
    found = inside.signed("x", x)
    assert found["x"].dtype == np.int8
    assert np.abs(signed(found, "x") - x.numpy()).max() <= float(x.abs().max()) / 254 * 1.001


# What is wrong is said


@pytest.mark.parametrize(
    "request_, message",
    [
        ({"part": "nothing"}, "part is 'nothing'; use one of"),
        ({"part": None}, "part is None"),
        ({"part": ["keys"]}, "part is ['keys']"),
        ({"part": "keys", "layer": 9}, "There is no layer 9"),
        ({"part": "keys", "head": "a"}, "head is 'a'"),
        ({"part": "query", "query": [9, 9]}, "There is no row 9"),
        ({"part": "kernel", "channel": 10**9}, "There is no channel"),
        ({"part": "ledger", "label": 99}, "There is no label 99"),
        ({"part": "example", "example": 99}, "There is no example 99"),
    ],
)
def test_requests_that_make_no_sense(explanation, request_, message):
    class Server:
        class store:
            get = staticmethod(lambda id: explanation)
            trim = staticmethod(lambda: None)

    answer = ask.answering(Server, inside.inside_part)({"id": "x", **request_})
    assert message in answer["error"]


def test_a_model_without_labels_says_so():
    e = small_classifier(num_classes=0).explain(noise())
    assert inside.facts(e)["classes"] == 0
    assert part(e, "shuffle")["logits"] == []
    with pytest.raises(ValueError, match="no label head"):
        inside.inside_part(e, {"part": "ledger"})


# The source


def test_the_source_is_that_of_the_project_with_its_line_numbers():
    found = inside.sources()
    assert sorted(found) == list(range(1, 11))
    for step, pieces in found.items():
        for piece, (thing, marks) in zip(pieces, inside.SOURCES[step], strict=True):
            lines = Path(ROOT, piece["file"]).read_text(encoding="utf-8").splitlines()
            there = lines[piece["first"] - 1 :][: len(piece["lines"])]
            assert [line.strip() for line in there] == [line.strip() for line in piece["lines"]]
            assert thing.__name__ in piece["lines"][0]
            for mark in marks:
                assert any(mark in piece["lines"][k] for k in piece["marked"]), (step, mark)
