"""The server as a process: what it refuses to take in, and what it leaves behind."""

import asyncio
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.patience import call_with_patience, wait_until
from support.ports import free_port

from benchmarks.visitors import ROOT, SETTINGS, Refused, Server, Visitor, noise
from vit_demo.ui import folder as folder_module
from vit_demo.ui import limits
from vit_demo.ui.folder import Folder, remove_old

MEGABYTE = 2**20


def files_below(folder: Path) -> list[str]:
    """Also while the server removes some of them, which rglob does not survive."""
    found = [Path(top, name) for top, _, names in os.walk(folder) for name in names]
    return sorted(str(path.relative_to(folder)) for path in found)


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


def test_connections_that_ask_nothing_lock_nobody_out(tmp_path):
    """More of them than the server may open files, twice, also with half a request: it answers others at
    once, says one line about it, and closes them in the end. A page that listens keeps its connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    few_files = ("prlimit", "--nofile=1024:1024")
    lines: list[socket.socket] = []
    with Server("--port", str(free_port()), prefix=few_files, TMPDIR=str(tmp_path)) as server:
        where = (urlsplit(server.address).hostname, urlsplit(server.address).port)
        try:
            listens = socket.create_connection(where, timeout=60)
            listens.sendall(b"GET /gradio_api/heartbeat/page HTTP/1.1\r\nHost: x\r\n\r\n")
            assert listens.recv(12) == b"HTTP/1.1 200"
            for half in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n"):
                for _ in range(1100):
                    lines.append(socket.create_connection(where, timeout=60))
                    with suppress(OSError):  # it has had to go already
                        lines[-1].sendall(half)
                for _ in range(3):
                    answer = http.client.HTTPConnection(*where, timeout=30)
                    answer.request("GET", "/")
                    assert answer.getresponse().status == 200
            for line in lines:
                with suppress(ConnectionResetError):
                    assert line.recv(1) == b""  # or this takes a minute, and fails
            listens.setblocking(False)
            with suppress(BlockingIOError):  # nothing more is there yet
                while True:
                    assert listens.recv(10_000) != b""
        finally:
            for line in [*lines, listens]:
                line.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        said = server.said()
    assert "Traceback" not in said and said.count("Too many") <= 2, said[:5_000]


def test_half_an_upload_does_not_hold_its_connection(monkeypatch):
    monkeypatch.setattr(limits, "SLOWEST", 0.01)
    sent = []

    async def receive() -> dict:
        if not sent:
            sent.append("a piece")
            return {"type": "http.request", "body": b"--x", "more_body": True}
        await asyncio.Event().wait()

    async def reads_all(scope, receive, send) -> None:
        while (await receive())["more_body"]:
            pass

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/gradio_api/upload", "headers": [], "query_string": b""}
    call_with_patience(lambda: asyncio.run(limits.BodyLimit(reads_all)(scope, receive, send)))
    assert sent[1]["status"] == 408 and b"did not arrive in full; send it again." in sent[2]["body"]


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


@pytest.mark.parametrize(
    "parameter", [b"filename=", b"FILENAME=", b"Filename =", b"filename\t=", b"FILENAME*=utf-8''"]
)
@pytest.mark.parametrize("header", [b"Content-Disposition", b"CONTENT-disposition"])
def test_an_upload_has_sixteen_files(server, header, parameter):
    """However they are written down, and however small they are."""
    uploads = next(server.folder.glob("vit-demo-*")) / "uploads"
    for files, most in ((17, False), (16, True)):
        if not most:
            before = set(files_below(uploads))
        body = multipart(files, 9).replace(b"filename=", parameter)
        body = body.replace(b"Content-Disposition", header)
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        headers["Content-Length"] = str(len(body))
        status, _ = send(server.address, "/gradio_api/upload", [body], headers)
        if most:
            assert status != 413
        else:
            assert status == 413 and set(files_below(uploads)) <= before


@pytest.mark.parametrize("piece", [1, 7, 100, 10**6])
def test_files_are_counted_across_pieces(piece):
    body = multipart(17, 9)
    pieces = [body[i : i + piece] for i in range(0, len(body), piece)]
    sent, read = [], 0

    async def receive() -> dict:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def reads_all(scope, receive, send) -> None:
        nonlocal read
        while (await receive())["more_body"]:
            read += piece

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/gradio_api/upload", "headers": [], "query_string": b""}
    call_with_patience(lambda: asyncio.run(limits.BodyLimit(reads_all)(scope, receive, send)))
    assert sent[0]["status"] == 413 and read < len(body)


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
        for top, folders, names in os.walk(uploads):
            for name in (*folders, *names):
                with suppress(FileNotFoundError):
                    os.utime(Path(top, name), (0, 0))  # all that is there by now is old
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


def test_a_picture_that_goes_meanwhile_does_not_end_the_sweeping(monkeypatch):
    """The store removes folders while they are listed here."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", "")  # restored afterwards
    folder, listing = Folder(), os.scandir
    going = folder.pictures / "id"
    going.mkdir()

    def scandir(path="."):
        if Path(path) == going and going.exists():
            going.rmdir()
        return listing(path)

    monkeypatch.setattr(os, "scandir", scandir)
    folder.tidy()
    assert not going.exists()
    monkeypatch.setattr(os, "scandir", listing)
    folder.remove()


def test_the_oldest_files_go_when_there_are_too_many(monkeypatch):
    """Small as they may be; and the folders in which Gradio put them."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", "")  # restored afterwards
    monkeypatch.setattr(folder_module, "SWEEP_EVERY", 0.01)
    folder = Folder()
    paths = [folder.uploads / str(age) / "1.png" for age in range(20)]
    for age, path in enumerate(paths):
        path.parent.mkdir()
        path.write_bytes(b"")
        os.utime(path, (time.time() - 10 * age - 10,) * 2)
    monkeypatch.setattr(folder_module, "MOST_FILES", 5)
    wait_until(lambda: len([*folder.uploads.iterdir()]) == 5, "the clock")
    assert all(path.exists() for path in paths[:5])
    folder.remove()


@pytest.mark.parametrize("minutes", ["0", "-1", "abc", "nan", "1e-9"])
def test_how_long_uploads_are_kept_is_checked(minutes, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_KEEP_MINUTES", minutes)
    with pytest.raises(ValueError, match="VIT_DEMO_KEEP_MINUTES is .*; set it to the minutes"):
        Folder()


def test_a_lock_that_is_no_file_holds_nobody_up(tmp_path):
    """Anybody may write to the place for temporary files."""
    pipe, link = tmp_path / "vit-demo-pipe", tmp_path / "vit-demo-link"
    for folder in (pipe, link):
        folder.mkdir()
    os.mkfifo(pipe / "lock")
    (tmp_path / "mine").write_text("mine")
    (link / "lock").symlink_to(tmp_path / "mine")
    call_with_patience(lambda: folder_module.remove_abandoned(tmp_path))
    assert pipe.exists() and link.exists() and (tmp_path / "mine").read_text() == "mine"


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
