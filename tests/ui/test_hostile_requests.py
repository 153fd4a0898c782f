"""Whatever is sent to the running app, an answer or one plain sentence comes back, and it goes on."""

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from support import corpus
from support.app import INSIDE, MARK, sentence
from support.paths import ROOT

from vit_demo.ui.inside import PARTS

FOR_EVERYBODY = ("find_models", "imagenet_offer", "load_model", "training_history")

PYTHONS_WORDS = re.compile(
    r"invalid literal|object|set_int_max|unpack|convert|Overflow|subscriptable|attribute|argument"
    r"|not supported between|out of range|int\(\)"
)

# Pictures


def test_two_hundred_uploads_good_and_bad_are_answered(app):
    """Uploaded and asked about, by four visitors at once."""
    files = [sample for sample in corpus.samples() if len(sample.data) < 2 * corpus.MEGA]
    files += list(corpus.mutants(105, seed=1))
    assert len(files) >= 200

    def send(index: int) -> tuple[str, bool, bool | None]:
        sample = files[index]
        path = app.upload(sample.name, sample.data)
        assert "/../" not in path and Path(path).parents[1].name == "uploads"
        model = ("vit-photos", "vit-mnist")[index % 2]
        name, rest = ("explain", []) if index % 4 == 0 else ("classify", ["crop", 3])
        rest = rest or ["native", None, None, 0.5, 0, "mean"]
        event, found = app.call(name, [{"path": path} | MARK, model, *rest])
        if event == "complete":
            assert found[0]["labels"][0]["probability"] > 0
        else:
            assert event == "error" and sentence(found), (sample.name, found)
            assert found.endswith(".") and ";" in found, found  # what is wrong; what to do
        return sample.kind, event == "complete", sample.accepted

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(send, range(80)))
        before = app.memory()
        seen += pool.map(send, range(80, len(files)))
    assert all(wanted in (None, accepted) for _, accepted, wanted in seen), seen
    outcomes = Counter((kind, accepted) for kind, accepted, _ in seen)
    assert outcomes["plain", True] >= 10 and outcomes["bomb", False] >= 10
    assert outcomes["flip", True] and outcomes["flip", False] and outcomes["no picture", False]
    assert app.process.poll() is None
    if before:  # the store of the page is not filled by programs: nothing should stay at all
        assert app.memory() - before < 150 * corpus.MEGA


def test_an_upload_that_is_too_large_is_refused(app):
    files = {"files": ("big.png", bytes(21 * 2**20))}
    try:
        answer = app.client.post(f"{app.url}/gradio_api/upload", files=files)
        assert answer.status_code == 413 and not INSIDE.search(answer.text)
    except httpx.WriteError:
        pass  # it hung up on us, which is as good
    assert app.get("/config").status_code == 200


# Arguments

BAD_CLASSIFY = [
    (["nope", "crop", 2], "no model"),
    ([None, "crop", 2], "no model"),
    ([5, "crop", 2], "no model"),
    ([["vit-mnist"], "crop", 2], "no model"),
    ([{"a": 1}, "crop", 2], "no model"),
    (["x" * 400_000, "crop", 2], "no model"),
    (["../../etc/passwd", "crop", 2], "no model"),
    (["a.pth", "crop", 2], "no model"),
    (["deit_tiny_patch16_224.fb_in1k", "crop", 2], "hub cannot be reached"),
    (["vit-mnist", "zoom", 2], "zoom"),
    (["vit-mnist", ["crop"], 2], "crop"),
    (["vit-mnist", "crop", 0], "ask for 1 label or more"),
    (["vit-mnist", "crop", -(10**30)], "ask for 1 label or more"),
    (["vit-mnist", "crop", "many"], "check the values"),
    (["vit-mnist", "crop", [1]], "check the values"),
    (["vit-mnist"], "check the values"),
    ([], "check the values"),
]
BAD_EXPLAIN = [
    ([99, 0, 0.5, 0, "mean"], "no row 99"),
    ([0, -99, 0.5, 0, "mean"], "no column -99"),
    ([10**30, 0, 0.5, 0, "mean"], "no row"),
    (["a", "b", 0.5, 0, "mean"], "check the values"),
    ([None, None, 5, 0, "mean"], "residual is 5"),
    ([None, None, -1, 0, "mean"], "residual is -1"),
    ([None, None, "half", 0, "mean"], "residual is 'half'"),
    ([None, None, [0.5], 0, "mean"], "residual"),
    ([None, None, 0.5, 1, "mean"], "discard is 1"),
    ([None, None, 0.5, "0.x", "mean"], "discard"),
    ([None, None, 0.5, 0, "x"], "'x'"),
    ([None, None, 0.5, 0, "y" * 400_000], "yyy"),
]


