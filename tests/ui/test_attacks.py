"""Whatever is thrown at the running app, an answer or one plain sentence comes back, and it goes on."""

import asyncio
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from support import corpus
from support.paths import ROOT
from support.shared import missing

from vit_demo.embedded import embedded

MARK = {"meta": {"_type": "gradio.FileData"}}
INSIDE = re.compile(
    r"Traceback|site-packages|\.py\b|<class|Exception|/tmp/|" + re.escape(str(ROOT))
)


class App:
    """The app in a process of its own, and what a stranger can do to it over HTTP."""

    def __init__(self, folder: Path):
        for name in ("vit-cifar10", "vit-mnist"):
            if name not in embedded():
                missing(f"assets/{name}.safetensors is not here")
        nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(folder / "hub")}
        nowhere |= {"VIT_DEMO_WEIGHTS": str(folder), "PYTHONUNBUFFERED": "1"}
        self.log = folder / "log.txt"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "app.py", "--device", "cpu"], cwd=ROOT, env=os.environ | nowhere,
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        for line in self.process.stdout:
            if line.startswith("Ready: "):
                self.url = line.split()[1].rstrip("/")
                break
        else:
            pytest.fail(f"the app did not start:\n{self.log.read_text()}")
        self.client = httpx.Client(timeout=120, limits=httpx.Limits(max_keepalive_connections=0))

    def get(self, path: str) -> httpx.Response:
        return self.client.get(self.url + path, follow_redirects=True)

    def upload(self, name: str, data: bytes) -> str:
        answer = self.client.post(f"{self.url}/gradio_api/upload", files={"files": (name, data)})
        assert answer.status_code == 200, answer.text
        return answer.json()[0]

    def call(self, name: str, data: list | str) -> tuple[str, object]:
        """What a program gets: ("complete", results) or ("error", a sentence)."""
        body = data if isinstance(data, str) else json.dumps({"data": data})
        address, head = f"{self.url}/gradio_api/call/{name}", {"content-type": "application/json"}
        answer = self.client.post(address, content=body, headers=head)
        if answer.status_code != 200:
            return "refused", answer.text
        text = self.client.get(f"{address}/{answer.json()['event_id']}").text
        event, found = re.findall(r"event: (\w+)\ndata: (.*)\n", text)[-1]
        found = json.loads(found)
        return event, found["error"] if event == "error" else found

    def event(self, number: int, data: list) -> dict:
        """What the page itself does: an event by its number, whether it has a name or not."""
        session = os.urandom(6).hex()
        body = {"data": data, "fn_index": number, "session_hash": session, "trigger_id": None}
        answer = self.client.post(f"{self.url}/gradio_api/queue/join", json=body)
        if answer.status_code != 200:
            return {"success": False, "output": answer.json()}
        text = self.get(f"/gradio_api/queue/data?session_hash={session}").text
        messages = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        return next(m for m in messages if m["msg"] == "process_completed")

    def memory(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.communicate(timeout=30)
        finally:
            self.process.kill()


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    app = App(tmp_path_factory.mktemp("app"))
    yield app
    app.stop()


@pytest.fixture(scope="module")
def picture(app) -> dict:
    return {"path": app.upload("good.png", corpus.saved(corpus.picture(), "PNG"))} | MARK


def sentence(text: object) -> bool:
    """Words for a person, and nothing from the inside."""
    fine = isinstance(text, str) and 15 < len(text) < 400 and "\n" not in text
    return fine and not INSIDE.search(text)


# Pictures


def test_two_hundred_pictures(app):
    """Uploaded and asked about, by four visitors at once."""
    files = [sample for sample in corpus.samples() if len(sample.data) < 2 * corpus.MEGA]
    files += list(corpus.mutants(105, seed=1))
    assert len(files) >= 200

    def send(index: int) -> tuple[str, bool, bool | None]:
        sample = files[index]
        path = app.upload(sample.name, sample.data)
        assert "/../" not in path and Path(path).parents[1].name == "uploads"
        model = ("vit-cifar10", "vit-mnist")[index % 2]
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
        before = app.memory() if Path("/proc").is_dir() else None
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
    (["x" * 1_000_000, "crop", 2], "no model"),
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
    ([None, None, 0.5, 0, "y" * 500_000], "yyy"),
]


