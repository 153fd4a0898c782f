"""What one takes away: the map on the screen, maps.npz, explanation.json, an animation.

Page, command line and Python write these files with the functions here, so that the same settings
give the same files everywhere.
"""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_demo import render, validate
from vit_demo.attention import over_heads
from vit_demo.explain import Explanation
from vit_demo.map_settings import DIFFERENCES, PLAIN_MAPS, MapSettings
from vit_demo.trust.methods import random_map

ANIMATION_SIDE = 480  # pixels: a frame a layer is a large file


def shown_map(explanation: Explanation, settings: MapSettings) -> Tensor:
    """The map that the settings ask for: (rows, cols)."""
    return explanation.as_map(shown_tokens(explanation, settings))


def shown_tokens(explanation: Explanation, settings: MapSettings) -> Tensor:
    """The same with what lies on the class, distillation and register tokens, which come first: (N,)"""
    if settings.map == "contribution":  # the difference of two labels is a pass of its own
        return explanation.contribution(settings.label, settings.minus, tokens=True)
    if settings.is_class_map:
        tokens = explanation.class_map(settings.map, settings.label, tokens=True)
        if settings.minus is None:
            return tokens
        return tokens - explanation.class_map(settings.map, settings.minus, tokens=True)
    if settings.map == "random":
        chance = random_map(explanation).flatten()
        return torch.cat([torch.zeros(explanation.config.prefix_tokens), chance])
    return plain_tokens(explanation, settings, settings.layer)


def on_prefix(explanation: Explanation, settings: MapSettings) -> float:
    """What the class, distillation and register tokens have: it is not in the map."""
    tokens = shown_tokens(explanation, settings)
    return float(tokens[: explanation.config.prefix_tokens].sum())


def maps_of_layers(explanation: Explanation, settings: MapSettings) -> Tensor:
    """The same map for every layer: (layers, rows, cols)."""
    return explanation.as_map(plain_tokens(explanation, settings, None))


def plain_tokens(explanation: Explanation, settings: MapSettings, layer: int | None) -> Tensor:
    """A map that is of no class, with the tokens that are no patches: (N,), or of all layers (layers, N)."""
    head = settings.head
    if settings.map == "head_rollout":
        options = {"below": settings.below, "part": settings.part, "tokens": True}
        maps = explanation.head_rollouts(layer, **options, **settings.rollout_options)
        if isinstance(head, str):
            return over_heads(maps, head, dim=-2)
        return maps[..., explanation.head_index(head), :]
    if settings.map == "attention":
        options = {"query": settings.query, "direction": settings.direction, "tokens": True}
        layers = range(explanation.layers) if layer is None else [layer]
        maps = torch.stack([explanation.attention(one, head, **options) for one in layers])
        return maps if layer is None else maps[0]
    return explanation.rollout(layer, tokens=True, **settings.rollout_options)


def resolved(explanation: Explanation, settings: MapSettings) -> MapSettings:
    """The same settings without negative numbers and names: which layer, head, patch and labels they are."""
    changes = {"layer": explanation.layer_index(settings.layer)}
    if not isinstance(settings.head, str):
        changes["head"] = explanation.head_index(settings.head)
    if settings.query is not None:
        patch = explanation.query_tokens(settings.query).start - explanation.config.prefix_tokens
        changes["query"] = divmod(patch, explanation.grid[1])
    for name in ("label", "minus"):
        label = getattr(settings, name)
        if label is not None:
            changes[name] = explanation.label_index(label)
    return replace(settings, **changes)


def caption(explanation: Explanation, settings: MapSettings, layer: bool = True) -> str:
    """What the map shows, in words. Layers, heads, rows and columns are counted from 1."""
    settings = resolved(explanation, settings)
    names = {"head_rollout": "head rollout", "attention": "raw attention", "random": "random map",
             "gradient_rollout": "gradient rollout", "grad_cam": "Grad-CAM"}  # fmt: skip
    parts = [names.get(settings.map, settings.map)]
    if settings.map == "head_rollout" and settings.part == "special":
        parts = ["what is special about this head: its rollout minus the mean of its layer"]
    if settings.is_class_map:
        parts.append(f"for {explanation.labels[explanation.label_index(settings.label)]}")
        if settings.minus is not None:
            less = explanation.labels[explanation.label_index(settings.minus)]
            parts.append(f"rather than {less}")
    elif settings.map != "random":
        head = settings.head
        if layer:
            parts.append(f"layer {settings.layer + 1}")
        if isinstance(head, str):
            parts.append({"mean": "all heads", "max": "strongest", "min": "weakest"}[head])
        else:
            parts.append(f"head {head + 1}")
        if settings.map == "head_rollout" and settings.below == "same":
            parts.append("same head number below")
        if settings.map != "attention":
            parts += [f"residual {settings.residual:g}"] * (settings.residual != 0.5)
            parts += [f"discard {settings.discard:g}"] * (settings.discard != 0)
        to = settings.map == "attention" and settings.direction == "to"
        if settings.query is not None or to:
            row, col = settings.query or (None, None)
            patch = "the read-out" if row is None else f"patch row {row + 1}, column {col + 1}"
            parts.append(f"{'to' if to else 'from'} {patch}")
    parts += [f"fit {explanation.view.fit}"] * (explanation.view.fit != "crop")
    return " · ".join(parts)


