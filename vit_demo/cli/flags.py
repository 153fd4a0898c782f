"""Flags that several commands have, and how their values are read."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vit_demo.embedded import DEFAULT
from vit_demo.labels import read_label as label  # noqa: F401 (by its number or its name)
from vit_demo.map_settings import FITS
from vit_demo.validate import printable

if TYPE_CHECKING:
    from vit_demo.explain import Classifier

FIT_HELP = "how a picture meets the model (crop)"
DEVICE_HELP = "auto, cpu, cuda or mps"


def add_model(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Which model: --model, --arch, --labels, --device."""
    default = default or DEFAULT
    named = "an embedded model, a timm name, or a file of weights"
    parser.add_argument("--model", default=default, metavar="M", help=f"{named} ({default})")
    add_file_of_weights(parser)
    parser.add_argument("--device", default="auto", help=DEVICE_HELP)


def add_file_of_weights(parser: argparse.ArgumentParser) -> None:
    help = "timm architecture of a file that does not describe itself"
    parser.add_argument("--arch", help=help)
    parser.add_argument("--labels", metavar="FILE", help="text file with one label a line")


def add_picture(parser: argparse.ArgumentParser) -> None:
    """One picture, a model, a folder for the results."""
    parser.add_argument("image", metavar="IMAGE")
    add_model(parser)
    add_out(parser)
    parser.add_argument("--fit", default="crop", choices=FITS, help=FIT_HELP)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")


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
