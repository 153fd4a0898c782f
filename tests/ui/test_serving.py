"""The server as a process: what it refuses to take in, and what it leaves behind."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.patience import wait_until
from support.ports import free_port

from benchmarks.visitors import ROOT, SETTINGS, Refused, Server, Visitor, noise
from vit_demo.ui import folder as folder_module
from vit_demo.ui.folder import Folder, remove_old

MEGABYTE = 2**20


def files_below(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.mark.slow
def test_killed_and_started_again_nothing_is_left(tmp_path):
    """Kill the server in the middle of its work; the next one, in a checkout that cannot be written
    to, removes what the first one left, and leaves nothing itself."""
    checkout, temporary, home = (tmp_path / name for name in ("checkout", "temporary", "home"))
    for name in ("vit_demo", "assets"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", checkout)
    temporary.mkdir()
    home.mkdir()
    places = {"TMPDIR": str(temporary), "HOME": str(home)}

    with Server("--port", str(free_port()), **places) as server:
        stop = threading.Event()

        def keep_asking(number: int) -> None:
            visitor = Visitor(server.address)
            while not stop.is_set():
                try:
                    visitor.call("explain", noise(number), "vit-photos", *SETTINGS)
                except (OSError, http.client.HTTPException):
                    return

        with ThreadPoolExecutor(4) as pool:
            for number in range(4):
                pool.submit(keep_asking, number)
            wait_until(lambda: list(temporary.rglob("*.jpg")), "the first upload")
            server.process.send_signal(signal.SIGKILL)
            stop.set()
    assert files_below(temporary)  # or this test would show nothing

    before = files_below(checkout)
    for path in [checkout, *checkout.rglob("*")]:
        path.chmod(path.stat().st_mode & 0o555)
    # Root may write everywhere; without these capabilities root is as bound as everybody else.
    bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    prefix = bound if os.geteuid() == 0 else []
    with Server("--port", str(free_port()), prefix=prefix, checkout=checkout, **places) as server:
        about, maps = Visitor(server.address).call("explain", noise(1), "vit-photos", *SETTINGS)
        assert len(about["labels"]) == 10 and maps["orig_name"] == "maps.npz"
        assert len(list(temporary.glob("vit-demo-*"))) == 1  # the killed one's is gone
    assert files_below(temporary) == []
    assert files_below(checkout) == before
    for path in [checkout, *checkout.rglob("*")]:
        path.chmod(0o755)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with Server(
        "--port", str(free_port()), TMPDIR=str(folder), VIT_DEMO_KEEP_MINUTES="0.1"
    ) as server:
        server.folder = folder
        yield server


def send(address: str, path: str, parts, headers: dict) -> tuple[int, bytes]:
    """One request with a body in parts; the server may answer before all of it was sent."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.putrequest("POST", path)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    try:
        for part in parts:
            connection.send(part)
    except (BrokenPipeError, ConnectionResetError):
        pass
    answer = connection.getresponse()
    return answer.status, answer.read()


def multipart(files: int, size: int) -> bytes:
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="%d.png"\r\n\r\n'
    return b"".join(head % i + bytes(size) + b"\r\n" for i in range(files)) + b"--x--\r\n"


@pytest.mark.parametrize(("files", "size"), [(1, 21 * MEGABYTE), (30, MEGABYTE)])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_upload_has_a_limit(server, files, size, chunked):
    body = multipart(files, size)
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    if chunked:
        headers["Transfer-Encoding"] = "chunked"
        pieces = [body[i : i + MEGABYTE] for i in range(0, len(body), MEGABYTE)]
        parts = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\n\r\n"]
    else:
        headers["Content-Length"] = str(len(body))
        parts = [body]
    status, text = send(server.address, "/gradio_api/upload", parts, headers)
    assert status == 413
    assert "at most 20 MB" in json.loads(text)["detail"]
    Visitor(server.address).call("classify", noise(1), "vit-photos", "crop", 3)  # as before


def test_a_text_has_a_limit(server):
    body = json.dumps({"data": ["x" * 10 * MEGABYTE]}).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    status, text = send(server.address, "/gradio_api/call/classify", [body], headers)
    assert status == 413 and "at most 512 kB" in json.loads(text)["detail"]


