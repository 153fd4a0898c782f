"""vit-demo classify: the labels of pictures."""

import argparse
from dataclasses import asdict

from vit_demo.cli import flags
from vit_demo.map_settings import FITS
from vit_demo.validate import json_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("images", nargs="+", metavar="IMAGE")
    flags.add_model(parser)
    parser.add_argument("--top", type=int, default=10, metavar="K", help="how many labels (10)")
    parser.add_argument("--fit", default="crop", choices=FITS, help=flags.FIT_HELP)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    classifier = flags.load_classifier(args)
    classifier.require_labels()
    results, failed = [], False
    for path in args.images:
        try:
            labels = [asdict(p) for p in classifier.classify(path, args.top, args.fit)]
            results.append({"image": path, "labels": labels})
        except ValueError as error:
            failed = True
            results.append({"image": path, "error": str(error)})
            flags.warn(f"{path}: {error}")
            continue
        if not args.json:
            print(path)
            for p in labels:
                print(f"  {p['probability']:7.2%}  {p['label']}")
    if args.json:
        print(json_text(results), end="")
    return 2 if failed else 0
