"""vit-demo faithfulness: the perturbation test of the papers, over a folder of pictures."""

import argparse
import sys
from pathlib import Path

from vit_demo.cli import flags
from vit_demo.map_settings import FITS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from vit_demo.trust.methods import METHODS

    flags.add_model(parser)
    add = parser.add_argument
    add("--images", required=True, type=Path, metavar="DIR", help="folder of pictures")
    flags.add_out(parser)
    add("--methods", default=",".join(METHODS), metavar="A,B,...",
        help=f"what to compare ({','.join(METHODS)})")  # fmt: skip
    add("--labels-from-name", action="store_true",
        help="file names begin with the true synset, as n02123045_tabby.JPEG")  # fmt: skip
    add("--fit", default="stretch", choices=FITS,
        help="how a picture meets the model (stretch, as in the papers' code)")  # fmt: skip
    add("--limit", type=int, metavar="N", help="only the first N pictures, by name")
    add("--resume", action="store_true", help="go on with the run in --out")
    add("--batch-size", type=int, default=18, metavar="N", help="pictures in one pass (18)")


def run(args: argparse.Namespace) -> int:
    """Print the table; 2 if a picture could not be read."""
    from vit_demo.distributed import join_processes
    from vit_demo.trust.perturbation import perturbation_test

    with join_processes(args.device) as group:
        args.device = str(group.device)
        result = perturbation_test(
            flags.load_classifier(args),
            args.images,
            args.out,
            methods=flags.names(args.methods),
            labels_from_name=args.labels_from_name,
            fit=args.fit,
            limit=args.limit,
            resume=args.resume,
            batch_size=args.batch_size,
            group=group,
        )
    if result is None:  # another process tells
        return 0
    for picture, error in result.errors.items():
        print(f"vit-demo: {picture}: {error}", file=sys.stderr)
    print(f"{'method':18}{'positive':>10}{'negative':>10}")
    for name, of in result.areas.items():
        print(f"{name:18}{of['positive']:>10.2f}{of['negative']:>10.2f}")
    print(f"{result.pictures} pictures; positive: lower is better, negative: higher is better")
    print(f"{args.out}: results.csv, summary.csv, perturbation.png")
    return 2 if result.errors else 0