def test_old_uploads_are_removed(server):
    """Also those that broke off in the middle, which nobody else knows of."""
    visitor = Visitor(server.address)
    path = Path(visitor.upload("a.jpg", noise(2)))
    connection = http.client.HTTPConnection(urlsplit(server.address).netloc)
    connection.putrequest("POST", "/gradio_api/upload")
    connection.putheader("Content-Type", "multipart/form-data; boundary=x")
    connection.putheader("Content-Length", str(MEGABYTE))
    connection.endheaders()
    connection.send(multipart(1, MEGABYTE)[: MEGABYTE // 2])
    connection.close()
    assert path.exists()
    uploads = path.parents[1]

    def swept() -> bool:
        for file in uploads.rglob("*"):
            with suppress(FileNotFoundError):
                os.utime(file, (0, 0))  # all that is there by now is old
        return not files_below(uploads)

    wait_until(swept, "the removal of old files")
    assert not path.exists()


def test_what_is_young_stays(tmp_path):
    for name, age in {
        "old/a.png": 100,
        "old/b.png": 100,
        "mixed/c.png": 100,
        "mixed/d.png": 1,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, times=(time.time() - age,) * 2)
    for folder in ("old", "mixed"):
        os.utime(tmp_path / folder, times=(time.time() - 100,) * 2)
    remove_old(tmp_path, 50)
    assert files_below(tmp_path) == ["mixed/d.png"]


def test_folders_of_killed_servers_are_removed_and_no_others(tmp_path):
    """Each in a process of its own, which says where its folder is, and waits. Whose number a process
    has does not matter: the live one's folder stays, also when it is older."""
    code = "from vit_demo.ui.folder import Folder; print(Folder().path, flush=True); input()"

    def start() -> tuple[subprocess.Popen, Path]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = os.environ | {"TMPDIR": str(tmp_path)}
        process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, **pipes)
        return process, Path(process.stdout.readline().strip())

    (alive, first), (killed, second) = start(), start()
    second.joinpath("uploads", "a.jpg").write_bytes(b"a visitor's picture")
    killed.kill()
    killed.communicate()
    assert second.exists()
    stranger = tmp_path / "vit-demo-of-mine"  # not made by a server
    stranger.mkdir()
    last, third = start()
    try:
        assert first.exists() and third.exists() and stranger.exists() and not second.exists()
    finally:
        for process in (alive, last):
            process.communicate("\n")


def test_uploads_are_removed_by_a_clock(tmp_path, monkeypatch):
    """Nobody comes, and nothing is called."""
    monkeypatch.setenv("VIT_DEMO_KEEP_MINUTES", "0.001")
    monkeypatch.setenv("GRADIO_TEMP_DIR", "")  # restored afterwards
    folder = Folder()
    folder.uploads.joinpath("a.jpg").write_bytes(b"a visitor's picture")
    wait_until(lambda: not list(folder.uploads.iterdir()), "the clock")
    folder.remove()
    assert not folder.path.exists()


def test_the_oldest_files_go_when_there_are_too_many_bytes(monkeypatch):
    """Uploads and files to take away; what the pictures on the page are made of stays."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", "")  # restored afterwards
    monkeypatch.setattr(folder_module, "SWEEP_EVERY", 0.01)
    folder = Folder()
    names = ["uploads/a/1.jpg", "pictures/id/view/2.npz", "uploads/b/3.jpg", "uploads/4.jpg"]
    for age, name in enumerate([*reversed(names), "pictures/id/explorer.bin"]):
        path = folder.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (time.time() - 10 * age - 10,) * 2)
    monkeypatch.setattr(folder_module, "MOST_BYTES", 250)
    wait_until(lambda: len([*folder.path.rglob("*.*")]) == 3, "the clock")
    left = [name for name in names if folder.path.joinpath(name).exists()]
    assert left == names[2:]
    assert folder.path.joinpath("pictures/id/explorer.bin").exists()
    folder.remove()


def test_who_leaves_the_queue_costs_nothing_and_a_full_queue_says_so(monkeypatch):
    """In this process, where the model can be held back."""
    from vit_demo.ui import page, runner, visitors

    began, go, plain = [], threading.Event(), runner.forward

    def forward(key, views, maps):
        began.append(len(views))
        assert go.wait(60)
        return plain(key, views, maps)

    monkeypatch.setattr(page, "MOST_WAITING", 3)
    monkeypatch.setattr(visitors, "UNHEARD_SECONDS", 600)  # they listen late
    demo = page.make(device="cpu")
    monkeypatch.setattr(runner, "forward", forward)
    _, address, _ = demo.launch(
        server_name="127.0.0.1",
        server_port=free_port(),
        prevent_thread_lock=True,
        **page.launch_options(),
    )
    try:
        file = {
            "path": Visitor(address).upload("a.jpg", noise(1)),
            "meta": {"_type": "gradio.FileData"},
        }
        arguments = (file, "vit-photos", "crop", 3)
        guests = [Visitor(address) for _ in range(19)]
        events = []
        for number, visitor in enumerate(guests):
            events.append(visitor.begin("classify", *arguments))
            waiting = max(0, number + 1 - 16)
            # the others run, which is: wait for the model
            wait_until(lambda: len(demo._queue) == waiting, "a place in the queue")  # noqa: B023
        with pytest.raises(Refused, match="(?i)full"):
            Visitor(address).begin("classify", *arguments)
        gone = Visitor(address, timeout=1)  # the last one looks, and leaves
        with pytest.raises(TimeoutError):
            gone.answer("classify", events.pop())
        gone.connection.close()
        wait_until(lambda: len(demo._queue) == 2, "leaving the queue")
        go.set()
        for visitor, event in zip(guests, events, strict=False):
            assert len(visitor.answer("classify", event)[0]["labels"]) == 3
        assert sum(began) == 18
    finally:
        go.set()
        demo.close(verbose=False)
