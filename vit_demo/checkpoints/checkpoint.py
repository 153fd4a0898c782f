"""From a name to a model: weights, shape, labels and the way it wants its pictures.

A name is an embedded model (a file in assets/), a timm name, or a path to a file. A file saved here
describes itself: its shape, labels and preprocessing lie in the metadata of the .safetensors.
"""

import json
import math
import os
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from vit_demo.checkpoints.hub import find_weights
from vit_demo.checkpoints.timm_models import (
    build_timm,
    config_of,
    imagenet_labels,
    preprocess_of,
    timm_names,
)
from vit_demo.checkpoints.weights import (
    CHECKSUM_KEY,
    METADATA_KEY,
    SUFFIXES,
    CheckpointError,
    checksum,
    fill,
    read_weights,
    unwrap,
)
from vit_demo.embedded import embedded
from vit_demo.files import atomic_write
from vit_demo.model import VisionTransformer, ViTConfig, patch_grid
from vit_demo.view import Preprocess

LONGEST_NAME = 200
MOST_KEPT = 2**31  # bytes that a pass may keep; a ViT-g at 518 px keeps 0.9 GB
LARGEST_LABELS = 10_000_000  # bytes of a file of labels


@dataclass
class Checkpoint:
    name: str
    model: VisionTransformer
    labels: list[str]  # empty: the model has no label head, it is for maps only
    preprocess: Preprocess


def load_checkpoint(name: str, arch: str | None = None, labels: str | None = None) -> Checkpoint:
    """Find the model of this name: a file, an embedded model or a timm model."""
    name = str(name)
    if Path(name).suffix in SUFFIXES or os.sep in name:
        checkpoint = load_file(Path(name), arch)
    elif arch is not None:
        raise CheckpointError(f"arch goes with a file of weights, and {name!r} is not a file.")
    elif name in embedded():
        checkpoint = load_file(embedded()[name])
    elif len(name) > LONGEST_NAME:
        raise CheckpointError(
            f"A model's name has at most {LONGEST_NAME} characters, not {len(name):,}; "
            "choose one from the list."
        )
    else:
        checkpoint = load_timm(name)
    if labels is not None:
        checkpoint.labels = read_labels(Path(labels), checkpoint.model.config.num_classes)
    return checkpoint


def load_timm(name: str) -> Checkpoint:
    """A timm model by its name: from your own folder, the hub's cache, or the hub."""
    reference = build_timm(name)
    cfg = reference.pretrained_cfg
    name = f"{cfg['architecture']}.{cfg['tag']}"
    labels = imagenet_labels(reference.num_classes)
    weights, _ = read_weights(find_weights(name, cfg))
    weights = timm_names(unwrap(weights), reference)
    if not labels:  # no head, or CLIP's projection, whose outputs are not labels
        reference.num_classes = 0
        weights = {key: value for key, value in weights.items() if not key.startswith("head.")}
    model = fill(config_of(reference), weights, name)
    return Checkpoint(name, model, labels, preprocess_of(reference))


def load_fine_tune(path: Path, weights: dict[str, Tensor], arch: str) -> Checkpoint:
    """Weights of a timm model trained elsewhere; the number of classes is read off its head."""
    weights = unwrap(weights)
    head = weights.get("head.weight")
    classes = len(head) if isinstance(head, Tensor) and head.ndim == 2 else 0
    reference = build_timm(arch, num_classes=classes)
    config, preprocess = config_of(reference), preprocess_of(reference)
    model = fill(config, timm_names(weights, reference), path.name)
    labels = imagenet_labels(classes) or [f"class {index}" for index in range(classes)]
    return Checkpoint(path.stem, model, labels, preprocess)


def read_labels(path: Path, classes: int) -> list[str]:
    """One label a line; as many as the head has classes."""
    try:
        if (
            not path.is_file() or path.stat().st_size > LARGEST_LABELS
        ):  # pipes and devices never end
            raise OSError
        labels = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"The labels file {path.name} cannot be read; give a UTF-8 text file."
        ) from error
    labels = [line.strip() for line in labels if line.strip()]
    if len(labels) != classes:
        raise CheckpointError(
            f"{path.name} has {len(labels)} labels, but the model's head has {classes} classes; "
            "give one label a line, in the order of the classes."
        )
    return labels


# Files that describe themselves


def save_checkpoint(
    path: str | Path,
    model: VisionTransformer,
    labels: list[str],
    preprocess: Preprocess,
    half: bool = False,
) -> None:
    """Write one self-describing .safetensors: whole or not at all, also when the power fails."""
    path = Path(path)
    about = {"config": asdict(model.config), "labels": labels, "preprocess": asdict(preprocess)}
    about = json.dumps(about)
    dtype = torch.float16 if half else torch.float32
    tensors = {
        key: t.detach().to("cpu", dtype).contiguous() for key, t in model.state_dict().items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {METADATA_KEY: about, CHECKSUM_KEY: checksum(tensors, about)}
    with atomic_write(path) as part:
        part.write_bytes(save(tensors, metadata))


def load_file(path: Path, arch: str | None = None) -> Checkpoint:
    """A file saved here, or, with the name of its timm architecture, anyone's fine-tune."""
    weights, about = read_weights(path)
    if about is None and arch is None:
        raise CheckpointError(
            f"{path.name} does not say which model it belongs to; add --arch with the timm "
            "architecture it was trained from, such as --arch vit_small_patch16_224."
        )
    if arch is not None:
        return load_fine_tune(path, weights, arch)
    try:
        about = json.loads(about)
        config, preprocess = ViTConfig(**about["config"]), Preprocess(**about["preprocess"])
        check_description(config, preprocess)
        labels = [str(label) for label in about["labels"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"The description inside {path.name} is damaged; get the file again."
        ) from error
    if len(labels) not in (0, config.num_classes):
        raise CheckpointError(
            f"{path.name} names {len(labels)} labels for {config.num_classes} classes; "
            "save it again with one label a class."
        )
    return Checkpoint(path.stem, fill(config, weights, path.name), labels, preprocess)


@cache
def about_embedded(name: str) -> dict:
    """How an embedded model describes itself (config, labels, preprocess), without its weights."""
    with safe_open(embedded()[name], framework="pt") as file:
        return json.loads(file.metadata()[METADATA_KEY])


def check_description(config: ViTConfig, preprocess: Preprocess) -> None:
    """Numbers of the right kind and of a size that can be meant: a file may say anything."""
    numbers = (config.embed_dim, config.mlp_dim, config.num_classes, config.registers)
    fine = max(*numbers, *config.image_size, *config.patch_size) < 10**6
    fine = fine and config.depth <= 1000 and config.registers < 1000 and 0 <= config.norm_eps < 1
    fine = fine and math.isfinite(config.layer_scale or 0)
    fine = fine and len(preprocess.mean) == config.channels
    rows, cols = patch_grid(preprocess.size, config.patch_size)
    tokens = rows * cols + config.prefix_tokens
    kept = 4 * config.depth * tokens * (tokens + 2 * config.embed_dim)  # bytes, of one pass
    if (
        not fine
        or kept > MOST_KEPT
        or math.prod(preprocess.size) > 4 * math.prod(config.image_size)
    ):
        raise ValueError("The numbers cannot be meant.")
