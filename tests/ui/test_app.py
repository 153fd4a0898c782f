"""The app without a browser: its programming interface, many visitors, its memory, its start."""

import copy
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.paths import ROOT
from support.shared import missing

from vit_demo.checkpoints.weights import CheckpointError
from vit_demo.embedded import embedded
from vit_demo.explain import Classifier
from vit_demo.export import maps_of_layers
from vit_demo.map_settings import settings_from
from vit_demo.ui.store import Models, Server, Store

DEIT = "deit_tiny_patch16_224.fb_in1k"


@pytest.fixture(scope="module")
def server(shared):
    for name in ("vit-cifar10", "vit-mnist"):
        if name not in embedded():
            missing(f"assets/{name}.safetensors is not here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIT_DEMO_WEIGHTS", str(shared / "weights"))
        from vit_demo.ui import page

        demo = page.make(device="cpu")
        _, url, _ = demo.launch(
            server_name="127.0.0.1", prevent_thread_lock=True, **page.launch_options()
        )
        yield url
        demo.close(verbose=False)


@pytest.fixture(scope="module")
def client(server):
    from gradio_client import Client

    return Client(server, verbose=False, httpx_kwargs={"timeout": 300})


@pytest.fixture(scope="module")
def lion():
    return ROOT / "assets" / "examples" / "lion.jpg"


@pytest.fixture(scope="module")
def small() -> Classifier:
    """A photo model without a file: random weights, ten labels."""
    from vit_demo.checkpoints import Checkpoint
    from vit_demo.model import VisionTransformer, ViTConfig
    from vit_demo.view import Preprocess

    torch.manual_seed(0)
    config = ViTConfig(
        image_size=32, patch_size=8, embed_dim=32, depth=3, heads=2, mlp_dim=64, num_classes=10
    )
    labels = [f"label {index}" for index in range(10)]
    model = VisionTransformer(config)
    return Classifier(Checkpoint("small", model, labels, Preprocess(size=(32, 32))), "cpu")


# The interface for programs


def test_public_interface_is_two_endpoints(client):
    api = client.view_api(return_format="dict", print_info=False)
    named = api["named_endpoints"]
    assert sorted(named) == ["/classify", "/explain"]
    assert api["unnamed_endpoints"] == {}
    names = {
        path: [p["parameter_name"] for p in about["parameters"]] for path, about in named.items()
    }
    assert names["/classify"] == ["image", "model", "fit", "top"]
    settings = ["row", "column", "residual", "discard", "below"]
    assert names["/explain"] == ["image", "model", "fit", *settings]
    wanted = [
        p["parameter_name"]
        for p in named["/explain"]["parameters"]
        if not p["parameter_has_default"]
    ]
    assert wanted == ["image"]
    assert len(named["/classify"]["returns"]) == 1 and len(named["/explain"]["returns"]) == 2


def test_classify(client, lion, deit_tiny):
    from gradio_client import handle_file

    answer = client.predict(handle_file(lion), DEIT, "crop", 3, api_name="/classify")
    assert answer["model"] == DEIT
    expected = deit_tiny.classify(lion, 3)
    assert [label["label"] for label in answer["labels"]] == [p.label for p in expected]
    assert answer["labels"][0]["probability"] == pytest.approx(expected[0].probability, rel=1e-4)