def map_picture(explanation: Explanation, settings: MapSettings) -> Image.Image:
    """The map over the picture, with its words and its scale."""
    heat = shown_map(explanation, settings)
    if settings.is_class_map and settings.is_signed:
        return class_map_picture(explanation, settings, heat)
    picture = ground(explanation, settings)
    return render.sheets(picture, heat[None], **looks(explanation, settings))[0]


def ground(explanation: Explanation, settings: MapSettings, **size: int) -> Image.Image:
    """What lies under the map: the picture in its own detail, or as the model saw it."""
    view = explanation.view
    return view.picture if settings.picture == "seen" else view.preview(**size)


def looks(explanation: Explanation, settings: MapSettings) -> dict:
    """How a map with these settings is drawn, for `render.sheets`."""
    settings = resolved(explanation, settings)
    return {
        "words": f"{explanation.model_name}: {caption(explanation, settings)}",
        "quantity": quantity(settings),
        "signed": settings.is_signed,
        "percent": settings.map in (*PLAIN_MAPS, "gradient_rollout"),
        "query": None if settings.is_class_map or settings.map == "random" else settings.query,
        "grid": explanation.grid,
        "opacity": settings.opacity,
        "colour_map": settings.colours,
        "smooth": settings.smooth,
    }


def quantity(settings: MapSettings) -> str:
    """What the colours measure, as the page says it beside its legend."""
    if settings.map == "random":
        return "random numbers"
    if settings.map == "contribution":
        return "in units of the log probability"
    if settings.is_class_map and settings.map != "gradient_rollout":
        return "in units of the class's score (logit)"
    if settings.map == "head_rollout" and settings.part == "special":
        return "from the mean of the layer's heads"
    if settings.map == "attention" and settings.direction == "to":
        return "attention paid to it"
    return "share on one patch"


def class_map_picture(
    explanation: Explanation, settings: MapSettings, heat: Tensor | np.ndarray
) -> Image.Image:
    """A class map over the picture. One with a sign has its scale below, with what both sides mean."""
    picture = ground(explanation, settings)
    options = {"opacity": settings.opacity, "smooth": settings.smooth}
    if not settings.is_signed:
        return render.overlay(picture, heat, colour_map=settings.colours, **options)
    label = explanation.labels[explanation.label_index(settings.label)]
    sides = (f"for {label}", "against")
    if settings.minus is not None:
        sides = (label, explanation.labels[explanation.label_index(settings.minus)])
    return render.difference(picture, heat, *sides, **options)


def arrays_of(explanation: Explanation, settings: MapSettings) -> dict[str, np.ndarray]:
    """What maps.npz holds: `map` is what the settings show, with `map_prefix` on the tokens that are
    no patches; for raw attention also `attention` (layers, heads, rows, cols), from or to the query."""
    tokens = shown_tokens(explanation, settings)
    arrays = {
        "map": explanation.as_map(tokens).numpy(),
        "map_prefix": tokens[: explanation.config.prefix_tokens].numpy(),
    }
    if settings.map == "attention":
        options = {"query": settings.query, "direction": settings.direction}
        layers = range(explanation.layers)
        raw = torch.stack([explanation.attention(layer, None, **options) for layer in layers])
        arrays["attention"] = raw.numpy()
    return arrays | explanation.arrays(below=settings.below, **settings.rollout_options)


json_text = validate.json_text  # of explanation.json


def npz_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def description(
    explanation: Explanation, settings: MapSettings, image: str | Path | None = None
) -> dict:
    """What explanation.json holds: model, answer, geometry and the settings of the map."""
    settings = resolved(explanation, settings)
    options = dict(settings.rollout_options)
    where = {
        "map": settings.map,
        "layer": settings.layer,
        "head": settings.head,
        "query": options.pop("query"),
        "direction": settings.direction,
        "below": settings.below,
        "part": settings.part,
    }
    if settings.is_class_map:  # the map of one class, less another's
        where |= {"label": settings.label, "minus": settings.minus}
    about = explanation.describe() | ({"image": Path(image).name} if image else {})
    of_map = {
        "shows": caption(explanation, settings),
        "prefix_mass": on_prefix(explanation, settings),
    }
    return about | of_map | {"settings": where | options}


def animation(explanation: Explanation, settings: MapSettings) -> list[Image.Image]:
    """One frame a layer, each on a colour scale of its own, as the page shows them.

    The words are English in every language, as `shows` in explanation.json is: Pillow's font has no
    Hangul, and a server need not have another one.
    """
    words = f"{explanation.model_name}: {caption(explanation, settings, layer=False)}"
    options = looks(explanation, settings) | {"words": words, "layers": True}
    picture = ground(explanation, settings, side=ANIMATION_SIDE)
    return render.sheets(picture, maps_of_layers(explanation, settings), **options)


def save_animation(explanation: Explanation, settings: MapSettings, path: Path) -> None:
    """As GIF or WebP, whatever the file's name says."""
    frames = animation(explanation, settings)
    if path.suffix == ".gif":
        colours = DIFFERENCES if settings.is_signed else settings.colours
        frames = [render.for_gif(frame, colours) for frame in frames]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=500, loop=0)
