"""vit-demo trust: why this label, and can I trust the map? One picture's report.

Every method's map is put to the test; on request also with random weights, and the answer is asked
again without heads and layers. The numbers are the library's (`vit_demo.trust`); here they are printed,
drawn and written down.
"""

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from vit_demo.cli import flags
from vit_demo.files import make_folder
from vit_demo.map_settings import COMPARED_MAPS, FITS, REMOVALS
from vit_demo.validate import json_text

if TYPE_CHECKING:
    from torch import Tensor

    from vit_demo.explain import Explanation
    from vit_demo.trust import Progress, RandomWeights
    from vit_demo.trust.knockout import KnockOut

MOST = 3  # heads that are named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("image", metavar="IMAGE")
    flags.add_model(parser)
    flags.add_out(parser)
    add("--fit", default="crop", choices=FITS, help=flags.FIT_HELP)
    add("--json", action="store_true", help="print the numbers as JSON")
    add("--label", type=flags.label, help="the label in question, its name or number "
        "(default: the answer)")  # fmt: skip
    add("--remove", default="tokens", choices=REMOVALS,
        help="how patches go: their tokens, or painted over (tokens)")  # fmt: skip
    add("--methods", default=",".join(COMPARED_MAPS), metavar="A,B,...",
        help=f"which maps ({','.join(COMPARED_MAPS)})")  # fmt: skip
    add("--thorough", action="store_true",
        help="20 steps, 30 random orders, patches dropped and painted over: slow")  # fmt: skip
    add("--random-weights", action="store_true",
        help="also: does the map change when the weights become random?")  # fmt: skip
    add("--without-head", nargs="+", action="extend", default=[], type=layer_and_head,
        metavar="LAYER.HEAD", help="the answer without these heads; 0.0 is the first")  # fmt: skip
    add("--without-layer", nargs="+", action="extend", default=[], type=int, metavar="LAYER",
        help="the answer without the attention of these layers")  # fmt: skip
    add("--heads", action="store_true", help="also: which single head matters most?")


def layer_and_head(text: str) -> tuple[int, int]:
    numbers = re.fullmatch(r"(-?\d+)\.(-?\d+)", text)
    if not numbers:
        raise argparse.ArgumentTypeError(f"{text!r} is not LAYER.HEAD, such as 11.2")
    return int(numbers[1]), int(numbers[2])


def run(args: argparse.Namespace) -> None:
    """Make the report as the arguments say."""
    from vit_demo import trust
    from vit_demo.trust import charts, knockout

    methods = flags.names(args.methods)
    for name in methods:
        trust.check_method(name)
    if not methods:
        raise ValueError(f"--methods names none; use some of {', '.join(COMPARED_MAPS)}.")
    classifier = flags.load_classifier(args)
    classifier.require_labels()
    explanation = classifier.explain(args.image, args.fit)
    index = explanation.label_index(args.label)
    off = {
        "heads": [
            (explanation.layer_index(layer), explanation.head_index(head))
            for layer, head in args.without_head
        ],
        "layers": [explanation.layer_index(layer) for layer in args.without_layer],
    }
    make_folder(args.out)

    with progress_bar("removing patches") as progress:
        found = trust.check(
            explanation,
            methods,
            index,
            remove=args.remove,
            thorough=args.thorough,
            progress=progress,
        )
    pictures = {"trust.png": charts.trust(explanation, found.maps, found.trusts)}
    about = {"image": Path(args.image).name} | found.describe()
    lines = trust_lines(about)
    for way, trusts in found.also.items():
        pictures[f"trust-{way}.png"] = charts.trust(explanation, found.maps, trusts)
        lines += ["", *trust_lines(about | about["also"])]
    if found.best:
        lines += ["", found.best.sentence]
    if args.random_weights:
        checks = {}
        for name in methods:
            with progress_bar(f"random weights, {name}") as progress:
                checks[name] = trust.random_weights(explanation, name, index, progress=progress)
        pictures["random-weights.png"] = charts.random_weights(explanation, checks)
        about["random_weights"] = {
            name: {
                "correlations": check.correlations.tolist(),
                "passed": check.passed,
                "sentence": check.sentence,
            }
            for name, check in checks.items()
        }
        lines += random_lines(checks)
    if off["heads"] or off["layers"]:
        answer = knockout.without(explanation, **off)
        about["without"] = off | asdict(answer)
        lines += without_lines(off, answer)
    if args.heads:
        with progress_bar("without each head") as progress:
            changes = knockout.knockout_wall(explanation, index, progress=progress)
        pictures["heads.png"] = charts.heads(changes, explanation.labels[index])
        most = most_important(changes)
        about["heads"] = {"changes": changes.tolist(), "most": most}
        lines += head_lines(most, explanation)

    for name, picture in pictures.items():
        picture.save(args.out / name)
    text = json_text(about)
    (args.out / "trust.json").write_text(text, encoding="utf-8")
    if args.json:
        print(text, end="")
        return
    print("\n".join(lines))
    print(f"{args.out}: {', '.join(pictures)}, trust.json")


@contextmanager
def progress_bar(what: str) -> Iterator["Progress"]:
    """A bar while something long is computed, where somebody watches."""
    from tqdm import tqdm

    with tqdm(desc=what, leave=False, disable=None) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress


def most_important(changes: "Tensor") -> list[dict]:
    """The heads without which the probability changes most, in either direction."""
    _, heads = changes.shape
    order = changes.abs().flatten().argsort(descending=True)[:MOST].tolist()
    places = [divmod(place, heads) for place in order]
    return [{"layer": l, "head": h, "change": float(changes[l, h])} for l, h in places]


# In words


def trust_lines(about: dict) -> list[str]:
    label, removed = about["label"], about["remove"]
    how = "their tokens dropped" if removed == "tokens" else f"painted {removed}"
    lines = [f"{label['label']}: {label['probability']:.2%}. Patches removed: {how}.", ""]
    lines.append(f"  {'method':17} {'score':>6}   chance")
    for name, of in about["methods"].items():
        lines.append(f"  {name:17} {of['score']:+.3f}   \u00b1{of['band']:.3f}   {of['sentence']}")
    return lines


def random_lines(checks: "dict[str, RandomWeights]") -> list[str]:
    lines = ["", "Random weights:"]
    for name, check in checks.items():
        lines.append(f"  {name:17} {'passes' if check.passed else 'fails':6}   {check.sentence}")
    return lines


def without_lines(off: dict, answer: "KnockOut") -> list[str]:
    gone = [f"head {layer}.{head}" for layer, head in off["heads"]]
    gone += [f"the attention of layer {layer}" for layer in off["layers"]]
    lines = ["", f"Without {', '.join(gone)}:", f"  {'before':36}  now"]
    for was, now in zip(answer.before, answer.after, strict=True):
        before = f"{was.before:7.2%}  {shortened(was.label)}"
        lines.append(f"  {before:36} {now.after:7.2%}  {shortened(now.label)}")
    return lines


def shortened(label: str, most: int = 26) -> str:
    return label if len(label) <= most else label[: most - 1] + "\u2026"


def head_lines(most: list[dict], explanation: "Explanation") -> list[str]:
    count = explanation.layers * explanation.heads
    lines = [
        "",
        f"The heads that matter most, of {count}; the probability without them changes by:",
    ]
    for of in most:
        flag = f"--without-head {of['layer']}.{of['head']}"
        lines.append(f"  {100 * of['change']:+7.2f} points   {flag}")
    return lines
