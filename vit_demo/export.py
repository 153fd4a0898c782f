"""What one takes away: the map on the screen, maps.npz, explanation.json, an animation.

Page, command line and Python write these files with the functions here, so that the same settings
give the same files everywhere.
"""

import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_demo import render, validate
from vit_demo.attention import over_heads
from vit_demo.explain import Explanation
from vit_demo.map_settings import MapSettings
from vit_demo.trust.methods import METHODS


def shown_map(explanation: Explanation, settings: MapSettings) -> Tensor:
    """The map that the settings ask for: (rows, cols)."""
    if settings.map == "contribution":  # the difference of two labels is a pass of its own
        return explanation.contribution(settings.label, settings.minus)
    if settings.is_class_map or settings.map == "random":
        method = METHODS[settings.map]
        heat = method(explanation, explanation.label_index(settings.label))
        if settings.minus is None:
            return heat
        return heat - method(explanation, explanation.label_index(settings.minus))
    return maps_of_layers(explanation, settings)[explanation.layer_index(settings.layer)]


def prefix_contribution(explanation: Explanation, settings: MapSettings) -> float:
    """What the class, distillation and register tokens contribute: it is not in the map."""
    tokens = explanation.contribution(settings.label, settings.minus, tokens=True)
    return float(tokens[: explanation.config.prefix_tokens].sum())


def maps_of_layers(explanation: Explanation, settings: MapSettings) -> Tensor:
    """The same map for every layer: (layers, rows, cols)."""
    head, layers = settings.head, range(explanation.layers)
    if settings.map == "head_rollout":
        options = {"below": settings.below, "part": settings.part}
        maps = explanation.head_rollouts(None, **options, **settings.rollout_options)
        if isinstance(head, str):
            return over_heads(maps, head, dim=1)
        return maps[:, explanation.head_index(head)]
    if settings.map == "attention":
        options = {"query": settings.query, "direction": settings.direction}
        return torch.stack([explanation.attention(i, head, **options) for i in layers])
    return torch.stack([explanation.rollout(i, **settings.rollout_options) for i in layers])


def class_map_picture(
    explanation: Explanation, settings: MapSettings, heat: Tensor | np.ndarray
) -> Image.Image:
    """A class map over the picture. One with a sign has its scale below, with what both sides mean."""
    picture, smooth = explanation.view.picture, settings.smooth
    if not settings.is_signed:
        return render.overlay(picture, heat, colour_map=settings.colours, smooth=smooth)
    label = explanation.labels[explanation.label_index(settings.label)]
    sides = (f"for {label}", "against")
    if settings.minus is not None:
        sides = (label, explanation.labels[explanation.label_index(settings.minus)])
    return render.difference(picture, heat, *sides, smooth=smooth)


def arrays_of(explanation: Explanation, settings: MapSettings) -> dict[str, np.ndarray]:
    """What maps.npz holds; `class_map` if the settings ask for one."""
    arrays = explanation.arrays(below=settings.below, **settings.rollout_options)
    if settings.is_class_map:
        arrays["class_map"] = shown_map(explanation, settings).numpy()
    return arrays


json_text = validate.json_text  # of explanation.json


def npz_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def description(
    explanation: Explanation, settings: MapSettings, image: str | Path | None = None
) -> dict:
    """What explanation.json holds: model, answer, geometry and the settings of the map."""
    options = dict(settings.rollout_options)
    query = options.pop("query")
    tokens = explanation.rollout(query=query, tokens=True, **options)
    where = {
        "layer": explanation.layer_index(settings.layer),
        "head": None if isinstance(settings.head, str) else settings.head,
        "query": query,
        "below": settings.below,
        "part": settings.part,
    }
    if settings.is_class_map:  # label and minus: the map of one class, less another's
        where |= {"map": settings.map, "label": settings.label, "minus": settings.minus}
    if settings.map == "contribution":
        where["prefix_contribution"] = prefix_contribution(explanation, settings)
    about = explanation.describe() | ({"image": Path(image).name} if image else {})
    prefix_mass = float(tokens[: explanation.config.prefix_tokens].sum())
    return about | {"prefix_mass": prefix_mass, "settings": options | where}


def animation(explanation: Explanation, settings: MapSettings) -> list[Image.Image]:
    """One frame a layer."""
    return render.animation(
        explanation.view.picture,
        maps_of_layers(explanation, settings),
        opacity=settings.opacity,
        colour_map=settings.colours,
        smooth=settings.smooth,
    )
