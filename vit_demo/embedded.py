"""What comes with the project: its small models and example pictures."""

from functools import cache
from pathlib import Path

DEFAULT = "vit-photos"  # works without a network
PACKAGE = Path(__file__).resolve().parent
# In an installed package the assets lie inside it, in a checkout beside it.
ASSETS = next(p / "assets" for p in (PACKAGE, PACKAGE.parent) if (p / "assets").is_dir())


@cache
def embedded() -> dict[str, Path]:
    """The models that come with the project, by their short names."""
    return {path.stem: path for path in sorted(ASSETS.glob("*.safetensors"))}


def snapshots() -> Path:
    """The folder with the model of digits at moments of its training."""
    return ASSETS / "vit-mnist-snapshots"


@cache
def example_path(name: str) -> Path:
    """An example picture by its name, such as "koala"."""
    return next((ASSETS / "examples").glob(f"{name}.*"))
