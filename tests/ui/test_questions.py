"""Which class, and can I trust this map: what the page asks the server. In a browser: tests/browser."""

import base64
import re
import threading

import numpy as np
import pytest
from support.models import SHAPES, WITH_HEAD, noise, small_classifier

from vit_demo import faithful, knockout
from vit_demo.export import shown_map
from vit_demo.map_settings import settings_from
from vit_demo.trust.progress import Cancelled
from vit_demo.ui import questions
from vit_demo.ui import server_functions as ask
from vit_demo.ui.store import Server
from vit_demo.ui.texts import TRUST_TEXTS, words


@pytest.fixture(scope="module", autouse=True)
def calm(one_thread):
    """The models are tiny: threads would only wait for each other."""


@pytest.fixture(scope="module")
def server():
    server = Server(device="cpu")
    for name, shape in SHAPES.items():
        server.models.kept[name] = small_classifier(**shape)
    yield server
    server.close()


@pytest.fixture
def looked(server):
    """The id of a picture that a model has seen, and the explanation behind it."""

    def looked(shape: str):
        return server.explain(noise(), shape, "crop", "noise")

    return looked


def floats(text: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


def result(server: Server, request: dict) -> dict:
    """The end of the work; on the way it says how far it is."""
    *progress, last = questions.work(server, request | {"run": "1"})
    assert progress and all(news["done"] <= news["total"] for news in progress)
    assert all(news["run"] == "1" for news in [*progress, last])
    return last["result"]


# Every kind of model


@pytest.mark.parametrize("shape", WITH_HEAD)
def test_short_questions_are_answered_with_the_librarys_maps(server, looked, shape):
    id, e = looked(shape)
    found = ask.answering(server, ask.class_maps)({"id": id, "labels": [3, 1]})["classes"]
    contribution, relevance, *_ = floats(found["3"]["data"], 5, e.N)
    np.testing.assert_array_equal(contribution, e.contribution(3, tokens=True))
    np.testing.assert_array_equal(relevance, e.relevance(3, tokens=True))
    found = ask.answering(server, ask.method_maps)({"id": id, "label": 2})
    assert found["methods"] == list(faithful.METHODS) and found["name"] == "label 2"
    maps = floats(found["data"], 7, *e.grid)
    for heat, expected in zip(maps, faithful.method_maps(e, 2).values(), strict=True):
        np.testing.assert_array_equal(heat, expected)
    off = {"heads": [[2, 1]], "layers": [0], "patches": [[1, 2], [0, 0]], "fill": "blur"}
    found = ask.answering(server, ask.without)({"id": id} | off)
    expected = knockout.without(
        e, heads=[(2, 1)], layers=[0], patches=[(1, 2), (0, 0)], fill="blur"
    )
    for when in ("before", "after"):
        assert [row["index"] for row in found[when]] == [c.index for c in getattr(expected, when)]
        assert [row["after"] for row in found[when]] == pytest.approx(
            [c.after for c in getattr(expected, when)], abs=1e-6
        )
    assert ask.answering(server, ask.all_labels)({"id": id})["labels"] == e.labels


@pytest.mark.parametrize("remove", faithful.REMOVALS)
@pytest.mark.parametrize("shape", WITH_HEAD)
def test_trust_is_answered_with_the_librarys_curves(server, looked, shape, remove):
    id, e = looked(shape)
    found = result(server, {"kind": "trust", "id": id, "label": 1, "remove": remove})
    expected = faithful.trust_all(e, faithful.method_maps(e, 1), 1, remove=remove)
    (way,) = found["ways"]
    assert list(way["maps"]) == list(expected) and len(way["random"]) >= 10
    assert found["best"] == faithful.best_method(expected).describe() and way["remove"] == remove
    for name, trust in expected.items():
        assert way["maps"][name]["score"] == pytest.approx(trust.score, abs=1e-6)
        assert way["maps"][name]["deletion"] == pytest.approx(trust.deletion.tolist(), abs=1e-6)
        assert way["band"] == pytest.approx(trust.band, abs=1e-6)


def test_a_thorough_trust_says_how_far_it_is_and_removes_in_two_ways(server, looked):
    id, e = looked("class token")
    request = {"kind": "trust", "id": id, "label": 1, "remove": "blur", "thorough": True}
    found = result(server, request)
    expected = faithful.check(e, label=1, remove="blur", thorough=True)
    assert [way["remove"] for way in found["ways"]] == list(expected.ways) == ["tokens", "blur"]
    for way in found["ways"]:
        assert len(way["random"]) == 30
        for name, trust in expected.ways[way["remove"]].items():
            assert way["maps"][name]["score"] == pytest.approx(trust.score, abs=1e-6)
    assert found["best"] == expected.best.describe()


@pytest.mark.parametrize("shape", WITH_HEAD)
def test_random_weights_and_the_wall(server, looked, shape):
    id, e = looked(shape)
    found = result(server, {"kind": "random", "id": id, "label": 2, "method": "relevance"})
    expected = faithful.random_weights(e, "relevance", 2)
    np.testing.assert_allclose(found["correlations"], expected.correlations, atol=1e-6)
    np.testing.assert_allclose(floats(found["heats"], 4, *e.grid), expected.heats, atol=1e-7)
    assert found["passed"] == expected.passed
    found = result(server, {"kind": "wall", "id": id, "label": 2})
    np.testing.assert_allclose(found["changes"], knockout.knockout_wall(e, 2), atol=1e-6)


def test_a_model_without_classes_says_so(server, looked):
    id, _ = looked("headless")
    assert questions.tab_value(server, id, server.store.get(id))["classes"] == 0
    for question in (ask.class_maps, ask.method_maps, ask.without):
        answer = ask.answering(server, question)({"id": id, "labels": [0]})
        assert "no label head" in answer["error"]
    for kind in questions.QUESTIONS:
        *_, last = questions.work(
            server, {"kind": kind, "id": id, "run": "1", "method": "relevance"}
        )
        assert "no label head" in last["error"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_picture_that_is_gone(server, language):
    request = {"id": "never", "language": language, "labels": [0], "kind": "trust", "run": "7"}
    assert ask.answering(server, ask.class_maps)(request) == {"error": words(language)["gone"]}
    assert list(questions.work(server, request)) == [{"run": "7", "error": words(language)["gone"]}]


@pytest.mark.parametrize(
    "request_",
    [
        {"kind": "trust", "label": 99},
        {"kind": "trust", "remove": "magic"},
        {"kind": "random", "method": "astrology"},
        {"kind": "nonsense"},
        {"kind": ["trust"], "language": {}},
        {"kind": "trust", "label": "x"},
    ],
)
def test_nonsense_is_answered_in_words(server, looked, request_):
    id, _ = looked("class token")
    *_, last = questions.work(server, request_ | {"id": id, "run": "1"})
    assert last["error"] and "\n" not in last["error"] and "Traceback" not in last["error"]


def test_short_nonsense_is_answered_in_words(server, looked):
    id, _ = looked("class token")
    for question, request in (
        (ask.class_maps, {"labels": [99]}),
        (ask.class_maps, {}),
        (ask.without, {"heads": [[99, 0]]}),
        (ask.without, {"patches": [[0, 0]], "fill": "gold"}),
        (ask.without, {"heads": "nonsense"}),
    ):
        assert ask.answering(server, question)(request | {"id": id})["error"]


# What is remembered, and what it costs


def test_class_maps_are_bounded(server, looked, monkeypatch):
    monkeypatch.setattr(ask, "MOST_CLASSES", 3)
    id, e = looked("distilled")
    for label in range(5):
        ask.answering(server, ask.class_maps)({"id": id, "labels": [label]})
    assert len(e.class_vectors) == 3 and 4 in e.class_vectors


def test_every_state_of_the_explorer_is_a_map_of_the_library(looked):
    _, e = looked("registers")
    for state, expected in (
        ({"map": "contribution", "label": 3, "minus": None}, e.contribution(3)),
        ({"map": "contribution", "label": 3, "minus": 0}, e.contribution(3, minus=0)),
        ({"map": "relevance", "label": 3, "minus": None}, e.relevance(3)),
        ({"map": "grad_cam", "label": 3, "minus": 0}, e.grad_cam(3) - e.grad_cam(0)),
        ({"map": "random", "label": 3}, faithful.random_map(e)),
        ({"map": "rollout", "head": "mean", "layer": 1}, e.rollout(1)),
        ({"map": "head_rollout", "head": 2, "layer": 2}, e.head_rollouts(2)[2]),
    ):
        np.testing.assert_allclose(shown_map(e, settings_from(state)), expected, atol=1e-7)


def test_trust_of_the_map_in_the_explorer(server, looked):
    id, e = looked("class token")
    state = {"map": "head_rollout", "head": 1, "layer": 1, "query": None}
    found = result(server, {"kind": "trust", "id": id, "label": 0, "state": state})
    expected = faithful.trust(e, e.head_rollouts(1)[1], 0)
    (way,) = found["ways"]
    assert list(way["maps"]) == ["shown"] and found["best"] is None
    assert way["maps"]["shown"]["score"] == pytest.approx(expected.score, abs=1e-6)


def test_whoever_leaves_stops_the_work(server, looked, monkeypatch):
    """A closed generator costs nothing more: the library's next report is its last."""
    id, _ = looked("class token")
    ended, seen, turn = threading.Event(), [], threading.Semaphore(0)
    check = faithful.check

    def slow(*args, progress, **options):
        def one_by_one(done: int, total: int):
            turn.acquire(timeout=30)  # no faster than somebody listens
            seen.append(done)
            return progress(done, total)

        try:
            return check(*args, progress=one_by_one, **options)
        except Cancelled:
            ended.set()
            raise

    monkeypatch.setattr(faithful, "check", slow)
    work = questions.work(server, {"kind": "trust", "id": id, "run": "1"})
    assert next(work)["done"] == 0
    turn.release()
    assert next(work)["done"] > 0
    work.close()
    turn.release()
    assert ended.wait(30)
    assert len(seen) == 2  # the one that was heard, and the one that was told to stop


# Words


def test_sentences_are_the_librarys(looked, monkeypatch):
    _, e = looked("class token")
    trust = faithful.trust(e, e.relevance())
    name = trust.label.split(",")[0]
    for verdict in ("much better", "better", "chance", "worse"):
        text = TRUST_TEXTS["en"][f"sentence_{verdict.replace(' ', '_')}"].format(label=name)
        monkeypatch.setattr(faithful.Trust, "verdict", verdict)
        assert trust.sentence == text


def test_every_text_is_translated():
    english, korean = TRUST_TEXTS["en"], TRUST_TEXTS["ko"]
    assert english.keys() == korean.keys()
    fields = re.compile(r"\{\w+\}")
    for key, text in english.items():
        assert sorted(fields.findall(text)) == sorted(fields.findall(korean[key])), key


def test_a_long_question_has_a_limit(server, looked, monkeypatch):
    id, _ = looked("class token")
    monkeypatch.setattr(questions, "SECONDS", -1)
    *_, last = questions.work(server, {"kind": "wall", "id": id, "run": "1"})
    assert "smaller model" in last["error"]
