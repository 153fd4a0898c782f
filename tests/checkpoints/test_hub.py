"""Weights from a folder, a cache, a hub that works, and hubs that are silent, wrong or away."""

import errno
import http.server
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save, save_file
from support.hub import TOY, simulated_hub, toy_weights
from support.paths import ROOT
from support.patience import call_with_patience, wait_until
from support.timm import NAME, same_logits, unreachable

from vit_demo.checkpoints import hub as hub_module
from vit_demo.checkpoints import load_checkpoint
from vit_demo.checkpoints.hub import HUB_SECONDS, STALL_SECONDS, can_download, downloaded
from vit_demo.checkpoints.weights import CheckpointError


def test_weights_are_looked_up_when_load_is_called(shared, monkeypatch, tmp_path):
    monkeypatch.setattr("vit_demo.checkpoints.hub.cached_file", lambda repo: None)
    unreachable(monkeypatch, "http://127.0.0.1:9")
    monkeypatch.setenv("VIT_DEMO_WEIGHTS", str(tmp_path))
    with pytest.raises(CheckpointError):
        load_checkpoint("deit_tiny_patch16_224.fb_in1k")
    monkeypatch.setenv("VIT_DEMO_WEIGHTS", str(shared / "weights"))
    assert load_checkpoint("deit_tiny_patch16_224.fb_in1k").model.config.embed_dim == 192


def test_the_hubs_cache_comes_before_the_network(own_folder, monkeypatch):
    path = own_folder / "somewhere.safetensors"
    reference = timm.create_model(NAME)
    save_file(reference.state_dict(), path)
    monkeypatch.setattr(
        "vit_demo.checkpoints.hub.cached_file", lambda repo: path if NAME in repo else None
    )
    assert same_logits(load_checkpoint(NAME).model, reference)


def assert_given_up_in_one_line(name: str = NAME) -> None:
    with pytest.raises(CheckpointError) as error:
        call_with_patience(lambda: load_checkpoint(name))
    assert "could not be downloaded" in str(error.value)
    assert "VIT_DEMO_WEIGHTS" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_hub_that_refuses_is_given_up_at_once(own_folder):
    assert_given_up_in_one_line()


def test_a_hub_that_never_answers_is_given_up(own_folder, monkeypatch):
    import socket

    monkeypatch.setattr("vit_demo.checkpoints.hub.HUB_SECONDS", 1)  # the same way, only sooner

    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and says nothing
        unreachable(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert_given_up_in_one_line()


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_a_hub_that_answers_with_an_error_is_given_up_at_once(own_folder, monkeypatch, status):
    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_error(status)

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        unreachable(monkeypatch, f"http://127.0.0.1:{server.server_port}")
        assert_given_up_in_one_line()
        server.shutdown()


def test_offline_mode_is_respected(own_folder, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert_given_up_in_one_line()


# A hub that works, on this machine


def test_a_hub_model_is_downloaded_once_and_then_comes_from_the_cache(tmp_path):
    name = "test_vit.r160_in1k"
    torch.manual_seed(5)
    reference = timm.create_model(name).eval()
    content = save({key: tensor.contiguous() for key, tensor in reference.state_dict().items()})
    asked = []

    class Hub(http.server.BaseHTTPRequestHandler):
        def answer(self, body: bytes) -> None:
            asked.append((self.command, self.path))
            found = self.path == f"/timm/{name}/resolve/main/model.safetensors"
            self.send_response(200 if found else 404)
            self.send_header("ETag", '"abc"')
            self.send_header("X-Repo-Commit", "1" * 40)
            self.send_header("Content-Length", str(len(content) if found else 0))
            self.end_headers()
            self.wfile.write(body if found else b"")

        def do_HEAD(self):
            self.answer(b"")

        def do_GET(self):
            self.answer(content)

        def log_message(self, *args):
            pass

    Image.new("RGB", (50, 40), "teal").save(tmp_path / "teal.png")
    command = ["classify", str(tmp_path / "teal.png"), "--model", name, "--json", "--top", "3"]

    def classify(port: int) -> subprocess.CompletedProcess:
        own = {"HF_ENDPOINT": f"http://127.0.0.1:{port}", "HF_HOME": str(tmp_path / "hub")}
        return subprocess.run(
            [sys.executable, "-m", "vit_demo", *command],
            env=os.environ | own,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        first = classify(server.server_port)
        server.shutdown()
    assert first.returncode == 0, first.stderr
    assert ("GET", f"/timm/{name}/resolve/main/model.safetensors") in asked
    again = classify(9)  # nobody listens there
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(reference))
    with torch.inference_mode():
        logits = reference(transform(Image.new("RGB", (50, 40), "teal"))[None])[0]
    labels = json.loads(first.stdout)[0]["labels"]
    assert [p["index"] for p in labels] == logits.topk(3).indices.tolist()


# A hub that does not, on this machine


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with simulated_hub(monkeypatch, tmp_path / "cache") as hub:
        yield hub


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("refuses", "hub cannot be reached"),
        ("silence", "hub cannot be reached"),
        ("half", "hub cannot be reached"),
        ("wrong bytes", "arrived damaged"),
        ("full disk", "disk is full"),
    ],
)
def test_a_hub_that_fails_is_reported_and_the_next_try_works(
    hub, tmp_path, monkeypatch, fault, words
):
    from huggingface_hub import file_download

    hub.fault = fault
    with monkeypatch.context() as patch:
        patch.setattr("vit_demo.checkpoints.hub.STALL_SECONDS", 1)  # the same way, only sooner
        if fault == "full disk":

            def full(url, file, **options):
                file.write(b"a few bytes fit")
                raise OSError(errno.ENOSPC, "No space left on device")

            patch.setattr(file_download, "http_get", full)
        with pytest.raises(CheckpointError, match=words) as error:
            call_with_patience(lambda: load_checkpoint(TOY))
    assert "choose a model that needs no download" in str(error.value)
    assert str(tmp_path) not in str(error.value)
    hub.fault = "none"
    assert load_checkpoint(TOY).name == TOY
    gets = hub.gets
    assert load_checkpoint(TOY).name == TOY
    assert hub.gets == gets  # from the cache
    whole = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert not [path for path in whole if "incomplete" in path.name and fault != "silence"]