def test_arguments_that_make_no_sense(app, picture):
    for rest, words in BAD_CLASSIFY:
        event, found = app.call("classify", [picture, *rest])
        assert event == "error" and sentence(found) and words in found, (rest, found)
    for rest, words in BAD_EXPLAIN:
        event, found = app.call("explain", [picture, "vit-mnist", "crop", *rest])
        assert event == "error" and sentence(found) and words in found, (rest, found)
    start = json.dumps([picture, "vit-mnist", "crop"])[:-1]
    for number in ("NaN", "1e999", "-Infinity", "9" * 400):
        event, found = app.call("classify", f'{{"data": {start}, {number}]}}')
        assert event == "complete" or sentence(found), (number, found)
        shares = f"null, null, {number}, {number}, null"
        event, found = app.call("explain", f'{{"data": {start}, {shares}]}}')
        assert event in ("error", "refused") and sentence(found), (number, found)
    for body in ("", "{", "[]", "null", '{"data": 5}', '{"data": ' + "[" * 50_000):
        event, found = app.call("classify", body)
        assert event == "refused" and not INSIDE.search(found), (body[:20], found)
    event, found = app.call("classify", [picture, "vit-mnist", "x" * 10 * corpus.MEGA, 2])
    assert event == "refused" and "too large" in found
    event, found = app.call("explain", [picture, "vit-mnist", None, None, None, None, None, None])
    assert event == "complete", found  # empty: the usual


def look(app, picture: dict, **values) -> dict:
    """The event of the page that looks at a picture, with any values one likes."""
    config = app.get("/config").json()
    names = {part["id"]: part["props"].get("elem_id") for part in config["components"]}
    event = next(
        event
        for event in config["dependencies"]
        if {"source", "upload", "pad"} <= {names[i] for i in event["inputs"]}
    )
    usual = {"source": "picture 1", "upload": picture, "fit": "crop", "ready": "vit-mnist"}
    usual |= {"language": "en"} | values
    return app.event(event["id"], [usual.get(names[i]) for i in event["inputs"]])


def test_the_pages_own_event_is_guarded_too(app, picture):
    fine = look(app, picture)
    assert fine["success"], fine
    for upload in ({"path": "/etc/passwd"}, {"path": str(ROOT / "assets/examples/cat.jpg")}):
        for mark in ({}, MARK):
            found = look(app, upload | mark)
            assert not found["success"] and "no such picture" in found["output"]["error"], found
    odd = [{"source": "example ../../../etc/passwd"}, {"source": "drawing", "pad": "x" * 10_000}]
    odd += [{"source": 5}, {"source": ["a"]}, {"fit": "zoom"}, {"ready": "/etc/passwd"}]
    odd += [{"language": ["x"]}, {"language": "../x"}, {"upload": None}, {"upload": "x"}]
    for values in odd:
        text = json.dumps(look(app, **({"picture": picture} | values)), ensure_ascii=False)
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
        assert sentence(re.sub("<.*?>", "", str(found["message"]))), found


def test_server_functions(app):
    config, asked = app.get("/config").json(), 0
    for part in config["components"]:
        for name in part["props"].get("server_fns") or ():
            for data in (None, 5, "x", [], {}, {"id": "../.."}, {"id": ["x"], "language": ["en"]}):
                body = {"data": data, "component_id": part["id"], "fn_name": name}
                body["session_hash"] = "stranger"
                answer = app.client.post(f"{app.url}/gradio_api/component_server", json=body)
                assert answer.status_code == 200, (name, data, answer.text)
                assert sentence(answer.json()["error"]), answer.text
                asked += 1
    assert asked >= 14
    for name in ("__init__", "preprocess", "get_config", "postprocess"):
        body = {"data": {}, "component_id": part["id"], "fn_name": name, "session_hash": "x"}
        answer = app.client.post(f"{app.url}/gradio_api/component_server", json=body)
        assert answer.status_code == 404


def test_server_functions_about_a_real_picture(app, picture):
    """Now the id is known: what stands beside it may still be anything."""
    config, done = app.get("/config").json(), look(app, picture)
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
        {"label": "no such"}, {"label": "x" * 1_000_000}, {"label": [1]}, {"label": -5},
        {"heads": [[99, 0]]}, {"heads": 5}, {"layers": [-99]}, {"patches": [[0]]}, {"fill": "red"},
        {"kind": "npz", "state": state}, {"kind": "../x"}, {"kind": ["npz"]}, {"kind": "json"},
        {"kind": "gif", "state": {"opacity": 1e308, "colours": "../x"}},
        {"kind": "webp", "state": {"map": "attention", "head": 99}},
        {"kind": "html", "language": "../../x", "state": {"a": "</script><script>"}},
        {"kind": "npz", "state": {"query": [1e999, "x"]}}, {"kind": "npz", "state": 5},
    ]  # fmt: skip
    answered = 0
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
                answered += "error" not in found
    assert answered  # those that leave out what does not concern them
    assert app.process.poll() is None


# Files and addresses


