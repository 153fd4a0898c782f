"""A file of tensors in, our model out; a file may hold anything, and is trusted with nothing.

No code from a file is ever run. What does not fit, is damaged or is no number is refused with the
name of the file or tensor, before it can become a wrong answer.
"""

import argparse
import hashlib
import pickle
import zipfile
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from vit_demo.model import VisionTransformer, ViTConfig

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
METADATA_KEY = "vit_demo"
CHECKSUM_KEY = "sha256"


class CheckpointError(ValueError):
    """A model that cannot be loaded; the message is for the person who asked for it."""


def read_weights(path: Path) -> tuple[dict[str, Tensor], str | None]:
    """The tensors of a file and its own description, if it has one. Runs no code from the file."""
    if not path.is_file():
        raise CheckpointError(f"There is no file {path.name}; check the path.")
    damaged = CheckpointError(
        f"{path.name} is not a readable {path.suffix} file (damaged or cut short?); "
        "download or save it again."
    )
    if path.suffix == ".safetensors":
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, ValueError, RuntimeError, MemoryError) as error:
            raise damaged from error
        about = metadata.get(METADATA_KEY)
        unknown = metadata.keys() - {METADATA_KEY, CHECKSUM_KEY, "format"}  # a damaged name?
        wrong = about and metadata.get(CHECKSUM_KEY) not in (None, checksum(weights, about))
        if about and (unknown or wrong):
            raise CheckpointError(
                f"{path.name} is damaged: its contents are not what was saved; get the file again."
            )
        return weights, about
    if path.suffix not in SUFFIXES:
        raise CheckpointError(f"{path.name}: give a {', '.join(SUFFIXES)} file.")
    try:
        if inflated_size(path) > 2 * path.stat().st_size + 2**20:
            raise damaged  # PyTorch does not compress: somebody else packed this, to burst here
        with torch.serialization.safe_globals([argparse.Namespace]):  # timm keeps its arguments so
            return torch.load(path, map_location="cpu", weights_only=True), None
    except CheckpointError:
        raise
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path.name} holds more than weights, and code from a file is never run here; "
            "save model.state_dict() as .safetensors and load that."
        ) from error
    except Exception as error:  # torch.load raises many kinds on damaged files
        raise damaged from error


def checksum(tensors: dict[str, Tensor], about: str) -> str:
    """SHA-256 of a file's contents, in whatever order they lie. It finds damage; against somebody
    who writes files on purpose it is no help, he can compute it as well as we."""
    digest = hashlib.sha256(about.encode())
    for key, tensor in sorted(tensors.items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def inflated_size(path: Path) -> int:
    """How large the contents of a .pth are, which is a zip file, says its directory."""
    if not zipfile.is_zipfile(path):
        return 0
    with zipfile.ZipFile(path) as file:
        return sum(entry.file_size for entry in file.infolist())


def unwrap(weights: dict) -> dict[str, Tensor]:
    """The state dict inside a training checkpoint; EMA weights first, they are the better ones."""
    for key in ("state_dict_ema", "model_ema", "state_dict", "model"):
        if isinstance(weights, dict) and isinstance(weights.get(key), dict):
            weights = weights[key]
    if not isinstance(weights, dict):
        raise CheckpointError(
            f"A {type(weights).__name__} is no state dict; save model.state_dict() and load that."
        )
    return {str(key).removeprefix("module."): value for key, value in weights.items()}


def fill(config: ViTConfig, weights: dict[str, Tensor], source: str) -> VisionTransformer:
    """Our model with these weights in it, or an error that names the first tensor that differs."""
    try:
        with torch.device("meta"):
            model = VisionTransformer(config)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"No model can have the shape that {source} describes; get the file again."
        ) from error
    wanted = model.state_dict()
    missing, extra = wanted.keys() - weights.keys(), weights.keys() - wanted.keys()
    if missing or extra:
        key = min(missing or extra)
        what = f"lacks {key}" if missing else f"has {key[:80]}, which the model does not"
        raise CheckpointError(
            f"{source} {what}; the weights belong to another architecture: check --arch, or get "
            "the right file."
        )
    numbers = {}
    for key, tensor in weights.items():
        if not isinstance(tensor, Tensor) or tensor.shape != wanted[key].shape:
            raise CheckpointError(
                f"In {source}, {key} has the shape {tuple(getattr(tensor, 'shape', ()))} instead of "
                f"{tuple(wanted[key].shape)}; the weights belong to another architecture: check "
                "--arch, or get the right file."
            )
        if not tensor.is_floating_point() or tensor.layout != torch.strided or tensor.is_meta:
            raise CheckpointError(
                f"In {source}, {key} holds {tensor.dtype} and not plain real numbers; save the "
                "weights as float32 or float16."
            )
        if tensor.untyped_storage().nbytes() < tensor.nbytes:  # one number for a whole matrix
            raise CheckpointError(
                f"In {source}, {key} holds fewer numbers than its shape says; save the weights with "
                "all of them."
            )
        numbers[key] = tensor.float()
        if not torch.isfinite(numbers[key]).all():
            raise CheckpointError(
                f"In {source}, {key} holds NaN or infinite numbers; the file is damaged or its "
                "training diverged. Use another checkpoint."
            )
    model.load_state_dict(numbers, assign=True)
    return model
