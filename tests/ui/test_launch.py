"""The app as a process: how it starts, how it stops, and what it says when it cannot."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from support.page import DEIT
from support.paths import ROOT
from support.shared import missing

from vit_demo.embedded import embedded
from vit_demo.ui import launch
from vit_demo.ui.launch import address


def start(*arguments: str, **environment: str) -> subprocess.Popen:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"} | environment
    return subprocess.Popen(
        [sys.executable, "app.py", *arguments], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def read_until(process: subprocess.Popen, words: str) -> str:
    text = ""
    for line in process.stdout:
        text += line
        if words in line:
            return text
    pytest.fail(f"the app ended before it said {words!r}:\n{text}")


def test_start_with_a_file_and_stop(shared):
    """The first port is taken: the next one serves, and Ctrl-C ends it without a trace."""
    weights = shared / "weights" / f"{DEIT}.safetensors"
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 7860))
            taken.listen()
        except OSError:
            pass  # somebody else has it: as good
        arguments = ("--checkpoint", str(weights), "--arch", "deit_tiny_patch16_224")
        process = start(*arguments, "--device", "cpu")
        try:
            text = read_until(process, "Ready: ")
            assert "Port 7860 is in use" in text
            url = re.search(r"Ready: (http://127.0.0.1:\d+/)", text)[1]
            assert ":7860" not in url
            config = json.loads(fetch(url + "config"))
            models = next(
                c["props"] for c in config["components"] if c["props"].get("elem_id") == "model"
            )
            assert models["value"] == weights.stem
            assert str(weights.parent) not in json.dumps(config)
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "Stopped." in rest and "Traceback" not in rest


def test_the_ipv6_address_of_this_machine():
    try:
        with socket.socket(socket.AF_INET6) as own:
            own.bind(("::1", 0))
    except OSError:
        missing("this machine has no IPv6")
    process = start("--host", "::1", "--device", "cpu")
    try:
        url = re.search(r"Ready: (http://\[::1\]:\d+/)", read_until(process, "Ready: "))[1]
        assert "ViT Demo" in fetch(url)
    finally:
        process.kill()
        process.wait()


def fetch(url: str) -> str:
    from urllib.request import urlopen

    with urlopen(url, timeout=60) as response:
        return response.read().decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "no_such_vit"), "There is no model"),
        (("--checkpoint", "nowhere.safetensors"), "There is no file"),
        (("--port", "99999999"), "choose a port from 1 to 65535"),
        (("--port", "0"), "choose a port from 1 to 65535"),
    ],
)
def test_bad_arguments_end_in_one_line(arguments, words):
    process = start(*arguments)
    text, _ = process.communicate(timeout=300)
    assert process.returncode != 0
    assert words in text.splitlines()[-1] and "Traceback" not in text


def test_a_bad_environment_ends_in_one_line():
    process = start(VIT_DEMO_KEEP_MINUTES="abc")
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "VIT_DEMO_KEEP_MINUTES is 'abc'; set it to" in text.splitlines()[-1]


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_a_port_asked_for_is_not_exchanged(by):
    with socket.socket() as taken:
        taken.bind(("127.0.0.2", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        if by == "flag":
            process = start("--host", "127.0.0.2", "--port", port)
        else:
            process = start(GRADIO_SERVER_NAME="127.0.0.2", GRADIO_SERVER_PORT=port)
        text, _ = process.communicate(timeout=300)
    assert process.returncode != 0
    assert f"cannot listen on 127.0.0.2:{port}" in text.splitlines()[-1]


def test_a_port_in_the_environment_that_is_no_number(monkeypatch):
    monkeypatch.setenv("GRADIO_SERVER_PORT", "abc")
    for port in (None, 7861):
        with pytest.raises(ValueError, match="GRADIO_SERVER_PORT is 'abc'; set it to a number"):
            address(None, port)


def test_gradio_does_not_read_the_environment_again(monkeypatch):
    """An empty port, or an IPv6 name, it would stumble over."""
    monkeypatch.setattr(launch, "free_port", lambda host, port, fixed: port)
    monkeypatch.setenv("GRADIO_SERVER_PORT", "")
    monkeypatch.setenv("GRADIO_SERVER_NAME", "::1")
    assert address(None, None) == ("[::1]", 7860)
    assert not {"GRADIO_SERVER_PORT", "GRADIO_SERVER_NAME"} & set(os.environ)


def test_an_ipv6_address_is_written_as_in_a_url(monkeypatch):
    monkeypatch.setattr(launch, "free_port", lambda host, port, fixed: port)  # not all have IPv6
    assert address("::1", 80) == address("[::1]", 80) == ("[::1]", 80)
    assert address("127.0.0.1", 80) == ("127.0.0.1", 80)


def test_importing_the_app_does_not_start_it():
    if "vit-photos" not in embedded():
        missing("assets/vit-photos.safetensors is not here")
    code = "import app; print(type(app.demo).__name__, app.demo.is_running)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.stdout.splitlines()[-1] == "Blocks False", run.stderr