def test_a_file_that_was_damaged_in_the_cache_is_fetched_again(hub, tmp_path):
    load_checkpoint(TOY)
    blob = next((tmp_path / "cache").rglob("blobs/*"))
    content = bytearray(blob.read_bytes())
    content[-1] ^= 1
    blob.write_bytes(content)
    assert load_checkpoint(TOY).name == TOY
    assert hub.gets == 2


def test_how_long_a_download_may_stand_still():
    assert HUB_SECONDS < STALL_SECONDS < 10


# How far a download is


def test_progress_is_what_the_hub_has_sent(hub, monkeypatch):
    """Portion by portion: the bytes that are said to have come have come."""
    monkeypatch.setattr("vit_demo.checkpoints.hub.CHUNK_BYTES", 2**12)
    hub.fault, size = "portions", len(toy_weights())
    assert downloaded(TOY) is None
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(load_checkpoint, TOY)
        for portion in range(1, 10):
            hub.portions.release()
            least = portion * size // 10 - 2**13
            wait_until(lambda least=least: (downloaded(TOY) or (0, 0))[0] > least)
            came, total = downloaded(TOY)
            assert total == size and came <= -(-size // 10) * portion
        hub.portions.release()
        assert job.result().name == TOY
    assert downloaded(TOY) is None


def test_a_slow_line_is_no_line_that_stands_still(hub, monkeypatch):
    """The hub's client reports chunks of 10 MB, if it is not told otherwise: minutes on a slow line."""
    hub.fault = "portions"
    hub.portions.release(3)  # 30 % arrive, less than one chunk of 10 MB
    monkeypatch.setattr("vit_demo.checkpoints.hub.STALL_SECONDS", 60)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(load_checkpoint, TOY)
        wait_until(lambda: (downloaded(TOY) or (0, 0))[0] > 0)
        hub.portions.release(7)
        assert job.result().name == TOY


@pytest.mark.parametrize(("fault", "answer"), [("none", True), ("refuses", False), ("mute", False)])
def test_whether_the_hub_would_give_a_model(hub, monkeypatch, fault, answer):
    monkeypatch.setattr("vit_demo.checkpoints.hub.HUB_SECONDS", 1)  # the same way, only sooner
    hub.fault = fault
    assert call_with_patience(lambda: can_download(f"timm/{TOY}")) is answer
    hub.fault = "refuses" if answer else "none"
    assert can_download(f"timm/{TOY}") is answer  # believed for a while
    monkeypatch.setattr("vit_demo.checkpoints.hub.ASK_AGAIN_SECONDS", 0)
    assert can_download(f"timm/{TOY}") is not answer


def test_what_is_on_disk(hub, tmp_path, monkeypatch):
    assert not hub_module.is_on_disk(TOY)
    load_checkpoint(TOY)
    assert hub_module.is_on_disk(TOY)  # in the hub's cache
    assert not hub_module.is_on_disk(NAME)
    (tmp_path / f"{NAME}.safetensors").write_bytes(b"")
    monkeypatch.setenv("VIT_DEMO_WEIGHTS", str(tmp_path))
    assert hub_module.is_on_disk(NAME)
