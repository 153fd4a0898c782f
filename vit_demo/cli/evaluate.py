"""vit-demo evaluate: accuracy over a whole set."""

import argparse
from pathlib import Path

from vit_demo.cli import flags
from vit_demo.training.config import DATASETS
from vit_demo.validate import json_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("dataset", nargs="?", help=f"{', '.join(DATASETS)}, or a folder with one folder a class")
    add("--model", required=True, metavar="M", help="an embedded model, a timm name, or a file")
    flags.add_file_of_weights(parser)
    add("--data", metavar="DIR", help="where the files of a named set are; or the folder itself")
    add("--all", action="store_true", help="every picture of a folder, not only the held-out ones")
    add("--out", type=Path, metavar="PNG", help="draw the confusion matrix into this file")
    add("--batch-size", type=int, default=250, metavar="N")
    add("--device", default="auto", help=flags.DEVICE_HELP)
    add("--workers", type=int, default=2, help="threads that read the pictures of folders (2)")
    add("--json", action="store_true", help="print JSON only")


def run(args: argparse.Namespace) -> None:
    from vit_demo.checkpoints import load_checkpoint
    from vit_demo.training.evaluation import evaluate

    dataset = args.dataset or args.data
    if dataset is None:
        raise ValueError(
            f"Say on what: a folder with one folder a class, or {', '.join(DATASETS)}."
        )
    result = evaluate(
        load_checkpoint(args.model, args.arch, args.labels),
        dataset,
        args.data,
        every_picture=args.all,
        out=args.out,
        batch_size=args.batch_size,
        device=args.device,
        workers=args.workers,
    )
    if args.json:
        print(json_text(result), end="")
        return
    print(f"{result['model']} on {result['pictures']:,} pictures of {result['dataset']}")
    print(f"top-1 {result['top1']:.2%}")
    if result["top5"] is not None:
        print(f"top-5 {result['top5']:.2%}")
    width = max(len(name) for name in result["per_class"])
    for name, share in result["per_class"].items():
        print(f"  {name:<{width}}  {share:.2%}")
    if args.out is not None:
        print(f"confusion matrix: {args.out}")
