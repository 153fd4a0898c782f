"""Train and evaluate: `training.train(TrainConfig(dataset="mnist", out="runs/digits"))`."""

from importlib import import_module

from vit_demo.training.config import TrainConfig

__all__ = ["TrainConfig", "evaluate", "train"]
WHERE = {"train": "vit_demo.training.loop", "evaluate": "vit_demo.training.evaluation"}


def __getattr__(name: str) -> object:
    """Import PyTorch when something is to be trained, not when a flag is to be explained."""
    if name in WHERE:
        return getattr(import_module(WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
