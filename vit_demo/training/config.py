"""What a model is trained with: every setting, and what fits each set where nothing is said.

Nothing here needs PyTorch: the command line shows its help from this file.
"""

import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

DATASETS = ("mnist", "fashion-mnist", "cifar10")  # sets with a name; others are folders
AUGMENTATIONS = ("none", "digits", "clothes", "photos", "zoom", "uploads")  # `augment.WARPS`
OPTIMIZERS = ("adamw", "muon")
FIRST_WEIGHTS = ("normal", "mimetic")
PRECISIONS = ("float32", "bfloat16")
SNAPSHOT_TABLE = "snapshots.json"  # what is known of the moments whose weights were kept
SHAPES = {  # --config
    "notes": {"embed_dim": 128, "depth": 3, "heads": 4},
    "mini": {"embed_dim": 192, "depth": 6, "heads": 3},
    "tiny": {"embed_dim": 192, "depth": 12, "heads": 3},
    "small": {"embed_dim": 384, "depth": 12, "heads": 6},
    "base": {"embed_dim": 768, "depth": 12, "heads": 12},
}
COMMON = {
    "optimizer": "adamw",
    "first_weights": "normal",
    "batch_size": 128,
    "lr": 1e-3,
    "weight_decay": 0.05,
    "warmup": 1.0,
    "label_smoothing": 0.1,
    "clip": 1.0,
    "ema": 0.999,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "randaugment": 0,
    "mixup": 0.0,
    "cutmix": 0.0,
    "mix_share": 0.5,
    "drop_patches": 0.0,
    "start_size": 0,
    "whole_epochs": 0,
}
DIGITS = {"config": "notes", "image_size": 28, "patch_size": 7, "channels": 1, "epochs": 10}
SMALL = {"config": "mini", "image_size": 32, "patch_size": 4, "channels": 3, "epochs": 40}
PHOTOS = {"config": "tiny", "image_size": 224, "patch_size": 16, "channels": 3, "epochs": 100}
STRONG = {"warmup": 5.0, "augment": "zoom", "randaugment": 2, "mixup": 0.8, "cutmix": 1.0}
TAUGHT = {
    "label_smoothing": 0.0,
    "augment": "uploads",
    "randaugment": 0,
    "mixup": 0.0,
    "cutmix": 0.0,
}
RECIPES = {  # what a set is trained with where no setting says otherwise
    "mnist": COMMON | DIGITS | {"augment": "digits"},
    "fashion-mnist": COMMON | DIGITS | {"augment": "clothes"},
    "cifar10": COMMON | SMALL | {"augment": "photos"},
    "folder": COMMON | PHOTOS | STRONG,
}
FINE_TUNING = {"lr": 1e-4, "epochs": 10, "warmup": 1.0, "image_size": None}  # None: the model's own


@dataclass(frozen=True)
class TrainConfig:
    """A run of training. None: what fits the set (`RECIPES`)."""

    dataset: str | Path  # one of DATASETS, or a folder with one folder of pictures a class
    out: str | Path  # folder for the results
    data: str | None = None  # where the files of a named set are; None: they are downloaded
    resume: bool = False
    init: str | None = None  # fine-tune this model; for other classes with a new head
    seed: int = 0
    eval_every: int = 1  # epochs
    snapshots: int = 0  # moments at which the weights are kept, most of them early; 0: none
    compile: bool = False
    precision: str = "float32"  # bfloat16: matrix products of half the width, where that is faster
    device: str = "auto"
    workers: int = 2  # threads that read the pictures of folders
    # The shape of the model
    config: str | None = None  # one of SHAPES: width, depth and heads by one name
    image_size: int | None = None
    patch_size: int | None = None
    channels: int | None = None
    embed_dim: int | None = None
    depth: int | None = None  # with init: more blocks than the model has, and it grows
    heads: int | None = None
    dropout: float | None = None
    attention_dropout: float | None = None
    # The recipe
    epochs: int | None = None
    batch_size: int | None = None  # pictures a step, over all processes
    optimizer: str | None = None
    lr: float | None = None
    weight_decay: float | None = None
    warmup: float | None = None  # epochs
    label_smoothing: float | None = None
    clip: float | None = None
    ema: float | None = None
    first_weights: str | None = None
    augment: str | None = None
    randaugment: int | None = None
    mixup: float | None = None
    cutmix: float | None = None
    mix_share: float | None = None
    drop_patches: float | None = None
    start_size: int | None = None  # pixels; pictures grow from here to image_size; 0: no
    whole_epochs: int | None = None  # at the end: all patches, full size, nothing mixed
    # A teacher
    teacher: str | None = None  # a model whose labels contain the classes
    teacher_weight: float = 0.7  # of its answers in the targets; the rest is the true label
    teacher_size: int | None = None  # pixels; None: the teacher's own input size
    teacher_tokens: float = 0.0  # weight of its tokens: what it makes of each patch is learnt, too
    views: int = 4  # of each picture, each with an answer of the teacher