def test_only_intended_files_can_be_fetched(app, picture):
    uploads = Path(picture["path"]).parents[1]
    assert app.get(f"/gradio_api/file={picture['path']}").status_code == 200  # one's own
    secrets = [
        "/etc/passwd",
        str(ROOT / "app.py"),
        str(ROOT / "README.md"),
        "app.py",
        ".git/config",
    ]
    secrets += [str(ROOT / "assets" / "vit-mnist.safetensors"), "vit_demo/ui/page.py", "~/.bashrc"]
    secrets += [
        str(uploads),
        str(uploads.parent),
        str(uploads.parent / "pictures"),
        "/tmp",
        "/",
        ".",
    ]
    secrets += [f"{uploads}/../../../etc/passwd", f"{picture['path']}/../../../../../etc/passwd"]
    secrets += ["/proc/self/environ", "file:///etc/passwd", "\\etc\\passwd", "/etc/passwd\0.png"]
    for name in secrets:
        for plain in (name, httpx.URL("http://x/", params={"p": name}).query.decode()[2:],
                      name.replace("/", "%2f"), name.replace("/", "%252f"),
                      name.replace("..", "%2e%2e")):  # fmt: skip
            for door in ("/gradio_api/file=", "/file=", "/gradio_api/file/", "/static/", "/assets/",
                         "/svelte/", "/gradio_api/stream/"):  # fmt: skip
                try:
                    answer = app.get(door + plain.replace("\0", "%00"))
                except httpx.InvalidURL:
                    continue
                assert answer.status_code in (400, 403, 404, 405, 422), (door, plain)
                assert "root:" not in answer.text and "import" not in answer.text
                assert "Traceback" not in answer.text


@pytest.fixture(scope="module")
def stranger():
    """Another host, on this machine; `stranger.hits` is who came."""

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.hits.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(corpus.saved(corpus.picture(), "PNG"))

        do_HEAD = do_POST = do_GET

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        server.hits = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_no_address_is_ever_fetched(app, picture, stranger):
    """By no door: not as a picture, not in any other value, not as a file to show or to send."""
    places = [f"http://{host}:{stranger.server_port}/x.png" for host in ("127.0.0.1", "localhost")]
    httpx.get(places[0])
    assert stranger.hits == ["/x.png"]  # it does count
    stranger.hits.clear()
    for place in [*places, places[0].upper(), "https://huggingface.co/x.png", "//127.0.0.1/x"]:
        address = {"path": place, "url": place, "orig_name": "x.png"}
        values = [place, {"path": place}, {"url": place}, address, address | MARK, [address | MARK]]
        values += [{"path": place} | MARK, {"url": place} | MARK]
        for value in values:
            event, found = app.call("classify", [value, "vit-mnist", "crop", 3])
            assert event == "error" and sentence(found), (value, found)
        value = address | MARK
        for rest in ([value, "crop", 3], ["vit-mnist", value, 3], ["vit-mnist", "crop", value]):
            event, found = app.call("classify", [picture, *rest])
            assert event == "error" and not INSIDE.search(found), (rest, found)
        event, found = app.call("classify", [picture | {"url": place}, "vit-mnist", "crop", 3])
        assert event == "complete"  # the file was sent; what else is said about it does not count
        doors = ("file=", "file/", "proxy=", "stream/")
        for path in [f"/gradio_api/{door}{place}" for door in doors] + [f"/file={place}"]:
            assert app.get(path).status_code in (403, 404), path
        files = {"files": (place, b"x"), "url": (None, place)}
        app.client.post(f"{app.url}/gradio_api/upload?url={place}", files=files)
        app.client.post(f"{app.url}/gradio_api/upload", json={"url": place})
        for part in app.get("/config").json()["components"]:
            for name in part["props"].get("server_fns") or ():
                body = {"data": address | MARK, "component_id": part["id"], "fn_name": name}
                body["session_hash"] = "stranger"
                app.client.post(f"{app.url}/gradio_api/component_server", json=body)
    assert stranger.hits == []


def test_gradio_would_fetch_what_the_guard_refuses(monkeypatch):
    """Without the guard, any text box takes Gradio to any public host: this is what it is for."""
    import gradio as gr
    from gradio import processing_utils

    from vit_demo.ui.guard import Blocks

    went = []

    async def fetch(url: str, cache_dir: str) -> str:
        went.append(url)
        return str(ROOT / "README.md")

    monkeypatch.setattr(processing_utils, "async_ssrf_protected_download", fetch)

    def send(kind: type, value: object) -> list[str]:
        went.clear()
        with kind() as demo:
            box = gr.Textbox()
            box.change(lambda x: x, box, None)
        try:
            sent = demo.preprocess_data(demo.fns[0], [value], None)
            with ThreadPoolExecutor(1) as pool:  # Playwright may have a loop in this thread
                pool.submit(asyncio.run, sent).result()
        except gr.Error as error:
            assert "Give a file, not an address" in error.message
        return went.copy()

    address = {"path": "https://example.com/x.png"} | MARK
    assert send(gr.Blocks, address) == ["https://example.com/x.png"]
    for value in (address, [address], {"deep": [{"er": address}]}):
        assert send(Blocks, value) == []


def test_the_log_tells_the_operator_and_the_app_still_answers(app, picture):
    """After everything above: it lives, and a good picture gets its answer."""
    event, found = app.call("classify", [picture, "vit-mnist", "crop", 3])
    assert event == "complete" and len(found[0]["labels"]) == 3
    assert app.process.poll() is None
