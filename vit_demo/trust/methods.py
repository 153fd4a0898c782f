"""The maps that are compared: every method as a function of an explanation and a class."""

import zlib
from collections.abc import Callable

import torch
from torch import Tensor

from vit_demo.explain import Explanation, Label
from vit_demo.map_settings import COMPARED_MAPS
from vit_demo.validate import shown


def random_map(explanation: Explanation, index: int | None = None) -> Tensor:
    """Chance as a map: always the same for the same picture, whatever the model."""
    seed = zlib.crc32(explanation.view.picture.tobytes())
    return torch.rand(explanation.grid, generator=torch.Generator().manual_seed(seed))


Method = Callable[[Explanation, int], Tensor]
SAME_FOR_EVERY_CLASS: dict[str, Method] = {
    "raw": lambda explanation, index: explanation.attention(-1, "mean"),
    "rollout": lambda explanation, index: explanation.rollout(),
    "random": random_map,
}


def class_map(name: str) -> Method:
    """The method of `Explanation` with this name."""
    return lambda explanation, index: getattr(explanation, name)(index)


METHODS = {name: SAME_FOR_EVERY_CLASS.get(name) or class_map(name) for name in COMPARED_MAPS}


def check_method(name: str) -> None:
    if name not in METHODS:
        raise ValueError(f"There is no method {shown(name)}; use one of {', '.join(METHODS)}.")


def method_maps(explanation: Explanation, label: Label = None) -> dict[str, Tensor]:
    """Every method's map of one class: what the strip of methods shows. Two passes for all."""
    index = explanation.label_index(label)
    return {name: method(explanation, index) for name, method in METHODS.items()}
