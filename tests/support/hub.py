"""A model hub on this machine: it has one small model, and does to those who ask what a test wants."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save

TOY = "test_vit.r160_in1k"


@cache
def toy_weights() -> bytes:
    """The file of the small model, with random numbers."""
    torch.manual_seed(5)
    weights = timm.create_model(TOY).state_dict()
    return save({key: tensor.contiguous() for key, tensor in weights.items()})


@contextmanager
def simulated_hub(
    monkeypatch: pytest.MonkeyPatch, cache_folder: Path, patience: float = 3
) -> Iterator[type]:
    """A hub with one model. What it does to those who ask is `hub.fault`, in this moment: "none",
    "refuses", "mute" (accepts, and says nothing), "wrong bytes", "half", "silence" (after one half),
    "portions": a tenth of the file whenever `hub.portions` is released. `patience`: how many
    seconds the client waits for the next byte."""
    from huggingface_hub import constants

    toy, done = toy_weights(), threading.Event()

    class Hub(http.server.BaseHTTPRequestHandler):
        fault, gets, portions = "none", 0, threading.Semaphore(0)

        def do_HEAD(self):
            if Hub.fault == "mute":
                done.wait(60)
            if Hub.fault in ("refuses", "mute"):
                self.connection.close()
                return
            self.head(len(toy))

        def head(self, size: int) -> bool:
            found = self.path == f"/timm/{TOY}/resolve/main/model.safetensors"
            self.send_response(200 if found else 404)
            self.send_header("ETag", f'"{hashlib.sha256(toy).hexdigest()}"')
            self.send_header("X-Repo-Commit", "1" * 40)
            self.send_header("Content-Length", str(size if found else 0))
            self.end_headers()
            return found

        def do_GET(self):
            if not self.head(len(toy)):  # the client asks for other things, too
                return
            Hub.gets += 1
            if Hub.fault == "wrong bytes":
                self.wfile.write(toy[:-1] + bytes([toy[-1] ^ 1]))
            elif Hub.fault in ("half", "silence"):
                self.wfile.write(toy[: len(toy) // 2])
                self.wfile.flush()
                if Hub.fault == "silence":
                    done.wait(30)
            elif Hub.fault == "portions":
                size = -(-len(toy) // 10)
                for start in range(0, len(toy), size):
                    Hub.portions.acquire(timeout=60)
                    self.wfile.write(toy[start : start + size])
                    self.wfile.flush()
            else:
                self.wfile.write(toy)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # whoever hangs up has seen enough
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        where = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", patience)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", where)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache_folder))
        monkeypatch.setattr("vit_demo.checkpoints.hub.ANSWERS", {})
        monkeypatch.delenv("VIT_DEMO_WEIGHTS", raising=False)
        yield Hub
        done.set()
        Hub.portions.release(100)
        server.shutdown()
