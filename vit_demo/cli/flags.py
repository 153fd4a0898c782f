"""Flags that several commands have, and how their values are read."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vit_demo.embedded import DEFAULT
from vit_demo.labels import read_label as label  # noqa: F401 (by its number or its name)
from vit_demo.validate import printable

if TYPE_CHECKING:
    from vit_demo.explain import Classifier

FIT_HELP = "how a picture meets the model (crop)"
DEVICE_HELP = "auto, cpu, cuda or mps"


def add_model(parser: argparse.ArgumentParser) -> None:
    """Which model: --model, --arch, --labels, --device."""
    named = "an embedded model, a timm name, or a file of weights"
    parser.add_argument("--model", default=DEFAULT, metavar="M", help=f"{named} ({DEFAULT})")
    add_file_of_weights(parser)
    parser.add_argument("--device", default="auto", help=DEVICE_HELP)


def add_file_of_weights(parser: argparse.ArgumentParser) -> None:
    help = "timm architecture of a file that does not describe itself"
    parser.add_argument("--arch", help=help)
    parser.add_argument("--labels", metavar="FILE", help="text file with one label a line")


def add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", required=True, metavar="DIR", type=Path, help="folder for the results"
    )


def load_classifier(args: argparse.Namespace) -> "Classifier":
    from vit_demo.explain import load

    return load(args.model, arch=args.arch, labels=args.labels, device=args.device)


def warn(text: str) -> None:
    """A line about one of many pictures; the others go on."""
    print(f"vit-demo: {printable(text)}", file=sys.stderr)


def names(text: str) -> list[str]:
    """ "relevance, raw" as a list, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def query(text: str) -> tuple[int, int]:
    """A patch by its row and column."""
    row, col = text.split(",")
    return int(row), int(col)
