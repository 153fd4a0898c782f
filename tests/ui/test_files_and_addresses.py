"""Nobody gets a file that is not theirs, and the app never fetches an address."""

import asyncio
import http.server
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from support import corpus
from support.app import INSIDE, MARK, sentence
from support.paths import ROOT


def test_only_intended_files_can_be_fetched(app, uploaded):
    uploads = Path(uploaded["path"]).parents[1]
    assert app.get(f"/gradio_api/file={uploaded['path']}").status_code == 200  # one's own
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
    secrets += [f"{uploads}/../../../etc/passwd", f"{uploaded['path']}/../../../../../etc/passwd"]
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


def test_a_part_of_a_file_or_all_of_it(app, uploaded):
    """One plain range is answered; all others are ignored, as HTTP allows."""
    for path in (f"/gradio_api/file={uploaded['path']}", "/static/img/logo.svg"):
        whole = app.get(path).content

        def part(wanted: str, path: str = path) -> httpx.Response:
            return app.client.get(app.url + path, headers={"Range": wanted})

        for wanted, bounds in (
            ("bytes=0-0", (0, 1)),
            ("bytes=2-9", (2, 10)),
            ("bytes=5-", (5, None)),
        ):
            found = part(wanted)
            assert (found.status_code, found.content) == (206, whole[slice(*bounds)]), wanted
        assert part(f"bytes={len(whole)}-").status_code == 416
        for wanted in ("bytes=0-0,2-3", "bytes=--1", "bytes=5-2", "bytes=a-b", "lines=1-2", "bytes=",
                       "bytes=-", "bytes=1-2-3", "bytes=" + "9" * 5_000 + "-"):  # fmt: skip
            found = part(wanted)
            assert (found.status_code, found.content) == (200, whole), wanted


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


def test_no_address_is_ever_fetched(app, uploaded, stranger):
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
            event, found = app.call("classify", [uploaded, *rest])
            assert event == "error" and not INSIDE.search(found), (rest, found)
        event, found = app.call("classify", [uploaded | {"url": place}, "vit-mnist", "crop", 3])
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