def test_arguments_that_make_no_sense(app, uploaded):
    for rest, words in BAD_CLASSIFY:
        event, found = app.call("classify", [uploaded, *rest])
        assert event == "error" and sentence(found) and words in found, (rest, found)
    for rest, words in BAD_EXPLAIN:
        event, found = app.call("explain", [uploaded, "vit-mnist", "crop", *rest])
        assert event == "error" and sentence(found) and words in found, (rest, found)
    start = json.dumps([uploaded, "vit-mnist", "crop"])[:-1]
    for number in ("NaN", "1e999", "-Infinity", "9" * 400):
        event, found = app.call("classify", f'{{"data": {start}, {number}]}}')
        assert event == "complete" or sentence(found), (number, found)
        shares = f"null, null, {number}, {number}, null"
        event, found = app.call("explain", f'{{"data": {start}, {shares}]}}')
        assert event in ("error", "refused") and sentence(found), (number, found)
    log = len(app.log.read_text())
    for top in (10**400, 10**30, 1e300):
        event, found = app.call("classify", [uploaded, "vit-mnist", "crop", top])
        assert event == "complete" or (sentence(found) and not PYTHONS_WORDS.search(found)), found
    digits = f'{{"data": {start}, {"9" * 5_000}]}}'  # more than Python reads
    event, found = app.call("classify", digits)
    assert event == "refused" and not PYTHONS_WORDS.search(found), found
    assert "Traceback" not in app.log.read_text()[log:]
    for body in ("", "{", "[]", "null", '{"data": 5}', '{"data": ' + "[" * 50_000):
        event, found = app.call("classify", body)
        assert event == "refused" and not INSIDE.search(found), (body[:20], found)
    event, found = app.call("classify", [uploaded, "vit-mnist", "x" * 10 * corpus.MEGA, 2])
    assert event == "refused" and "too large" in found
    event, found = app.call("explain", [uploaded, "vit-mnist", None, None, None, None, None, None])
    assert event == "complete", found  # empty: the usual


def look(app, uploaded: dict, **values) -> dict:
    """The event of the page that looks at a picture, with any values one likes."""
    config = app.get("/config").json()
    names = {part["id"]: part["props"].get("elem_id") for part in config["components"]}
    event = next(
        event
        for event in config["dependencies"]
        if {"source", "picture", "fit"} <= {names[i] for i in event["inputs"]}
    )
    usual = {"source": "picture 1", "picture": uploaded, "fit": "crop", "ready": "vit-mnist"}
    usual |= {"language": "en"} | values
    return app.event(event["id"], [usual.get(names[i]) for i in event["inputs"]])


def test_the_pages_own_event_is_guarded_too(app, uploaded):
    fine = look(app, uploaded)
    assert fine["success"], fine
    for upload in ({"path": "/etc/passwd"}, {"path": str(ROOT / "assets/examples/koala.jpg")}):
        for mark in ({}, MARK):
            found = look(app, upload | mark)
            assert not found["success"] and "no such picture" in found["output"]["error"], found
    odd = [{"source": "example ../../../etc/passwd"}, {"source": "drawing"}]
    odd += [{"source": 5}, {"source": ["a"]}, {"fit": "zoom"}, {"ready": "/etc/passwd"}]
    odd += [{"language": ["x"]}, {"language": "../x"}, {"picture": None}, {"picture": "x"}]
    odd += [{"picture": "/etc/passwd"}, {"picture": {"path": 5}}, {"picture": [{"x": 1}]}]
    for values in odd:
        text = json.dumps(look(app, **({"uploaded": uploaded} | values)), ensure_ascii=False)
        assert "root:x:0" not in text and "Traceback" not in text, (values, text)


