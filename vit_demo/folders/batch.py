"""One batch of pictures from reading to writing: what the model says to each, and where it looked.

One forward pass for all. Rollout is a chain of vector-matrix products, so the maps cost little beside
the pass; class maps need a pass back of their own.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_demo import attention
from vit_demo.class_maps import ATTENTION_GRADIENT_MAPS, attention_gradient_maps, contributions
from vit_demo.explain import Classifier, predictions
from vit_demo.map_settings import SIGNED_MAPS
from vit_demo.model import readout_tokens
from vit_demo.recorder import RolloutRecorder
from vit_demo.render import CRISP_SIDE, scale_around_zero, scale_of
from vit_demo.view import to_tensor

TOP = 5
THUMBNAIL = 256  # pixels of its longer side, at most


@dataclass(frozen=True)
class Question:
    """What is asked of every picture."""

    classifier: Classifier
    fit: str
    map: str  # "rollout", or one of CLASS_MAPS
    label: int | None  # whose class map; None: that of each picture's answer
    arrays: bool  # also the numbers that `explain` writes into maps.npz


class Seen(NamedTuple):
    """What remains of a picture once it is read."""

    pixels: Tensor  # (1, C, H, W)
    thumbnail: bytes  # a PNG or JPEG of what the model sees
    size: tuple[int, int]  # of the thumbnail
    grid: tuple[int, int]


class Answer(NamedTuple):
    logits: Tensor  # (classes,)
    heat: Tensor  # (rows, cols), the map that is shown
    prefix: float  # what of it lies on class, distillation and register tokens
    arrays: dict[str, np.ndarray]  # empty, unless asked for


def see(question: Question, path: str) -> Seen:
    """Read a picture; an `ImageError` if that cannot be."""
    classifier = question.classifier
    view = classifier.view(path, question.fit)
    picture = view.picture
    shrunk = picture.reduce(-(-max(picture.size) // THUMBNAIL))
    pixels = to_tensor(view, classifier.preprocess)
    return Seen(pixels, thumbnail(shrunk), shrunk.size, view.grid)


def thumbnail(picture: Image.Image) -> bytes:
    """Lossless where single pixels are seen."""
    stream = io.BytesIO()
    if max(picture.size) <= CRISP_SIDE:
        picture.save(stream, "PNG")
    else:
        picture.save(stream, "JPEG", quality=85)
    return stream.getvalue()


@torch.inference_mode()
def answers(question: Question, seen: Sequence[Seen]) -> list[Answer]:
    """The answers to pictures of one size, in one forward pass."""
    classifier = question.classifier
    config, (rows, cols) = classifier.config, seen[0].grid
    readout, P = readout_tokens(config), config.prefix_tokens
    pixels = torch.cat([one.pixels for one in seen]).to(classifier.device)
    recorder = RolloutRecorder(config.depth, readout)
    logits = classifier.model(pixels, recorder)  # (B, classes)
    v = attention.token_mean(readout, P + rows * cols).to(pixels)  # (N,)
    rollout = (recorder.readout_attention[:, -1].mean(dim=1, keepdim=True) + v) / 2  # (B, 1, N)
    below = recorder.mean_attention.unbind(1)  # (B, N, N) each
    rollout = attention.through_layers(rollout, below)[:, 0].cpu()  # (B, N)
    shown = rollout
    if question.map != "rollout":
        shown = class_vectors(question, pixels, logits)  # (B, N)
    logits = logits.float().cpu()
    heads = head_vectors(recorder, v.cpu()) if question.arrays else None  # (B, L, h, N)
    found = []
    for i in range(len(seen)):
        heat = shown[i, P:].reshape(rows, cols)
        arrays = {}
        if heads is not None:
            arrays = {
                "rollout": rollout[i, P:].reshape(rows, cols),
                "head_rollouts": heads[i, ..., P:].unflatten(-1, (rows, cols)),
                "logits": logits[i] if classifier.labels else torch.empty(0),
                "prefix_mass": rollout[i, :P].sum(),
                "head_prefix_mass": heads[i, ..., :P].sum(dim=-1),
            }
            if question.map != "rollout":
                arrays[question.map] = heat
            arrays = {name: tensor.numpy() for name, tensor in arrays.items()}
        found.append(Answer(logits[i], heat, shown[i, :P].sum().item(), arrays))
    return found


def class_vectors(question: Question, pixels: Tensor, logits: Tensor) -> Tensor:
    """The class map of each picture (B, N): of its answer, or of the label asked for."""
    model = question.classifier.model
    classes = logits.argmax(dim=-1)[None]  # (1, B): one question
    if question.label is not None:
        classes = torch.full_like(classes, question.label)
    if question.map in ATTENTION_GRADIENT_MAPS:
        tokens = readout_tokens(question.classifier.config)
        return attention_gradient_maps(model, pixels, classes, tokens)[question.map][0]
    return contributions(model, pixels, classes)[0]


def head_vectors(recorder: RolloutRecorder, v: Tensor) -> Tensor:
    """Every head's rollout of every picture: (B, L, h, N)."""
    asked = recorder.readout_attention.cpu()  # (B, L, h, N)
    means = recorder.mean_attention.cpu()  # (B, L - 1, N, N)
    return torch.stack(
        [attention.head_rollouts(*of_picture, v) for of_picture in zip(asked, means, strict=True)]
    )


def record_of(question: Question, name: str, seen: Seen, answer: Answer, truth: int | None) -> dict:
    """What is written down of a picture: what the report shows of it, in few bytes."""
    labels, p = question.classifier.labels, answer.logits.softmax(dim=-1)
    top = predictions(answer.logits, labels, TOP) if labels else []
    scale = (scale_around_zero if question.map in SIGNED_MAPS else scale_of)(answer.heat)
    record = {
        "picture": name,
        "top": [[of.index, round(of.probability, 6)] for of in top],
        "grid": list(seen.grid),
        "heat": coded(answer.heat, *scale),
        "scale": [float(f"{end:.4g}") for end in scale],
        "prefix": float(f"{answer.prefix:.4g}"),
        "size": list(seen.size),
        "bytes": len(seen.thumbnail),
    }
    if truth is not None:
        record |= {"truth": truth, "truth_probability": round(p[truth].item(), 6)}
    return record


def coded(heat: Tensor, low: float, high: float) -> str:
    """A map in one byte a patch, from the low end of its scale to the high one, as base64."""
    codes = ((heat.double() - low) / (high - low) * 255).round().clamp(0, 255).byte()
    return base64.b64encode(codes.numpy().tobytes()).decode()
