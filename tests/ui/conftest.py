"""One app process, one client and one small model for all tests of the page's server side."""

import pytest
import torch
from support.app import MARK, App
from support.corpus import picture as corpus_picture
from support.corpus import saved
from support.paths import ROOT

from vit_demo.checkpoints import Checkpoint
from vit_demo.explain import Classifier
from vit_demo.model import VisionTransformer, ViTConfig
from vit_demo.view import Preprocess


@pytest.fixture(scope="session")
def app(tmp_path_factory):
    app = App(tmp_path_factory.mktemp("app"))
    yield app
    app.stop()


@pytest.fixture(scope="session")
def uploaded(app) -> dict:
    """A good picture, sent to the app."""
    return {"path": app.upload("good.png", saved(corpus_picture(), "PNG"))} | MARK


@pytest.fixture
def lion():
    return ROOT / "assets" / "examples" / "camel.jpg"


@pytest.fixture(scope="session")
def small() -> Classifier:
    """A photo model without a file: random weights, ten labels."""
    torch.manual_seed(0)
    config = ViTConfig(
        image_size=32, patch_size=8, embed_dim=32, depth=3, heads=2, mlp_dim=64, num_classes=10
    )
    labels = [f"label {index}" for index in range(10)]
    model = VisionTransformer(config)
    return Classifier(Checkpoint("small", model, labels, Preprocess(size=(32, 32))), "cpu")