def test_a_model_that_cannot_be_had_leaves_the_page_on_its_own(app):
    config = app.get("/config").json()
    names = {part["id"]: part["props"].get("elem_id") for part in config["components"]}
    wanted = ["model", "ready", "language"]
    event = next(
        e
        for e in config["dependencies"]
        if [names[i] for i in e["inputs"]] == wanted and e["outputs"]
    )
    for model in ("deit_tiny_patch16_224.fb_in1k", "../../etc/passwd", "nope", "x" * 100_000):
        done = app.event(event["id"], [model, "vit-mnist", "en"])
        assert done["success"], done
        found = dict(zip((names[i] for i in event["outputs"]), done["output"]["data"], strict=True))
        assert "vit-mnist" in str(found["model"]) and "vit-mnist" in str(found["ready"]), found
        news = found["knows"]["props"]["news"]
        assert news["failed"] and all(map(sentence, news["says"].values())), found


def test_every_event_answers_nonsense_with_a_sentence(app):
    """Also those that only the browser does, and those that read what is said about the event."""
    said, answered = len(app.log.read_text()), 0
    odd = [{"a": 1}, [1], "abc", 5, None, True]
    for event in app.get("/config").json()["dependencies"]:
        for value in odd:
            for data in ([], [value] * len(event["inputs"])):
                found = app.event(event["id"], data, value)
                asked = (event["id"], data, value, found)
                assert found["success"] or sentence(found["output"].get("error")), asked
                answered += 1
    assert answered > 100
    assert "Traceback" not in app.log.read_text()[said:]


def test_server_functions_answer_nonsense_with_a_sentence(app):
    config, asked = app.get("/config").json(), 0
    for part in config["components"]:
        for name in part["props"].get("server_fns") or ():
            for data in (None, 5, "x", [], {}, {"id": "../.."}, {"id": ["x"], "language": ["en"]}):
                body = {"data": data, "component_id": part["id"], "fn_name": name}
                body["session_hash"] = "stranger"
                answer = app.client.post(f"{app.url}/gradio_api/component_server", json=body)
                assert answer.status_code == 200, (name, data, answer.text)
                if name in FOR_EVERYBODY:
                    assert "error" not in answer.json()
                    assert name == "training_history" or not INSIDE.search(answer.text)  # has code
                else:
                    assert sentence(answer.json()["error"]), answer.text
                asked += 1
    assert asked >= 14
    for name in ("__init__", "preprocess", "get_config", "postprocess"):
        body = {"data": {}, "component_id": part["id"], "fn_name": name, "session_hash": "x"}
        answer = app.client.post(f"{app.url}/gradio_api/component_server", json=body)
        assert answer.status_code == 404


