"""The large files beside the project (real weights, pictures, data sets), and what to do without."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared"
REQUIRED = os.environ.get("VIT_DEMO_REQUIRE_ALL") == "1"


def missing(what: str):
    """Skip for a user, fail in CI, where everything has to be there."""
    if REQUIRED:
        pytest.fail(f"{what}, and VIT_DEMO_REQUIRE_ALL=1 does not allow to skip")
    pytest.skip(what)