def test_explain_gives_the_librarys_maps(client, lion, deit_tiny):
    from gradio_client import handle_file

    about, file = client.predict(
        image=handle_file(lion), model=DEIT, fit="pad", row=2, column=5, residual=0.3, discard=0.5,
        below="mean", api_name="/explain",
    )  # fmt: skip
    expected = deit_tiny.explain(lion, "pad").arrays((2, 5), residual=0.3, discard=0.5)
    with np.load(file) as maps:
        assert sorted(maps) == sorted(expected)
        for name, array in expected.items():
            np.testing.assert_allclose(maps[name], array, rtol=1e-4, atol=1e-6)
    assert about["settings"]["query"] == [2, 5] and about["settings"]["residual"] == 0.3
    assert about["prefix_mass"] == pytest.approx(float(expected["prefix_mass"]), rel=1e-4)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"model": "no_such_model"}, "There is no model"),
        ({"model": "/etc/passwd"}, "There is no model"),
        ({"model": "../../weights.safetensors"}, "There is no model"),
        ({"model": "swin_tiny_patch4_window7_224"}, "Swin"),
        ({"image": "text"}, "not a picture"),
        ({"top": 0}, "ask for 1 label or more"),
    ],
)
def test_errors_are_one_plain_sentence(client, lion, tmp_path, inputs, words):
    from gradio_client import handle_file
    from gradio_client.exceptions import AppError

    if inputs.get("image"):
        lion = tmp_path / "notes.png"
        lion.write_text("no picture at all")
    with pytest.raises(AppError, match=words) as caught:
        client.predict(
            handle_file(lion), inputs.get("model", DEIT), "crop", inputs.get("top", 10),
            api_name="/classify",
        )  # fmt: skip
    message = str(caught.value)
    assert "Traceback" not in message and "\n" not in message
    assert str(tmp_path) not in message and "gradio" not in message


def test_private_events_are_refused(client):
    with pytest.raises(ValueError, match="api_name"):
        client.predict("example cat", api_name="/look")


def test_eight_visitors_are_not_mixed_up(server, tmp_path):
    """Eight visitors, five pictures each, all at once: everybody gets the answer to his picture."""
    from gradio_client import Client, handle_file

    import vit_demo

    model = "vit-cifar10"
    rng = np.random.default_rng(0)
    paths, expected = [], []
    for number in range(40):
        noise = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        path = tmp_path / f"{number}.png"
        Image.fromarray(noise).resize((64, 64), Image.Resampling.NEAREST).save(path)
        paths.append(path)
    classifier = vit_demo.load(model, device="cpu")
    for path in paths:
        expected.append(classifier.explain(path).describe())
    patient = {"timeout": 300}
    clients = [Client(server, verbose=False, httpx_kwargs=patient) for _ in range(8)]

    def visit(visitor: int) -> list:
        mine = range(visitor * 5, visitor * 5 + 5)
        jobs = [
            clients[visitor].submit(handle_file(paths[i]), model, api_name="/explain") for i in mine
        ]
        return [(i, job.result(timeout=300)[0]) for i, job in zip(mine, jobs, strict=True)]

    with ThreadPoolExecutor(8) as pool:
        answers = [pair for pairs in pool.map(visit, range(8)) for pair in pairs]
    assert len(answers) == 40
    for i, about in answers:
        for got, wanted in zip(about["labels"], expected[i]["labels"], strict=True):
            assert got["probability"] == pytest.approx(wanted["probability"], abs=1e-4)
    first = {round(about["labels"][0]["probability"], 5) for _, about in answers}
    assert len(first) > 30  # the pictures can be told apart by their answers


# What is kept


def test_store_is_bounded(small, lion, tmp_path):
    store = Store(tmp_path, most=3)
    try:
        ids = [store.put(small.explain(lion), key=number) for number in range(5)]
        assert [store.get(id) is not None for id in ids] == [False, False, True, True, True]
        assert [store.find(number) is not None for number in range(5)] == [False] * 2 + [True] * 3
        assert sorted(path.name for path in store.folder.iterdir()) == sorted(ids[2:])
        assert len(set(ids)) == 5 and all(len(id) >= 24 for id in ids)
        store.get(ids[2])  # used again: now another one is the oldest
        store.put(small.explain(lion))
        assert store.get(ids[2]) is not None and store.get(ids[3]) is None
    finally:
        store.close()
    assert not store.folder.exists()


