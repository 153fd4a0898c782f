"""The tab Compare on the server: what it finds beside a picture, and what it refuses. In a browser:
tests/browser/test_compare.py."""

import re
import threading
from pathlib import Path

import orjson
import pytest
from support.models import noise, small_classifier

from vit_demo import compare as library
from vit_demo.ui import compare
from vit_demo.ui.html import EXAMPLES
from vit_demo.ui.static import STATIC
from vit_demo.ui.store import Server
from vit_demo.ui.texts import LANGUAGES

pytestmark = pytest.mark.usefixtures("one_thread")
FIRST, SECOND = EXAMPLES["photo"][:2]


@pytest.fixture(scope="module")
def server():
    server = Server(device="cpu")
    server.models.kept["small"] = small_classifier()
    server.models.kept["other"] = small_classifier(1, num_classes=3, patch_size=4)
    server.models.kept["headless"] = small_classifier(2, num_classes=0)
    yield server
    server.close()


@pytest.fixture
def first(server, monkeypatch) -> str:
    """The id of a picture that the small model has seen."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(server.folder.uploads))
    return server.explain(noise(), "small", "crop")[0]


def ask(server, **request) -> dict:
    *_, last = compare.look(server, {"run": 1, "language": "en"} | request)
    assert last["run"] == 1 and orjson.dumps(last)  # as Gradio sends it
    return last


def test_another_picture(server, first):
    found = ask(server, id=first, example=SECOND)["result"]
    one, other = server.store.get(first), server.store.get(found["id"])
    assert other.classifier is one.classifier and not found["same_picture"]
    assert found["boxes"] == ((0, 0, 1, 1), (0, 0, 1, 1)) and found["bounds"] == (0, 0, 1, 1)
    assert (server.store.folder_of(found["id"]) / "explorer.bin").is_file()
    expected = library.shared_labels(one, other)
    assert [row["names"]["en"] for row in found["labels"]] == [row.label for row in expected]
    assert [row["index"] for row in found["labels"]] == [row.index for row in expected]
    assert found["matches"] == {str(index): index for index in range(5)}
    assert found["agree"] == library.same_answer(one, other)
    again = ask(server, id=first, example=SECOND)["result"]
    assert again["id"] == found["id"]  # an example is looked at once for everybody


def test_another_model(server, first):
    found = ask(server, id=first, model="other")["result"]
    one, other = server.store.get(first), server.store.get(found["id"])
    assert found["same_picture"] and other.grid == (8, 8)
    assert found["boxes"] == (one.view.box, other.view.box)
    assert found["bounds"] == (0, 0, *one.view.size)
    assert found["matches"] == {"0": 0, "1": 1, "2": 2}
    for answers, e in (
        (compare.tab_value(server, first, one)["answers"], one),
        (found["answers"], other),
    ):
        assert [answer["names"]["en"] for answer in answers] == [p.label for p in e.top(5)]
        best = e.top(1)[0].probability
        assert answers[0]["probability"] == pytest.approx(best)


def test_the_same_example_in_another_model_is_looked_at_once(server):
    from vit_demo.checkpoints import example_path

    id, seen = server.explain(str(example_path(FIRST)), "small", "crop", FIRST)
    assert compare.tab_value(server, id, seen)["example"] == FIRST
    ids = {ask(server, id=id, model="other")["result"]["id"] for _ in range(2)}
    assert len(ids) == 1
    (other,) = ids
    assert server.store.example_of(other) == FIRST


def test_a_model_without_labels(server, first):
    found = ask(server, id=first, model="headless")["result"]
    assert found["labels"] == [] and found["agree"] is None and found["answers"] == []


def test_a_picture_that_was_sent(server, first):
    path = server.folder.uploads / "mine.png"
    noise(3).save(path)
    found = ask(server, id=first, file=str(path))["result"]
    assert server.store.get(found["id"]).view.original.size == noise(3).size
    assert server.store.example_of(found["id"]) is None


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"file": "/etc/passwd"}, "no such picture"),
        ({"file": "http://127.0.0.1/cat.jpg"}, "no such picture"),
        ({"file": ["x"]}, "no such picture"),
        ({"example": "nonsense"}, "no such picture"),
        ({"example": EXAMPLES["digit"][0]}, "no such picture"),  # a digit for a photo model
        ({}, "no such picture"),
        ({"model": "no_such_model"}, "There is no model"),
        ({"model": "../../etc/passwd"}, "There is no model"),
        ({"model": 7}, "There is no model"),
    ],
)
def test_what_is_refused(server, first, request_, words):
    error = ask(server, id=first, **request_)["error"]
    assert words in error and "\n" not in error


def test_a_first_one_that_is_gone(server):
    assert "no longer kept" in ask(server, id="nobody", example=SECOND)["error"]
    assert "no longer kept" in ask(server, example=SECOND)["error"]


def test_a_failure_is_a_sentence(server, first, monkeypatch):
    def broken(*_):
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(library, "places", broken)
    assert "Something went wrong" in ask(server, id=first, example=SECOND)["error"]


def test_while_a_model_is_loaded_it_says_so(server, first, monkeypatch):
    """In every language; then the second one is there."""
    go_on = threading.Event()

    def slowly(name: str):
        assert go_on.wait(60)
        return small_classifier(3)

    monkeypatch.setattr(server.models, "load", slowly)
    work = compare.look(server, {"run": 4, "id": first, "model": "slow"})
    news = next(work)
    assert news["run"] == 4 and set(news["says"]) == set(LANGUAGES)
    assert all("slow" in sentence for sentence in news["says"].values())
    go_on.set()
    *_, last = work
    assert server.store.get(last["result"]["id"]).classifier is server.models.get("slow")


# Words


def test_every_word_that_the_browser_asks_for_is_known_in_every_language():
    sources = "".join(path.read_text() for path in sorted((STATIC / "compare").glob("*.js")))
    asked = set(re.findall(r'\bt\(\s*"(\w+)"', sources))
    texts = compare.texts()
    assert len(asked) > 25
    fields = re.compile(r"\{\w+\}")
    for language, known in texts.items():
        assert asked <= known.keys(), (language, asked - known.keys())
        for key, text in known.items():
            assert sorted(fields.findall(text)) == sorted(fields.findall(texts["en"][key])), key
    own = {name for name in LANGUAGES["en"].COMPARE}
    unused = {key for key in own if f'"{key}"' not in sources}
    assert unused == set()


def test_the_folder_of_the_tab_is_served():
    from vit_demo.ui.theme import style_sheets

    assert Path(STATIC / "compare" / "compare.css") in style_sheets()
