"""The demo as its visitors meet it: a server process, and a client as thin as can be.

The client runs on the same cores as the server, so it must not cost much: plain HTTP, one thread a
visitor. `Visitor.explain` does what any program does that uses the public interface: it uploads a file,
asks, and waits for the answer.
"""

import http.client
import io
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")  # not in every PATH
SETTINGS = ("crop", None, None, 0.5, 0.0, "mean")  # of /explain, after the picture and the model


class Refused(Exception):
    """The server's own words about a request that it did not fulfil."""


class Server:
    """`python app.py ARGUMENTS` as a process of its own: its `address`, the `seconds` until it answered,
    and how many of them its `imports` took."""

    def __init__(
        self,
        *arguments: str,
        prefix: Sequence[str] = (),
        checkout: Path = ROOT,
        **environment: str,
    ):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")  # noqa: SIM115
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-u", "app.py", *arguments],
            cwd=checkout,
            stdout=self.log,
            stderr=self.log,
            env=os.environ | environment,
        )
        while not (ready := re.search(r"Ready: (\S+)", self.said())):
            if self.process.poll() is not None:
                raise SystemExit(self.said())
            time.sleep(0.02)
        self.address = ready[1]
        urlopen(self.address).read()
        self.seconds = time.perf_counter() - began
        self.imports = float(re.search(r"loaded in ([\d.]+) s", self.said())[1])

    def said(self) -> str:
        return Path(self.log.name).read_text()

    @property
    def megabytes(self) -> float:
        """Memory that is in use right now."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait()


class Proxy:
    """nginx in front of several servers, with the configuration that docs/hosting.md recommends."""

    def __init__(self, servers: Sequence[Server]):
        self.folder = tempfile.TemporaryDirectory()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        config = (ROOT / "docs" / "nginx.conf").read_text()
        places = [urlsplit(server.address).netloc for server in servers]
        config = re.sub(
            r"(?:^ +server (\S+)( max_fails.*\n))+",
            lambda found: "".join(f"        server {place}{found[2]}" for place in places),
            config,
            flags=re.MULTILINE,
        )
        config = config.replace("listen 7860;", f"listen 127.0.0.1:{self.port};")
        config = config.replace("/tmp/vit-demo-nginx.pid", f"{self.folder.name}/nginx.pid")
        path = Path(self.folder.name) / "nginx.conf"
        path.write_text(config)
        self.address = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [NGINX, "-c", str(path), "-p", self.folder.name, "-g", "daemon off;"]
        )
        for _ in range(250):
            try:
                urlopen(self.address).read()
                return
            except OSError:
                time.sleep(0.02)
        raise SystemExit("nginx does not answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


class Visitor:
    """One visitor: one connection, one session, as a browser or gradio_client has them."""

    def __init__(self, address: str, timeout: float = 120):
        self.session, self.cookie = secrets.token_hex(8), ""
        self.connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=timeout)

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> bytes:
        headers = {"Content-Type": kind} if kind else {}
        if self.cookie:
            headers["Cookie"] = self.cookie
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.connection.close()  # it was idle for too long; the next request opens another one
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
        text = answer.read()
        self.cookie = (answer.getheader("Set-Cookie") or self.cookie).partition(";")[0]
        if answer.status != 200:
            raise Refused(f"{answer.status} {text[:200].decode(errors='replace')}")
        return text

    def upload(self, name: str, content: bytes) -> str:
        """The server's name for a file."""
        edge = "------visitor"
        head = (
            f'--{edge}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
        )
        body = head.encode() + content + f"\r\n--{edge}--\r\n".encode()
        kind = f"multipart/form-data; boundary={edge}"
        return json.loads(self.ask("POST", "/gradio_api/upload", body, kind))[0]

    def begin(self, endpoint: str, *data) -> str:
        """Stand in the queue; the number of the place."""
        body = json.dumps({"data": data, "session_hash": self.session}).encode()
        text = self.ask("POST", f"/gradio_api/call/{endpoint}", body, "application/json")
        return json.loads(text)["event_id"]

    def answer(self, endpoint: str, event: str) -> list:
        """Wait for the answer."""
        text = self.ask("GET", f"/gradio_api/call/{endpoint}/{event}").decode()
        kind, data = re.findall(r"event: (\w+)\ndata: (.*)", text)[-1]
        if kind != "complete":
            raise Refused(data)
        return json.loads(data)

    def call(self, endpoint: str, picture: bytes, *arguments, name: str = "picture.jpg") -> list:
        file = {"path": self.upload(name, picture), "meta": {"_type": "gradio.FileData"}}
        return self.answer(endpoint, self.begin(endpoint, file, *arguments))


def noise(seed: int, size: tuple[int, int] = (640, 480)) -> bytes:
    """A picture nobody has sent before, as a JPEG file."""
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).resize(size).save(stream, "JPEG", quality=90)
    return stream.getvalue()
