"""From a name to a model with its labels and preprocessing: embedded, timm's, a file, the hub."""

from vit_demo.checkpoints.checkpoint import (
    LONGEST_NAME,
    Checkpoint,
    about_embedded,
    load_checkpoint,
    save_checkpoint,
)
from vit_demo.checkpoints.weights import SUFFIXES, CheckpointError
from vit_demo.embedded import ASSETS, DEFAULT, embedded, example_path

__all__ = [
    "ASSETS",
    "DEFAULT",
    "LONGEST_NAME",
    "SUFFIXES",
    "Checkpoint",
    "CheckpointError",
    "about_embedded",
    "embedded",
    "example_path",
    "load_checkpoint",
    "save_checkpoint",
]
