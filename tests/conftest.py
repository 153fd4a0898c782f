"""What several test files need."""

import os
from importlib.util import find_spec
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"  # a worker a core, so a thread a worker

import numpy as np
import pytest
import torch
from PIL import Image
from support.models import noise, small_classifier
from support.shared import REQUIRED, SHARED, missing
from support.timm import unreachable


def pytest_collection_modifyitems(config, items) -> None:
    """Tests of an extra that is not installed here are deselected: pip install -r requirements-mcp.txt
    beside requirements-dev.txt, and they run."""
    if find_spec("mcp") is not None:
        return
    without = [item for item in items if item.get_closest_marker("mcp")]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """VIT_DEMO_REQUIRE_ALL=1: a test that skips has failed, whatever made it skip."""
    report = yield
    if REQUIRED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} may not skip here: {call.excinfo.value}"
    return report


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real weights, pictures and data sets beside the repository."""
    if not SHARED.is_dir():
        missing("put the weights, pictures and data sets that CONTRIBUTING.md lists into ../shared")
    return SHARED


@pytest.fixture(scope="session")
def imagenet_pictures(shared) -> list[Path]:
    return sorted((shared / "images" / "imagenet").glob("*.JPEG"))


@pytest.fixture(scope="session")
def loaded_deit_tiny(shared):
    import vit_demo

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIT_DEMO_WEIGHTS", str(shared / "weights"))
        return vit_demo.load("deit_tiny_patch16_224.fb_in1k", device="cpu")


@pytest.fixture
def deit_tiny(shared, monkeypatch, loaded_deit_tiny):
    """The real DeiT-tiny, loaded by its timm name from a folder of weights; nobody may change it."""
    monkeypatch.setenv("VIT_DEMO_WEIGHTS", str(shared / "weights"))
    return loaded_deit_tiny


@pytest.fixture(scope="session")
def vit_mnist():
    """The embedded model of digits; nobody may change it."""
    import vit_demo
    from vit_demo.embedded import embedded

    if "vit-mnist" not in embedded():
        missing("assets/vit-mnist.safetensors is not here; git lfs pull, or clone again")
    return vit_demo.load("vit-mnist", device="cpu")


@pytest.fixture(scope="session")
def digits_history():
    """The embedded model of digits at moments of its training."""
    from vit_demo.embedded import snapshots
    from vit_demo.learning import load_history

    if not snapshots().is_dir():
        missing("assets/vit-mnist-snapshots is not here; clone again")
    return load_history(device="cpu")


@pytest.fixture(scope="session")
def served_site():
    from support.page import served

    with served() as site:
        yield site


@pytest.fixture
def site(served_site, monkeypatch):
    """The page, served once for all tests. Gradio asks the environment where its files lie, and
    other servers of this process have been there."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(served_site.server.folder.uploads))
    return served_site


@pytest.fixture(scope="session")
def reference(shared):
    """timm's own DeiT-tiny in float64, with the real weights."""
    import timm
    from safetensors.torch import load_file

    model = timm.create_model("deit_tiny_patch16_224.fb_in1k").eval()
    model.load_state_dict(load_file(shared / "weights/deit_tiny_patch16_224.fb_in1k.safetensors"))
    return model.double()


@pytest.fixture
def picture() -> Image.Image:
    return noise()


@pytest.fixture
def model(tmp_path) -> str:
    """The small random model as a file that describes itself."""
    from vit_demo.checkpoints import save_checkpoint

    classifier = small_classifier()
    path = tmp_path / "small.safetensors"
    save_checkpoint(path, classifier.model, classifier.labels, classifier.preprocess)
    return str(path)


@pytest.fixture(scope="module")
def one_thread():
    """Tiny models gain nothing from threads; and sums are taken in the order in which the processes
    that tests start take them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def colours(tmp_path_factory) -> Path:
    """A folder to train on: pictures of noise, each class with a colour of its own."""
    root, chance = tmp_path_factory.mktemp("colours"), np.random.default_rng(0)
    for part, count in (("train", 24), ("test", 11)):
        for label, name in enumerate(("blue", "green", "red")):
            (root / part / name).mkdir(parents=True)
            for i in range(count):
                pixels = chance.integers(0, 160, (16, 16, 3), dtype=np.uint8)
                pixels[:, :, 2 - label] += 95
                Image.fromarray(pixels).save(root / part / name / f"{i:02}.png")
    return root


@pytest.fixture(scope="session")
def trained(colours, tmp_path_factory) -> Path:
    """A finished run on the colours; nobody may change it."""
    from support.runs import CALM, FAST, SHAPE, arguments

    from vit_demo.training.loop import train

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("trained")
    train(arguments(colours, "--out", out, *SHAPE, *FAST, *CALM, "--epochs", 12))
    torch.set_num_threads(threads)
    return out


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """An empty folder of weights, and a hub that nobody can reach."""
    monkeypatch.setenv("VIT_DEMO_WEIGHTS", str(tmp_path))
    monkeypatch.setattr("vit_demo.checkpoints.hub.cached_file", lambda repo: None)
    unreachable(monkeypatch, "http://127.0.0.1:9")
    return tmp_path