def complete(config: TrainConfig) -> TrainConfig:
    """Fill in what nothing was said about from the recipe of the set; refuse what cannot work."""
    recipe = dict(RECIPES.get(str(config.dataset), RECIPES["folder"]))
    if config.teacher:
        recipe |= TAUGHT
    if config.init:
        of_model = ("config", "patch_size", "channels", "embed_dim", "heads", "first_weights")
        for name in (*of_model, "dropout", "attention_dropout"):
            if getattr(config, name) is not None:
                raise ValueError(f"{flag(name)} does not go with --init: the model has its own.")
        recipe |= FINE_TUNING
    else:
        shape = config.config or recipe["config"]
        check_choice("config", shape, tuple(SHAPES))
        recipe |= SHAPES[shape]
    missing = {name: value for name, value in recipe.items() if getattr(config, name) is None}
    # numpy's numbers as Python's
    given = {name: value.item() for name, value in vars(config).items() if hasattr(value, "item")}
    config = replace(config, out=Path(config.out), **missing, **given)
    check(config)
    return config


def check(config: TrainConfig) -> None:
    """An error that names the setting, for each that cannot be."""
    choices = {
        "optimizer": OPTIMIZERS,
        "first_weights": FIRST_WEIGHTS,
        "augment": AUGMENTATIONS,
        "precision": PRECISIONS,
    }
    for name, allowed in choices.items():
        check_choice(name, getattr(config, name), allowed)
    at_least_1 = ("epochs", "batch_size", "eval_every", "workers", "views")
    at_least_0 = (
        "weight_decay",
        "warmup",
        "randaugment",
        "mixup",
        "cutmix",
        "start_size",
        "whole_epochs",
        "teacher_tokens",
        "seed",
    )
    below_1 = ("label_smoothing", "ema", "drop_patches", "dropout", "attention_dropout")
    for names, fine, wanted in (
        (at_least_1, lambda x: x >= 1, "1 or more"),
        (at_least_0, lambda x: 0 <= x < math.inf, "0 or more"),
        (("lr", "clip"), lambda x: 0 < x < math.inf, "more than 0"),
        (below_1, lambda x: 0 <= x < 1, "from 0 to below 1"),
        (("mix_share", "teacher_weight"), lambda x: 0 <= x <= 1, "from 0 to 1"),
        (("snapshots",), lambda x: x == 0 or x >= 2, "0 (none), or 2 or more"),
        (("teacher_size",), lambda x: x is None or x >= 1, "1 or more"),
        (("channels",), lambda x: x in (1, 3), "1 (grey) or 3 (red, green, blue)"),
    ):
        for name in names:
            if not fine(getattr(config, name)):
                raise ValueError(f"{flag(name)} is {getattr(config, name)}; use {wanted}.")
    if config.teacher and config.randaugment:
        raise ValueError(
            "--teacher answers for views as they are: leave --randaugment at 0 with it."
        )
    if config.teacher_tokens:
        if not config.teacher:
            raise ValueError("--teacher-tokens needs a --teacher.")
        for name in ("mixup", "start_size"):
            if getattr(config, name):
                raise ValueError(
                    f"--teacher-tokens are those of whole views in full size: leave {flag(name)} at 0."
                )


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{flag(name)} is {value!r}; use one of {', '.join(allowed)}.")


def flag(name: str) -> str:
    """A setting as it is called on the command line."""
    return "--" + name.replace("_", "-")


FREE = ("out", "data", "resume", "eval_every", "device", "workers", "compile")


def deciding(config: TrainConfig) -> dict:
    """The settings that decide the result; not where it goes, nor how fast it comes."""
    settings = {name: value for name, value in asdict(config).items() if name not in FREE}
    return settings | {"dataset": str(config.dataset)}


SETTINGS = tuple(field.name for field in fields(TrainConfig))
