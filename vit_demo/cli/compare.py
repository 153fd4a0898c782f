"""vit-demo compare: two models on one picture, or two pictures in one model."""

import argparse
from pathlib import Path

from vit_demo.cli import flags
from vit_demo.files import make_folder
from vit_demo.map_settings import CLASS_MAPS, FITS, PLAIN_MAPS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("images", nargs="+", metavar="IMAGE", help="one picture and --with, or two pictures")
    flags.add_model(parser)
    add("--with", dest="other", metavar="M", help="a second model for the same picture")
    flags.add_out(parser)
    add("--fit", default="crop", choices=FITS, help=flags.FIT_HELP)
    add("--method", default="rollout", choices=(*PLAIN_MAPS, *CLASS_MAPS),
        help="the map to compare (rollout)")  # fmt: skip
    add("--layer", type=int, default=-1, help="of the first; 0 is the first, -1 the last (-1)")
    add("--head", type=int, help="of the first, from 0 (all heads)")
    add("--query", type=flags.query, metavar="ROW,COL", help="ask this patch, not the answer")
    add("--label", type=flags.label, help="for class maps: this label, its name or number "
        "(each one's own answer)")  # fmt: skip
    add("--minus", type=flags.label, metavar="LABEL", help="for class maps: rather than this one")
    add("--json", action="store_true", help="print the numbers as JSON")


def run(args: argparse.Namespace) -> None:
    if (len(args.images), args.other is None) not in ((1, False), (2, True)):
        raise ValueError(
            "give one picture and a second model (--with M), or two pictures and no --with."
        )
    from vit_demo import compare, export
    from vit_demo.explain import load

    classifier = flags.load_classifier(args)
    other = load(args.other, device=args.device) if args.other else classifier
    first = classifier.explain(args.images[0], args.fit)
    second = other.explain(args.images[-1], args.fit)
    settings = compare.question(
        first,
        args.method,
        layer=args.layer,
        head=args.head,
        query=args.query,
        label=args.label,
        minus=args.minus,
    )
    comparison = compare.compare(first, second, settings)
    about = comparison.describe()
    for side, image in (("first", args.images[0]), ("second", args.images[-1])):
        about[side]["image"] = Path(image).name
    make_folder(args.out)
    compare.figure(comparison).save(args.out / "compare.png")
    (args.out / "compare.npz").write_bytes(export.npz_bytes(comparison.arrays()))
    text = export.json_text(about)
    (args.out / "compare.json").write_text(text, encoding="utf-8")
    if args.json:
        print(text, end="")
        return
    print("\n".join(lines(comparison)))
    print(f"{args.out}: compare.png, compare.npz, compare.json")


def lines(comparison) -> list[str]:
    """Both answers, the labels between them, and how alike the maps are."""
    found = []
    for name in ("first", "second"):
        explanation = getattr(comparison, name)
        best = f"{explanation.top(1)[0].label}" if explanation.labels else "no labels: maps only"
        found.append(f"{name:7} {explanation.model_name}: {best}")
    if comparison.labels:
        found += ["", f"  {'first':>8} {'second':>8}"]
    for label in comparison.labels:
        numbers = (
            f"{p:8.2%}" if p is not None else f"{'-':>8}" for p in (label.first, label.second)
        )
        found.append(f"  {' '.join(numbers)}  {label.label}")
    (rows, cols), words = comparison.seen.shape, "1 is the same order, 0 unrelated"
    found += [
        "",
        f"rank correlation {comparison.correlation:+.3f} on {rows} x {cols} cells ({words})",
    ]
    return found