def test_server_functions_about_a_real_picture(app, uploaded):
    """Now the id is known: what stands beside it may still be anything."""
    config, done = app.get("/config").json(), look(app, uploaded)
    id = re.search(r'"id": "([\w-]{20,})"', json.dumps(done))[1]
    state = {
        "layer": 99,
        "head": -99,
        "residual": "x",
        "discard": 7,
        "map": "../x",
        "query": [9, 9],
    }
    odd = [
        {"query": [99, 99]}, {"query": "ab"}, {"query": [1e999, 1]}, {"query": [None]},
        {"query": {"a": 1}}, {"labels": [99]}, {"labels": "ab"}, {"labels": [1e999]}, {"label": 99},
        {"label": "no such"}, {"label": "x" * 400_000}, {"label": [1]}, {"label": -5},
        {"heads": [[99, 0]]}, {"heads": 5}, {"layers": [-99]}, {"patches": [[0]]}, {"fill": "red"},
        {"kind": "npz", "state": state}, {"kind": "../x"}, {"kind": ["npz"]}, {"kind": "json"},
        {"kind": "gif", "state": {"opacity": 1e308, "colours": "../x"}},
        {"kind": "webp", "state": {"map": "attention", "head": 99}},
        {"kind": "html", "language": "../../x", "state": {"a": "</script><script>"}},
        {"kind": "npz", "state": {"query": [1e999, "x"]}}, {"kind": "npz", "state": 5},
        {"layer": 1e999}, {"layer": "x"}, {"layer": [1]}, {"layer": 10**30}, {"layer": 1.5},
        {"layer": 10**400}, {"fusion": [1]}, {"query": [10**400, 0]}, {"query": 5}, {"query": [1, 2, 3]},
        {"labels": 5}, {"labels": {"a": 1}}, {"labels": ["x"]}, {"labels": [10**30]}, {"labels": [None]},
        {"labels": [10**400]}, {"label": 10**400}, {"label": 1e999}, {"label": {"a": 1}},
        {"heads": [[1e999, 0]]}, {"heads": [5]}, {"heads": ["ab"]}, {"layers": ["x"]}, {"layers": 5},
        {"layers": [1e999]}, {"patches": [["a", "b"]]}, {"patches": [[10**30, 0]]}, {"patches": {"a": 1}},
        {"fill": 5, "heads": [[0, 0]]}, {"kind": 5}, {"kind": {"a": 1}}, {"kind": "npz", "state": "abc"},
        {"kind": "html", "state": [1]}, {"kind": "npz", "state": {"label": [1]}}, {"language": {"a": 1}},
        {"kind": "npz", "state": {"layer": 10**400}}, {"part": 5}, {"part": ["pixels"]},
        *({"part": part, "query": query, "layer": layer, "head": layer, "label": layer,
           "channel": layer, "example": layer} for part in PARTS
          for query, layer in (([1e999, 1], 0), ("ab", "x"), (None, 1e999), (None, [1]), (None, 10**30))),
    ]  # fmt: skip
    answered, log = 0, len(app.log.read_text())
    for part in config["components"]:
        for name in part["props"].get("server_fns") or ():
            for data in odd:
                body = {"data": {"id": id} | data, "component_id": part["id"], "fn_name": name}
                body = json.dumps(body | {"session_hash": "stranger"})
                answer = app.client.post(f"{app.url}/gradio_api/component_server", content=body)
                assert answer.status_code == 200, (name, data, answer.text)
                found = answer.json()
                if "error" in found:
                    text = found["error"]
                    assert isinstance(text, str) and len(text) < 1000 and not INSIDE.search(text)
                    assert not PYTHONS_WORDS.search(text), (name, data, text)
                answered += "error" not in found
    assert answered  # those that leave out what does not concern them
    assert app.process.poll() is None
    assert "Traceback" not in app.log.read_text()[log:]


def test_long_questions_about_a_real_picture(app, uploaded):
    """As above, for the events that say how far they are."""
    done, log = look(app, uploaded), len(app.log.read_text())
    id = re.search(r'"id": "([\w-]{20,})"', json.dumps(done))[1]
    odd = [{"kind": "trust", "label": 1e999}, {"kind": "trust", "state": "abc"}, {"kind": ["wall"]}]
    odd += [{"kind": "trust", "state": {"layer": "x"}}, {"kind": "trust", "remove": [1]}]
    odd += [{"kind": "random", "method": [1]}, {"kind": "wall", "label": {"a": 1}}, {"model": [1]}]
    odd += [{"example": {"a": 1}}, {"file": ["x"]}, {"model": "x" * 100_000, "language": [1]}]
    config = app.get("/config").json()
    names = {part["id"]: part["props"].get("elem_id") for part in config["components"]}
    events = [
        event["id"]
        for event in config["dependencies"]
        if any(names.get(i) in ("why", "compare") and on == "submit" for i, on in event["targets"])
    ]
    assert len(events) == 2
    for event in events:
        for request in odd:
            found = app.event(event, [], {"id": id, "run": 1} | request)
            errors = re.findall(r'"error": (null|"[^"]*")', json.dumps(found))
            assert errors or found["success"], (request, found)
            assert "null" not in errors, (request, found)
            assert not any(PYTHONS_WORDS.search(error) for error in errors), (request, errors)
    assert "Traceback" not in app.log.read_text()[log:]


def test_the_app_still_answers(app, uploaded):
    """Whatever the tests of this process have sent: it lives, and a good picture gets its answer."""
    event, found = app.call("classify", [uploaded, "vit-mnist", "crop", 3])
    assert event == "complete" and len(found[0]["labels"]) == 3
    assert app.process.poll() is None
