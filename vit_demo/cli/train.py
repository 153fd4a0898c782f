"""vit-demo train: a ViT from scratch, or a fine-tune."""

import argparse
from pathlib import Path

from vit_demo.cli import flags
from vit_demo.training.config import (
    AUGMENTATIONS,
    DATASETS,
    FIRST_WEIGHTS,
    OPTIMIZERS,
    PRECISIONS,
    SETTINGS,
    SHAPES,
    TrainConfig,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("dataset", help=f"{', '.join(DATASETS)}, or a folder with one folder of pictures a class")
    flags.add_out(parser)
    add("--data", metavar="DIR", help="where the files of a named set are (else: downloaded)")
    add("--resume", action="store_true", help="go on after the last finished epoch in --out")
    add("--init", metavar="NAME", help="fine-tune this model; for other classes with a new head")
    add("--seed", type=int, default=0, help="another number, another run (0)")
    add("--eval-every", type=int, default=1, metavar="N", help="test after each N epochs (1)")
    add("--snapshots", type=int, default=0, metavar="N", help="keep the weights at N moments, most "
        "of them early, in OUT/snapshots (0: none)")  # fmt: skip
    add("--compile", action="store_true", help="compile the model: a slow start, faster steps")
    add("--precision", choices=PRECISIONS, default="float32", help="bfloat16: faster steps on "
        "processors made for it; the weights stay float32")  # fmt: skip
    add("--device", default="auto", help=flags.DEVICE_HELP)
    add("--workers", type=int, default=2, help="threads that read the pictures of folders (2)")

    add = parser.add_argument_group("shape of the model (default: fits the set)").add_argument
    add("--config", choices=SHAPES, help="width, depth and heads by one name")
    for name in ("image-size", "patch-size", "channels", "embed-dim", "heads"):
        add(f"--{name}", type=int, metavar="N")
    add("--depth", type=int, metavar="N", help="blocks; with --init it may grow")
    add("--dropout", type=float, metavar="P", help="after positions, projections and MLP (0)")
    add("--attention-dropout", type=float, metavar="P", help="on the attention weights (0)")

    add = parser.add_argument_group("recipe (default: fits the set)").add_argument
    add("--epochs", type=int, metavar="N")
    add("--batch-size", type=int, metavar="N", help="pictures a step, over all processes")
    add("--optimizer", choices=OPTIMIZERS, help="muon: orthogonal steps for the matrices")
    add("--lr", type=float, help="the highest learning rate")
    add("--weight-decay", type=float, help="of the matrices; biases, norms, tokens have none")
    add("--warmup", type=float, metavar="EPOCHS", help="until the learning rate is highest")
    add("--label-smoothing", type=float, metavar="P")
    add("--clip", type=float, metavar="NORM", help="longest gradient")
    add("--ema", type=float, metavar="DECAY", help="of the averaged weights; 0: no average")
    add("--first-weights", choices=FIRST_WEIGHTS, help="mimetic: like those of trained ViTs, "
        "which helps on small sets")  # fmt: skip
    add("--augment", choices=AUGMENTATIONS, help="how pictures are shifted, zoomed, turned, lit")
    add("--randaugment", type=int, metavar="N", help="RandAugment with N operations; 0: none")
    add("--mixup", type=float, metavar="ALPHA", help="0: none")
    add("--cutmix", type=float, metavar="ALPHA", help="0: none")
    add("--mix-share", type=float, metavar="P", help="share of the pictures that are mixed")
    add("--drop-patches", type=float, metavar="P", help="share of the patches left out: faster")
    add("--start-size", type=int, metavar="PIXELS", help="begin with smaller pictures, which grow: "
        "faster; 0: no")  # fmt: skip
    add("--whole-epochs", type=int, metavar="N", help="at the end, N epochs with all patches, full "
        "size and nothing mixed")  # fmt: skip

    add = parser.add_argument_group("a teacher").add_argument
    add("--teacher", metavar="NAME", help="learn also from the answers of this model, whose labels "
        "must contain the classes")  # fmt: skip
    add("--teacher-weight", type=float, default=0.7, metavar="P", help="of its answers (0.7)")
    add("--teacher-size", type=int, metavar="N", help="pixels it gets (its own input size)")
    add("--teacher-tokens", type=float, default=0.0, metavar="W", help="weight of what it makes of each "
        "patch, which is learnt, too; 0: only its answers")  # fmt: skip
    add("--views", type=int, default=4, metavar="N", help="of each picture that it sees (4)")


def config_of(args: argparse.Namespace) -> TrainConfig:
    return TrainConfig(**{name: getattr(args, name) for name in SETTINGS})


def run(args: argparse.Namespace) -> None:
    from vit_demo.training.loop import train

    if Path(args.out).is_file():
        raise ValueError(f"{args.out} is a file; give a folder for the results.")
    train(config_of(args))