def test_store_is_bounded_in_bytes(small, lion, tmp_path):
    one = small.explain(lion)
    store = Store(tmp_path, most_bytes=2 * one.memory)
    ids = [store.put(one) for _ in range(4)]
    assert [store.get(id) is not None for id in ids] == [False, False, True, True]
    store.close()


def test_models_are_loaded_once_and_bounded(small):
    loaded = []

    def load(name: str) -> Classifier:
        loaded.append(name)
        time.sleep(0.05)
        return copy.copy(small)

    models = Models(load, most_bytes=1)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(models.get, ["a"] * 4))
    assert loaded == ["a"]
    models.get("b")
    assert "b" in models and "a" not in models


def test_a_visitor_never_names_a_file(shared):
    path = str(shared / "weights" / f"{DEIT}.safetensors")
    server = Server()
    for name in (path, "x.pth", "./x", "..\\x.safetensors"):
        with pytest.raises(CheckpointError, match="There is no model"):
            server.load(name)
    server.store.close()


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_memory_comes_back_after_200_pictures(small):
    """With a full store, 200 more pictures leave neither memory nor files behind."""
    server = Server()
    server.models.kept["small"] = small
    rng = np.random.default_rng(0)

    def look(count: int) -> None:
        for _ in range(count):
            picture = Image.fromarray(rng.integers(0, 256, (480, 640, 3), dtype=np.uint8))
            server.explain(picture, "small", "crop")
        gc.collect()

    look(60)
    before, files = resident(), len(list(server.store.folder.iterdir()))
    look(200)
    assert resident() < 1.1 * before
    assert len(list(server.store.folder.iterdir())) == files == server.store.most
    server.store.close()


def test_state_of_the_explorer_in_python(small, lion):
    explanation = small.explain(lion)
    state = {"map": "rollout", "head": "max", "query": [1, 2], "residual": 0.2, "discard": 0.1}
    settings = settings_from(state)
    assert settings.fusion == "max" and settings.query == (1, 2)
    maps = maps_of_layers(explanation, settings)
    expected = explanation.rollout(1, query=(1, 2), fusion="max", residual=0.2, discard=0.1)
    np.testing.assert_allclose(maps[1], expected)
    state = {"map": "attention", "head": 1, "direction": "to", "query": [0, 0]}
    maps = maps_of_layers(explanation, settings_from(state))
    np.testing.assert_allclose(maps[2], explanation.attention(2, 1, (0, 0), direction="to"))
    state = {"map": "head_rollout", "head": 1, "query": None, "below": "same"}
    maps = maps_of_layers(explanation, settings_from(state))
    np.testing.assert_allclose(maps[2], explanation.head_rollouts(2, below="same")[1])


# Starting and stopping


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
    ],
)
def test_bad_arguments_end_in_one_line(arguments, words):
    process = start(*arguments)
    text, _ = process.communicate(timeout=300)
    assert process.returncode != 0
    assert words in text.splitlines()[-1] and "Traceback" not in text


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


def test_importing_the_app_does_not_start_it():
    if "vit-cifar10" not in embedded():
        missing("assets/vit-cifar10.safetensors is not here")
    code = "import app; print(type(app.demo).__name__, app.demo.is_running)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.stdout.splitlines()[-1] == "Blocks False", run.stderr


def test_two_views_of_one_example_do_not_share_a_file(small, lion):
    server = Server()
    server.models.kept["small"] = small
    id = server.explain(str(lion), "small", "crop", "lion")
    views = [{"residual": 0.2}, {"residual": 0.8}]
    names = [server.save(id, "npz", view, "en") for view in views]
    assert names[0] != names[1]
    for name, view in zip(names, views, strict=True):
        with np.load(server.store.folder_of(id) / name) as maps:
            expected = server.store.get(id).rollout(**view)
            np.testing.assert_allclose(maps["rollout"], expected, atol=1e-6)
    for step in range(40):
        server.save(id, "json", {"residual": step / 40}, "en")
    assert len(list(server.store.folder_of(id).iterdir())) < 30
    server.store.close()
