"""From a name to a model: weights, shape, labels and the way it wants its pictures.

A name is an embedded model (a file in assets/), a timm name, or a path to a file. A file saved here
describes itself: its shape, labels and preprocessing lie in the metadata of the .safetensors.

timm says how its own models are built; the weights go into our VisionTransformer, under the same
parameter names. What is not a plain ViT is refused with the reason.
"""

import argparse
import difflib
import errno
import hashlib
import json
import math
import os
import pickle
import re
import tempfile
import threading
import time
import zipfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vit_demo.model import VisionTransformer, ViTConfig, patch_grid
from vit_demo.view import Preprocess

ASSETS = Path(__file__).parent.parent / "assets"
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
METADATA_KEY = "vit_demo"
CHECKSUM_KEY = "sha256"
LONGEST_NAME = 200
DEFAULT = "vit-cifar10"  # embedded: works without a network
USUAL = "deit_tiny_patch16_224.fb_in1k"  # what to try when nothing is near
HUB_FILES = ("model.safetensors", "pytorch_model.bin", "open_clip_model.safetensors")
NOT_PLAIN = {
    "beit": "is a BEiT, whose attention adds learned relative positions",
    "eva": "is an EVA, with rotary positions and gated MLPs, not a plain ViT",
    "swin_transformer": "is a Swin, which attends within shifting windows, not to the whole picture",
    "swin_transformer_v2": "is a Swin, which attends within shifting windows, not globally",
    "vision_transformer_hybrid": "is a hybrid: a convolutional network stands before its patches",
    "vision_transformer_relpos": "adds relative positions inside its attention",
    "vision_transformer_sam": "is SAM's encoder, which attends within windows",
}
HUB_SECONDS = 5  # how long the hub may take to answer before we say that it does not
STALL_SECONDS = 8  # how long a download may stand still


