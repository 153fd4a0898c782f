"""The command line: python -m vit_demo COMMAND.

The commands: models, classify, explain, trust, faithfulness, summary, train, evaluate.

Results go to standard output, everything else to standard error. Exit code 0 is success; 2 is bad
input, with one line that says what to do.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from vit_demo.view import FITS

FIT_HELP = "how a picture meets the model (crop)"


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: list[str] | None = None) -> int:
    args = build_parser().parse_args(argv)
    try:
        return args.run(args) or 0
    except (ValueError, FileNotFoundError, PermissionError) as error:
        print(f"vit_demo: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output (head, less) has seen enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - a stack trace helps nobody on a command line
        what = " ".join(str(error).split())
        print(f"vit_demo: unexpected {type(error).__name__}: {what}", file=sys.stderr)
        return 1


def build_parser() -> Parser:
    from vit_demo.checkpoints import DEFAULT
    from vit_demo.evaluate import add_evaluate_arguments, evaluate
    from vit_demo.protocol import add_faithfulness_arguments, faithfulness
    from vit_demo.recipes import add_train_arguments
    from vit_demo.report import add_trust_arguments
    from vit_demo.train import train

    parser = Parser(prog="vit_demo", description="See how a Vision Transformer looks at a picture.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)

    def command(name: str, run, about: str) -> Parser:
        added = commands.add_parser(name, help=about, description=about)
        added.set_defaults(run=run)
        return added

    def model_arguments(added: Parser) -> None:
        named = "an embedded model, a timm name, or a file of weights"
        added.add_argument("--model", default=DEFAULT, metavar="M", help=f"{named} ({DEFAULT})")
        added.add_argument(
            "--arch", help="timm architecture of a file that does not describe itself"
        )
        added.add_argument("--labels", metavar="FILE", help="text file with one label a line")
        added.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")

    def picture_arguments(added: Parser) -> None:
        added.add_argument("image", metavar="IMAGE")
        model_arguments(added)
        added.add_argument(
            "--out", required=True, metavar="DIR", type=Path, help="folder for the results"
        )
        added.add_argument("--fit", default="crop", choices=FITS, help=FIT_HELP)
        added.add_argument("--json", action="store_true", help="print the numbers as JSON")

    added = command("models", run_models, "List the models that can be used.")
    added.add_argument("--json", action="store_true", help="print JSON")

    added = command("classify", run_classify, "Name what is in pictures.")
    added.add_argument("images", nargs="+", metavar="IMAGE")
    model_arguments(added)
    added.add_argument("--top", type=int, default=10, metavar="K", help="how many labels (10)")
    added.add_argument("--fit", default="crop", choices=FITS, help=FIT_HELP)
    added.add_argument("--json", action="store_true", help="print JSON")

    added = command("explain", run_explain, "Show where in a picture the answer came from.")
    picture_arguments(added)
    added.add_argument("--layer", type=int, default=-1, help="0 is the first, -1 the last (-1)")
    added.add_argument(
        "--head", type=head, default=None, metavar="all|N", help="0 is the first (all)"
    )
    added.add_argument(
        "--query", type=query, metavar="ROW,COL", help="ask this patch, not the answer"
    )
    added.add_argument("--label", type=number_or_text, help="also show what speaks for this label "
                       "(its name or number)")  # fmt: skip
    added.add_argument("--minus", type=number_or_text, metavar="LABEL", help="also show what speaks "
                       "for --label rather than for this one")  # fmt: skip
    added.add_argument(
        "--fusion", default="mean", choices=("mean", "max", "min"), help="over heads"
    )
    added.add_argument(
        "--residual", type=float, default=0.5, help="share passed on unchanged (0.5)"
    )
    added.add_argument("--discard", type=float, default=0.0, help="share of weak links dropped (0)")
    added.add_argument("--below", default="mean", choices=("mean", "same"), help="below a head: "
                       "the mean of the heads, or the head of the same number")  # fmt: skip
    added.add_argument("--colours", default="inferno", metavar="NAME", help="inferno, viridis, ...")
    added.add_argument("--smooth", action="store_true", help="interpolate between the patches")
    added.add_argument("--scale", default="shared", choices=("shared", "own"), help="colours of the "
                       "wall: one scale for all heads, or one for each")  # fmt: skip

    added = command("trust", run_trust, "Test whether maps show what the answer came from.")
    picture_arguments(added)
    added.add_argument("--label", type=number_or_text, help="the label in question, its name or "
                       "number (default: the answer)")  # fmt: skip
    add_trust_arguments(added)

    added = command(
        "faithfulness", faithfulness, "Test maps over a folder of pictures, as the papers do."
    )
    model_arguments(added)
    add_faithfulness_arguments(added)

    added = command(
        "summary", run_summary, "Print the layers of a model, with shapes and parameters."
    )
    model_arguments(added)

    add_train_arguments(command("train", train_quietly(train), "Train a ViT from scratch."))
    add_evaluate_arguments(
        command("evaluate", train_quietly(evaluate), "Measure a model's accuracy.")
    )
    return parser


def train_quietly(run):
    """What train and evaluate return is for Python; the command line has printed it already."""
    return lambda args: run(args) and 0


def head(text: str) -> int | None:
    return None if text == "all" else int(text)


def query(text: str) -> tuple[int, int]:
    row, col = text.split(",")
    return int(row), int(col)


def number_or_text(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def load(args: argparse.Namespace):
    from vit_demo.explain import load

    return load(args.model, arch=args.arch, labels=args.labels, device=args.device)


def run_models(args: argparse.Namespace) -> None:
    from vit_demo.timm_models import supported_timm
    from vit_demo.weights import embedded

    models = [{"name": name, "source": "embedded"} for name in embedded()]
    for name, labels in supported_timm().items():
        models.append({"name": name, "source": "timm", "labels": labels})
    if args.json:
        print(json.dumps(models, indent=2))
        return
    for model in models:
        labels = model.get("labels")
        about = {None: "embedded, needs no network", 0: "maps only"}.get(labels, f"{labels} labels")
        print(f"{model['name']:60} {about}")


def run_classify(args: argparse.Namespace) -> int:
    classifier = load(args)
    classifier.require_labels()
    results, failed = [], False
    for path in args.images:
        try:
            labels = [asdict(p) for p in classifier.classify(path, args.top, args.fit)]
            results.append({"image": path, "labels": labels})
        except ValueError as error:
            failed = True
            results.append({"image": path, "error": str(error)})
            print(f"vit_demo: {path}: {error}", file=sys.stderr)
            continue
        if not args.json:
            print(path)
            for p in labels:
                print(f"  {p['probability']:7.2%}  {p['label']}")
    if args.json:
        print(json.dumps(results, indent=2, ensure_ascii=False))
    return 2 if failed else 0


def run_explain(args: argparse.Namespace) -> None:
    import numpy as np

    from vit_demo import render

    if args.minus is not None and args.label is None:
        raise ValueError("--minus needs --label: say for which label rather than this one.")
    classifier = load(args)
    explanation = classifier.explain(args.image, args.fit)
    settings = {"fusion": args.fusion, "residual": args.residual, "discard": args.discard}
    arrays = explanation.arrays(args.query, args.below, **settings)
    layer = explanation.layer_index(args.layer)
    index = None if args.label is None else explanation.label_index(args.label)
    other = None if args.minus is None else explanation.label_index(args.minus)
    if other is not None and other == index:
        raise ValueError("--label and --minus name the same label; compare two different ones.")
    heads = arrays["head_rollouts"][layer]
    which = range(len(heads)) if args.head is None else [explanation.head_index(args.head)]
    asker = "the answer" if args.query is None else "patch {},{}".format(*args.query)
    args.out.mkdir(parents=True, exist_ok=True)
    picture, colours = explanation.view.picture, {"colour_map": args.colours, "smooth": args.smooth}
    page = render.figure(
        explanation,
        arrays["rollout"],
        {index: heads[index] for index in which},
        title=f"attention rollout of {asker}",
        heads_title=f"head rollouts of layer {layer + 1} of {explanation.layers}",
        **colours,
    )
    page.save(args.out / "overview.png")
    shared = args.scale == "shared"
    wall = render.wall(arrays["head_rollouts"], shared=shared, colour_map=args.colours)
    wall.save(args.out / "heads.png")
    render.overlay(picture, arrays["rollout"], **colours).save(args.out / "rollout.png")
    files = ["overview.png", "heads.png", "rollout.png", "maps.npz", "explanation.json"]
    if index is not None:
        arrays["relevance"] = explanation.relevance(index).numpy()
        render.overlay(picture, arrays["relevance"], **colours).save(args.out / "relevance.png")
        files.insert(3, "relevance.png")
    if other is not None:
        more, less = explanation.labels[index], explanation.labels[other]
        difference = arrays["relevance"] - explanation.relevance(other).numpy()
        arrays["difference"] = difference
        shown = render.difference(picture, difference, more, less, smooth=args.smooth)
        shown.save(args.out / "difference.png")
        files.insert(4, "difference.png")
    np.savez_compressed(args.out / "maps.npz", **arrays)
    about = explanation.describe() | {
        "image": Path(args.image).name,
        "prefix_mass": float(arrays["prefix_mass"]),
        "settings": settings
        | {"layer": layer, "head": args.head, "query": args.query, "below": args.below},
    }
    if index is not None:
        about["relevance_of"] = {"label": explanation.labels[index], "index": index}
    if other is not None:
        about["minus"] = {"label": explanation.labels[other], "index": other}
    text = json.dumps(about, indent=2, ensure_ascii=False)
    (args.out / "explanation.json").write_text(text + "\n", encoding="utf-8")
    if args.json:
        print(text)
        return
    if explanation.labels:
        for p in explanation.top(10):
            print(f"  {p.probability:7.2%}  {p.label}")
    print(f"{args.out}: {', '.join(files)}")


def run_trust(args: argparse.Namespace) -> None:
    from vit_demo.report import report

    report(args, load(args))


def run_summary(args: argparse.Namespace) -> None:
    from torchinfo import summary

    model = load(args).model
    config = model.config
    columns = ("input_size", "output_size", "num_params")
    shape = (1, config.channels, *config.image_size)
    print(summary(model, input_size=shape, depth=4, col_names=columns, verbose=0))
