"""What several test files need."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared"
REQUIRED = os.environ.get("VIT_DEMO_REQUIRE_ALL") == "1"


def missing(what: str):
    """Skip for a user, fail in CI, where everything has to be there."""
    if REQUIRED:
        pytest.fail(f"{what}, and VIT_DEMO_REQUIRE_ALL=1 does not allow to skip")
    pytest.skip(what)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real weights, pictures and data sets beside the repository."""
    if not SHARED.is_dir():
        missing("the folder ../shared with weights, pictures and data sets is not here")
    return SHARED


@pytest.fixture(scope="session")
def imagenet_pictures(shared) -> list[Path]:
    return sorted((shared / "images" / "imagenet").glob("*.JPEG"))


@pytest.fixture
def deit_tiny(shared, monkeypatch):
    """The real DeiT-tiny, loaded by its timm name from a folder of weights."""
    import vit_demo

    monkeypatch.setenv("VIT_DEMO_WEIGHTS", str(shared / "weights"))
    return vit_demo.load("deit_tiny_patch16_224.fb_in1k", device="cpu")