class CheckpointError(ValueError):
    """A model that cannot be loaded; the message is for the person who asked for it."""


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
            f"A model's name has no {len(name):,} letters; choose one from the list."
        )
    else:
        checkpoint = load_timm(name)
    if labels is not None:
        checkpoint.labels = read_labels(Path(labels), checkpoint.model.config.num_classes)
    return checkpoint


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
    handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
    os.close(handle)
    try:
        metadata = {METADATA_KEY: about, CHECKSUM_KEY: checksum(tensors, about)}
        save_file(tensors, part, metadata=metadata)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def checksum(tensors: dict[str, Tensor], about: str) -> str:
    """SHA-256 of a file's contents, in whatever order they lie. It finds damage; against somebody
    who writes files on purpose it is no help, he can compute it as well as we."""
    digest = hashlib.sha256(about.encode())
    for key, tensor in sorted(tensors.items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


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


def check_description(config: ViTConfig, preprocess: Preprocess) -> None:
    """Numbers of the right kind and of a size that can be meant: a file may say anything."""
    whole = ("channels", "embed_dim", "depth", "heads", "mlp_dim", "num_classes", "registers")
    numbers = [getattr(config, name) for name in whole] + [*config.image_size, *config.patch_size]
    fine = all(type(number) is int and number < 10**6 for number in numbers)
    fine = fine and config.depth <= 1000 and 0 <= config.norm_eps < 1
    fine = fine and math.isfinite(config.layer_scale or 0)
    fine = fine and len(preprocess.mean) == config.channels
    patch_grid(preprocess.size, config.patch_size)
    if not fine or math.prod(preprocess.size) > 4 * math.prod(config.image_size):
        raise ValueError("The numbers cannot be meant.")


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
        numbers[key] = tensor.float()
        if not torch.isfinite(numbers[key]).all():
            raise CheckpointError(
                f"In {source}, {key} holds NaN or infinite numbers; the file is damaged or its "
                "training diverged. Use another checkpoint."
            )
    model.load_state_dict(numbers, assign=True)
    return model


def read_labels(path: Path, classes: int) -> list[str]:
    """One label a line; as many as the head has classes."""
    try:
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


@cache
def embedded() -> dict[str, Path]:
    """The models that come with the project, by their short names."""
    return {path.stem: path for path in sorted(ASSETS.glob("*.safetensors"))}


# timm's models


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


def build_timm(name: str, **options) -> torch.nn.Module:
    """timm's own model of this name, without weights, if it is a plain ViT."""
    import timm

    arch, _, tag = name.partition(".")
    if not timm.is_model(arch) or (tag and tag not in pretrained_tags(arch)):
        raise CheckpointError(unknown_name(name))
    reason = reason_against(arch)
    if reason:
        raise CheckpointError(f"{name} {reason}; try {nearest(name)}.")
    if not options and not timm.models.is_model_pretrained(name):
        raise CheckpointError(f"timm has no weights for {name}; try {nearest(name)}.")
    with torch.device("meta"):
        return timm.create_model(name, **options)


def pretrained_tags(arch: str) -> list[str]:
    import timm

    return [full.partition(".")[2] for full in timm.list_pretrained(f"{arch}.*")]


@cache
def reason_against(arch: str) -> str | None:
    """Why this timm architecture is not a plain ViT, as the rest of a sentence; None if it is."""
    import timm
    from timm import layers
    from timm.models import deit, vision_transformer

    module = timm.models.model_entrypoint(arch).__module__
    if module not in (vision_transformer.__name__, deit.__name__):
        family = module.rpartition(".")[2]
        return NOT_PLAIN.get(family, f"is not a plain ViT (timm keeps it in {family}.py)")
    with torch.device("meta"):
        model = timm.create_model(arch, depth=1)  # one block shows how all are made
    if type(model) not in (vision_transformer.VisionTransformer, deit.VisionTransformerDistilled):
        return f"is a {type(model).__name__}, not a plain ViT"
    block = model.blocks[0]
    if type(model.patch_embed) is not layers.PatchEmbed:
        return NOT_PLAIN["vision_transformer_hybrid"]
    (H, W), (p, q) = model.patch_embed.img_size, model.patch_embed.patch_size
    if H % p or W % q:
        return f"cuts {H}x{W} pixels into patches of {p}x{q}, which leaves a rim unseen"
    if type(block) is not vision_transformer.Block:
        return f"is built from {type(block).__name__}s, not from ordinary pre-norm blocks"
    if type(block.attn) is not layers.Attention:
        return f"does not use ordinary attention but {type(block.attn).__name__}"
    if model.attn_pool is not None:
        return "pools with an attention layer of its own instead of a class token or an average"
    if type(block.mlp) is not layers.Mlp:
        return f"has a {type(block.mlp).__name__} in place of the ordinary MLP"
    if not isinstance(block.norm1, torch.nn.LayerNorm):
        return f"uses {type(block.norm1).__name__} in place of LayerNorm"
    inner = (block.attn.norm, block.attn.q_norm, block.attn.k_norm, block.mlp.norm)
    if not all(isinstance(module, torch.nn.Identity) for module in inner):
        return "has extra norms inside its attention or MLP"
    if type(block.mlp.act) not in activation_names():
        return f"uses the activation {type(block.mlp.act).__name__}"
    odd = block.attn.gate is not None or block.attn.attn_dim != model.embed_dim
    if odd or model.pos_embed is None or model.global_pool not in ("token", "avg"):
        return "differs from a plain ViT in its attention, positions or pooling"
    return None


def activation_names() -> dict[type, str]:
    from timm import layers

    return {
        torch.nn.GELU: "gelu",
        layers.GELU: "gelu",
        layers.GELUTanh: "gelu_tanh",
        layers.QuickGELU: "quick_gelu",
    }


def config_of(reference: torch.nn.Module) -> ViTConfig:
    """Our description of the shape of timm's model."""
    block = reference.blocks[0]
    has_scale = not isinstance(block.ls1, torch.nn.Identity)
    norms = {"tokens": reference.norm, "pooled": reference.fc_norm}
    norms = [where for where, norm in norms.items() if isinstance(norm, torch.nn.LayerNorm)]
    return ViTConfig(
        image_size=tuple(reference.patch_embed.img_size),
        patch_size=tuple(reference.patch_embed.patch_size),
        channels=reference.patch_embed.proj.in_channels,
        embed_dim=reference.embed_dim,
        depth=len(reference.blocks),
        heads=block.attn.num_heads,
        mlp_dim=block.mlp.fc1.out_features,
        num_classes=reference.num_classes,
        class_token=reference.cls_token is not None,
        distilled=hasattr(reference, "dist_token"),
        registers=reference.num_reg_tokens,
        pool=reference.global_pool,
        no_embed_class=reference.no_embed_class,
        pre_norm=isinstance(reference.norm_pre, torch.nn.LayerNorm),
        layer_scale=1e-5 if has_scale else None,  # the start value; the weights replace it
        qkv_bias=block.attn.qkv.bias is not None,
        activation=activation_names()[type(block.mlp.act)],
        last_norm=norms[0] if norms else "none",
        norm_eps=block.norm1.eps,
    )


def preprocess_of(reference: torch.nn.Module) -> Preprocess:
    from timm.data import resolve_model_data_config

    data = resolve_model_data_config(reference)
    return Preprocess(
        size=tuple(data["input_size"][1:]),
        mean=tuple(data["mean"]),
        std=tuple(data["std"]),
        interpolation=data["interpolation"],
        crop_pct=data["crop_pct"],
        crop_mode=data["crop_mode"],
    )


def timm_names(weights: dict[str, Tensor], reference: torch.nn.Module) -> dict[str, Tensor]:
    """Weights as they were published, renamed and resampled the way timm itself does it."""
    from timm.models.vision_transformer import checkpoint_filter_fn

    try:
        return checkpoint_filter_fn(weights, reference, adapt_layer_scale=True)
    except Exception as error:  # it trusts the names and shapes that it finds
        raise CheckpointError(
            "The weights do not fit this architecture; check --arch against the model that was "
            "trained."
        ) from error


@cache
def imagenet_labels(classes: int) -> list[str]:
    """The label names of the ImageNet subset with so many classes; none for other numbers."""
    from timm.data import ImageNetInfo, infer_imagenet_subset

    subset = infer_imagenet_subset({"num_classes": classes})
    return ImageNetInfo(subset).label_descriptions() if subset else []


def find_weights(name: str, cfg: dict) -> Path:
    """A file with the weights of this timm model: own folder, then the hub's cache, then the hub."""
    folder = os.environ.get("VIT_DEMO_WEIGHTS")
    if folder:
        for suffix in SUFFIXES:
            path = Path(folder) / (name + suffix)
            if path.is_file():
                return path
    repo = cfg.get("hf_hub_id")
    if not repo:
        raise CheckpointError(
            f"The weights of {name} are not on the model hub; try {nearest(name)}."
        )
    repo = f"timm/{name}" if repo == "timm/" else repo
    path = cached_file(repo)
    return path if path and intact(path) else download(repo, name)


def cached_file(repo: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    for filename in HUB_FILES:
        path = try_to_load_from_cache(repo, filename)
        if isinstance(path, str):
            return Path(path)
    return None


def intact(path: Path) -> bool:
    """Is a file in the hub's cache what the hub said it would be? If not, it is thrown away.

    The cache names large files by their SHA-256, and nobody else ever looks whether it is true.
    """
    blob = path.resolve()
    if not re.fullmatch("[0-9a-f]{64}", blob.name):
        return True
    with blob.open("rb") as stream:
        fine = hashlib.file_digest(stream, "sha256").hexdigest() == blob.name
    if not fine:
        path.unlink()
        blob.unlink(missing_ok=True)
    return fine


def download(repo: str, name: str) -> Path:
    """Fetch the weights, with a progress bar, or say in seconds that they cannot be had."""
    silent = "the model hub cannot be reached"
    try:
        path = Watched(repo).wait()
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise CheckpointError(
            offline_message(name, "the disk is full" if full else silent)
        ) from error
    except Exception as error:  # the hub's client has many kinds, by version and transport
        raise CheckpointError(offline_message(name, silent)) from error
    if path is None:
        raise CheckpointError(offline_message(name, f"the model hub has no weights in {repo}"))
    if not intact(path):
        raise CheckpointError(offline_message(name, "the file arrived damaged"))
    return path


class Watched:
    """A download that is given up when it stands still.

    The hub's own client goes on for minutes with a hub that falls silent, and for ever with one that
    sends the first half again and again. It cannot be told to stop, so it works in a thread of its
    own, and is left alone there; the next byte that it gets ends it.
    """

    def __init__(self, repo: str):
        self.repo = repo
        self.most, self.moved = 0, time.monotonic()  # bytes so far, and when there were more
        self.given_up = False
        self.path, self.error = None, None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def wait(self) -> Path | None:
        """The file; None if there is none in this repository."""
        self.thread.start()
        while self.thread.is_alive():
            self.thread.join(0.1)
            if time.monotonic() - self.moved > STALL_SECONDS:
                self.given_up = True
                raise TimeoutError("The download stands still.")
        if self.error:
            raise self.error
        return self.path

    def run(self) -> None:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import EntryNotFoundError

        try:
            for filename in HUB_FILES:
                self.moved = time.monotonic()
                try:  # without this question, the client would ask for minutes
                    get_hf_file_metadata(hf_hub_url(self.repo, filename), timeout=HUB_SECONDS)
                except EntryNotFoundError:
                    continue
                options = {"etag_timeout": HUB_SECONDS, "tqdm_class": self.progress_bar()}
                self.path = Path(hf_hub_download(self.repo, filename, **options))
                return
        except BaseException as error:  # noqa: BLE001 (raised again by `wait`)
            self.error = error

    def progress_bar(self) -> type:
        from huggingface_hub.utils import tqdm

        class Bar(tqdm):
            def update(bar, n: float | None = 1) -> bool | None:
                if self.given_up:
                    raise InterruptedError
                shown = super().update(n)
                if bar.n > self.most:
                    self.most, self.moved = bar.n, time.monotonic()
                return shown

        return Bar


def offline_message(name: str, reason: str) -> str:
    near = ", ".join(embedded())
    instead = f" or choose a model that needs no download ({near})" if near else ""
    return (
        f"{name} could not be downloaded: {reason}. Put {name}.safetensors into a folder and set "
        f"VIT_DEMO_WEIGHTS to it,{instead or ' or try again with a connection'}."
    )


# Which names there are


@cache
def supported_timm() -> dict[str, int]:
    """Every timm checkpoint that can be loaded, with its number of labels (0: for maps only)."""
    import timm

    names = {}
    for name in timm.list_pretrained():
        cfg = timm.models.get_pretrained_cfg(name)
        if cfg.hf_hub_id and reason_against(name.partition(".")[0]) is None:
            names[name] = cfg.num_classes if imagenet_labels(cfg.num_classes) else 0
    return names


def nearest(name: str) -> str:
    """The supported model whose name is most like this one; with labels, unless this has none."""
    import timm

    known = timm.is_model(name.partition(".")[0])
    cfg = timm.models.get_pretrained_cfg(name, allow_unregistered=True) if known else None
    headless = cfg is not None and not imagenet_labels(cfg.num_classes)
    names = [full for full, classes in supported_timm().items() if headless or classes == 1000]
    names = [full for full in names if not full.startswith("test_")]  # timm's toys
    return (difflib.get_close_matches(name, names, n=1, cutoff=0.5) or [USUAL])[0]


def unknown_name(name: str) -> str:
    names = [*embedded(), *supported_timm()]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or [nearest(name)]
    return (
        f"There is no model {name!r}. The closest names: {', '.join(close)}. "
        "Use one of them; python -m vit_demo models lists all."
    )
