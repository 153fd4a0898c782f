"""vit-demo faithfulness: the perturbation test of the papers, over a folder of pictures."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vit_demo.cli import flags
from vit_demo.map_settings import COMPARED_MAPS, FITS

if TYPE_CHECKING:
    from vit_demo.trust.perturbation import Result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flags.add_model(parser)
    add = parser.add_argument
    add("--images", required=True, type=Path, metavar="DIR", help="folder of pictures")
    flags.add_out(parser)
    add("--methods", default=",".join(COMPARED_MAPS), metavar="A,B,...",
        help=f"what to compare ({','.join(COMPARED_MAPS)})")  # fmt: skip
    add("--labels-from-name", action="store_true",
        help="file names begin with the true synset, as n02123045_tabby.JPEG")  # fmt: skip
    add("--fit", default="stretch", choices=FITS,
        help="how a picture meets the model (stretch, as in the papers' code)")  # fmt: skip
    add("--limit", type=int, metavar="N", help="only the first N pictures, by name")
    add("--resume", action="store_true", help="go on with the run in --out")
    add("--batch-size", type=int, default=18, metavar="N", help="pictures in one pass (18)")


def table_lines(result: "Result") -> list[str]:
    """Both areas of each method; in brackets its difference to relevance, picture by picture."""
    lines = [f"{'method':18}{'positive':>10}{'':18}{'negative':>10}"]
    for name, of in result.areas.items():
        line = f"{name:18}"
        for way, area in of.items():
            mean, error = result.differences.get(name, {}).get(way, (0.0, 0.0))
            apart = f"({mean:+.2f} \u00b1 {error:.2f})" if mean or error else ""
            line += f"{area:>10.2f}  {apart:16}"
        lines.append(line.rstrip())
    if result.differences:
        lines.append("in brackets: minus relevance, mean over pictures and its standard error")
    words = "pictures; positive: lower is better, negative: higher is better"
    return [*lines, f"{result.pictures} {words}"]


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
    if result is None:  # rank 0 prints
        return 0
    for picture, error in result.errors.items():
        flags.warn(f"{picture}: {error}")
    print("\n".join(table_lines(result)))
    print(f"{args.out}: results.csv, summary.csv, perturbation.png")
    return 2 if result.errors else 0
