"""What a model is trained with: the flags, and what fits each set where no flag says otherwise."""

import argparse
import math
from dataclasses import replace
from pathlib import Path

from vit_demo.augment import WARPS
from vit_demo.checkpoints import Checkpoint
from vit_demo.data import NAMED
from vit_demo.view import Preprocess

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
    "randaugment": 0,
    "mixup": 0.0,
    "cutmix": 0.0,
    "mix_share": 0.5,
    "drop_patches": 0.0,
    "whole_epochs": 0,
}
DIGITS = {"config": "notes", "image_size": 28, "patch_size": 7, "channels": 1, "epochs": 10}
SMALL = {"config": "mini", "image_size": 32, "patch_size": 4, "channels": 3, "epochs": 40}
PHOTOS = {"config": "tiny", "image_size": 224, "patch_size": 16, "channels": 3, "epochs": 100}
STRONG = {"warmup": 5.0, "augment": "zoom", "randaugment": 2, "mixup": 0.8, "cutmix": 1.0}
RECIPES = {  # what a set is trained with where no flag says otherwise
    "mnist": COMMON | DIGITS | {"augment": "digits"},
    "fashion-mnist": COMMON | DIGITS | {"augment": "clothes"},
    "cifar10": COMMON | SMALL | {"augment": "photos"},
    "folder": COMMON | PHOTOS | STRONG,
}
FINE_TUNING = {"lr": 1e-4, "epochs": 10, "warmup": 1.0, "image_size": None}  # None: the model's own
STATISTICS = {  # mean and standard deviation of the training pixels
    "mnist": ((0.1307,), (0.3081,)),
    "fashion-mnist": ((0.2860,), (0.3530,)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
}


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("dataset", help=f"{', '.join(NAMED)}, or a folder with one folder of pictures a class")
    add("--out", required=True, type=Path, metavar="DIR", help="folder for the results")
    add("--data", metavar="DIR", help="where the files of a named set are (else: downloaded)")
    add("--resume", action="store_true", help="go on after the last finished epoch in --out")
    add("--init", metavar="NAME", help="fine-tune this model with a new head")
    add("--seed", type=int, default=0, help="another number, another run (0)")
    add("--eval-every", type=int, default=1, metavar="N", help="test after each N epochs (1)")
    add("--compile", action="store_true", help="compile the model: a slow start, faster steps")
    add("--device", default="auto", help="auto, cpu, cuda or mps")
    add("--workers", type=int, default=2, help="threads that read the pictures of folders (2)")

    add = parser.add_argument_group("shape of the model (default: fits the set)").add_argument
    add("--config", choices=SHAPES, help="width, depth and heads by one name")
    for name in ("image-size", "patch-size", "channels", "embed-dim", "depth", "heads"):
        add(f"--{name}", type=int, metavar="N")

    add = parser.add_argument_group("recipe (default: fits the set)").add_argument
    add("--epochs", type=int, metavar="N")
    add("--batch-size", type=int, metavar="N", help="pictures a step, over all processes")
    add("--optimizer", choices=("adamw", "muon"), help="muon: orthogonal steps for the matrices")
    add("--lr", type=float, help="the highest learning rate")
    add("--weight-decay", type=float, help="of the matrices; biases, norms, tokens have none")
    add("--warmup", type=float, metavar="EPOCHS", help="until the learning rate is highest")
    add("--label-smoothing", type=float, metavar="P")
    add("--clip", type=float, metavar="NORM", help="longest gradient")
    add("--ema", type=float, metavar="DECAY", help="of the averaged weights; 0: no average")
    add("--first-weights", choices=("normal", "mimetic"), help="mimetic: like those of trained "
        "ViTs, which helps on small sets")  # fmt: skip
    add("--augment", choices=WARPS, help="how pictures are shifted, zoomed, turned, flipped")
    add("--randaugment", type=int, metavar="N", help="RandAugment with N operations; 0: none")
    add("--mixup", type=float, metavar="ALPHA", help="0: none")
    add("--cutmix", type=float, metavar="ALPHA", help="0: none")
    add("--mix-share", type=float, metavar="P", help="share of the pictures that are mixed")
    add("--drop-patches", type=float, metavar="P", help="share of the patches left out: faster")
    add("--whole-epochs", type=int, metavar="N", help="at the end, N epochs with all patches")


def settle(args: argparse.Namespace) -> None:
    """Fill in what no flag said from the recipe of the set, and refuse what cannot work."""
    recipe = dict(RECIPES.get(args.dataset, RECIPES["folder"]))
    if args.init:
        for name in ("config", "patch_size", "channels", *SHAPES["tiny"], "first_weights"):
            if getattr(args, name) is not None:
                raise ValueError(f"{flag(name)} does not go with --init: the model has its own.")
        recipe |= FINE_TUNING
    else:
        recipe |= SHAPES[args.config or recipe["config"]]
    for name, value in recipe.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    at_least_1 = ("epochs", "batch_size", "eval_every", "workers")
    at_least_0 = (
        "weight_decay",
        "warmup",
        "randaugment",
        "mixup",
        "cutmix",
        "whole_epochs",
        "seed",
    )
    for names, fine, wanted in (
        (at_least_1, lambda x: x >= 1, "1 or more"),
        (at_least_0, lambda x: x >= 0, "0 or more"),
        (("lr", "clip"), lambda x: 0 < x < math.inf, "more than 0"),
        (("label_smoothing", "ema", "drop_patches"), lambda x: 0 <= x < 1, "from 0 to below 1"),
        (("mix_share",), lambda x: 0 <= x <= 1, "from 0 to 1"),
        (("channels",), lambda x: x in (1, 3), "1 (grey) or 3 (red, green, blue)"),
    ):
        for name in names:
            if not fine(getattr(args, name)):
                raise ValueError(f"{flag(name)} is {getattr(args, name)}; use {wanted}.")


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def settings(args: argparse.Namespace) -> dict:
    """The arguments that decide the result; not where it goes, nor how fast it comes."""
    free = ("out", "data", "resume", "eval_every", "device", "workers", "compile", "run")
    return {name: value for name, value in vars(args).items() if name not in free}


def preprocess_of(args: argparse.Namespace, start: Checkpoint | None) -> Preprocess:
    """What the trained model will do with pictures: exactly what it saw in training."""
    if start is not None:
        size = (args.image_size,) * 2 if args.image_size else start.preprocess.size
        digits = start.preprocess.light_on_dark or args.dataset == "mnist"
        return replace(start.preprocess, size=size, crop_pct=1.0, crop_mode="center",
                       light_on_dark=digits)  # fmt: skip
    mean, std = STATISTICS.get(args.dataset, ((0.5,), (0.5,)))
    if len(mean) != args.channels:
        mean, std = ((sum(v) / len(v),) * args.channels for v in (mean, std))
    return Preprocess((args.image_size,) * 2, mean, std, light_on_dark=args.dataset == "mnist")
