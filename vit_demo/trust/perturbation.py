"""The perturbation test of the papers, over a folder of pictures (Chefer et al., CVPR 2021).

A map is stretched to the pixels (bilinear, patch centres where they belong: `align_corners=False`);
the pixels it marks most (positive) or least (negative) become black before normalisation, 0, 10, ...
90 % of them; the score is the area under the top-1 accuracy, times 100. Positive: lower is better.
Negative: higher is better. The map is that of the predicted class; right is the true class of the
picture, or, where it is not known, what the model said at first. The whole picture is squeezed into
the square that the model takes (`--fit stretch`), not cropped.

All of this is as in the authors' code, which is ViT-B/16 on the 50,000 ImageNet validation pictures.
What differs, for those who compare numbers:

- Their "ours" (17.03 and 54.16) is the CVPR form of relevance, with layer-wise relevance propagation,
  from the second layer on. `relevance` here is their later, simpler form (ICCV 2021), from the first.
- Their rollout leaves out the first layer, too; `rollout` here takes all layers, as Abnar and Zuidema.
- They resize bilinearly; here, as the model's own preprocessing says (bicubic for most).
- Pixels that a map marks alike go in random order; theirs go in the order in which topk finds them.

Every finished picture is one line in the folder of results, so a run that was stopped goes on where
it was. Under torchrun the pictures are shared out; every picture is computed as it would be alone, so
the result is the same.
"""

import csv
import io
import json
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from vit_demo.checkpoints.timm_models import imagenet_synsets
from vit_demo.distributed import ProcessGroup
from vit_demo.explain import Classifier, Explanation
from vit_demo.files import append_line, atomic_write, locked, make_folder, write_text
from vit_demo.image import SUFFIXES, ImageError
from vit_demo.trust import charts
from vit_demo.trust.methods import METHODS, check_method
from vit_demo.trust.removal import fill_of, order_of
from vit_demo.validate import cell, printable, whole

SHARES = tuple(step / 10 for step in range(10))  # of the pixels removed: 0, 0.1 .. 0.9
DIRECTIONS = ("positive", "negative")
BASELINE = "relevance"  # the method that every other one is compared with


@dataclass(frozen=True)
class Result:
    """What the test found. Areas are the published numbers: positive low, negative high is good."""

    pictures: int
    areas: dict[str, dict[str, float]]  # method -> direction -> area x 100
    differences: dict[str, dict[str, tuple[float, float]]]  # see `paired_differences`
    errors: dict[str, str]  # pictures that could not be read, and why


def perturbation_test(
    classifier: Classifier,
    images: Path,
    out: Path,
    *,
    methods: Sequence[str] = tuple(METHODS),
    labels_from_name: bool = False,
    fit: str = "stretch",
    limit: int | None = None,
    resume: bool = False,
    batch_size: int = 18,
    group: ProcessGroup | None = None,
) -> Result | None:
    """Test methods over a folder of pictures, and write down what was found.

    In a process group (torchrun) each process takes its part; only rank 0 returns the result.
    """
    group = group or ProcessGroup(0, 1, classifier.device)
    if not methods:
        raise ValueError(f"No method is named; choose from {', '.join(METHODS)}.")
    for name in methods:
        check_method(name)
    whole("batch_size", batch_size, least=1)
    classifier.require_labels()
    pictures = pictures_in(images, limit)
    truths = synset_classes(pictures, classifier) if labels_from_name else {}
    settings = {
        "model": classifier.name,
        "methods": list(methods),
        "labels_from_name": labels_from_name,
        "fit": fit,
    }
    with ExitStack() as until_done:

        def start() -> dict[str, dict]:
            until_done.enter_context(locked(make_folder(out)))
            return begin(out, settings, resume)

        records = group.first(start)
        todo = [path for path in pictures if "error" in records.get(path.name, {"error": ""})]
        quiet = True if group.rank else None  # None: no bar where nobody watches
        mine = tqdm(todo[group.rank :: group.world], disable=quiet, unit="picture", leave=False)
        for path in mine:
            truth = truths.get(path.name)
            record = test_picture(classifier, path, truth, methods, batch_size, fit)
            append_line(out / f"rows-{group.rank}.jsonl", json.dumps(record))
        group.wait()
        if group.rank:
            return None
        records = read_records(out)
        return finish(out, [records[path.name] for path in pictures], methods)


# The pictures


def pictures_in(folder: Path, limit: int | None) -> list[Path]:
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}; give the folder with the pictures.")
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; use 1 or more.")
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not found:
        raise ValueError(f"{folder} holds no pictures; give a folder with JPEG or PNG files.")
    return found[:limit]


def synset_classes(pictures: list[Path], classifier: Classifier) -> dict[str, int]:
    """The true class of each picture, from the synset its name begins with."""
    classes = imagenet_synsets(classifier.config.num_classes)
    if not classes:
        raise ValueError("--labels-from-name is for models with ImageNet's labels; leave it out.")
    truths = {}
    for path in pictures:
        synset = re.match(r"n\d{8}", path.name)
        if not synset or synset[0] not in classes:
            raise ValueError(
                f"{path.name} does not begin with a synset of the model, such as n02123045; "
                "rename it or leave --labels-from-name out."
            )
        truths[path.name] = classes[synset[0]]
    return truths


# One picture


def test_picture(
    classifier: Classifier,
    path: Path,
    truth: int | None,
    methods: Sequence[str],
    batch: int,
    fit: str = "stretch",
) -> dict:
    """What is written down of one picture: right (1) or wrong (0) at each share, for each method."""
    try:
        explanation = classifier.explain(path, fit)
    except ImageError as error:
        return {"picture": path.name, "error": str(error)}
    predicted = explanation.label_index()
    truth = predicted if truth is None else truth
    maps = {name: METHODS[name](explanation, predicted) for name in methods}
    right = perturb(explanation, maps, truth, batch)
    return {"picture": path.name, "truth": truth, "predicted": predicted, "right": right}


def perturb(
    explanation: Explanation, maps: dict[str, Tensor], truth: int, batch: int = 18
) -> dict[str, dict[str, list[int]]]:
    """method -> direction -> whether the answer is right with each share of pixels black."""
    right = {}
    for name, heat in maps.items():
        answers = perturbed_logits(explanation, heat, batch).argmax(dim=-1) == truth
        right[name] = dict(zip(DIRECTIONS, answers.int().tolist(), strict=True))
    return right


@torch.inference_mode()
def perturbed_logits(explanation: Explanation, heat: Tensor, batch: int = 18) -> Tensor:
    """(directions, shares, classes) on the CPU: the answers with the pixels black that the map marks
    most, and with those that it marks least."""
    model, pixels = explanation.classifier.model, explanation.pixels
    black = fill_of(explanation, "black")
    size = pixels.shape[-2:]
    n = size[0] * size[1]
    stretched = F.interpolate(heat[None, None], size=size, mode="bilinear")[0, 0]
    order = order_of(stretched).to(pixels.device)
    rank = torch.empty_like(order).scatter(0, order, torch.arange(n, device=order.device))
    gone = [rank < int(n * share) for share in SHARES[1:]]  # the most marked
    gone += [rank >= n - int(n * share) for share in SHARES[1:]]  # the least marked
    masks = torch.stack(gone).unflatten(1, size)[:, None]
    answers = [model(torch.where(mask, black, pixels)).float().cpu() for mask in masks.split(batch)]
    untouched = explanation.logits.float().cpu().expand(len(DIRECTIONS), 1, -1)
    return torch.cat([untouched, torch.cat(answers).unflatten(0, (len(DIRECTIONS), -1))], dim=1)


# What was done so far


def begin(out: Path, settings: dict, resume: bool) -> dict[str, dict]:
    """The finished records in the folder; an error if they are not from the same test. The settings
    are written down."""
    known, records = out / "settings.json", read_records(out)
    if not resume and (records or known.exists()):
        raise ValueError(f"{out} holds a run; add --resume to go on, or choose another --out.")
    if known.exists():
        try:
            old = dict(json.loads(known.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{known} is damaged; remove it, or choose another --out.") from error
        other = [name for name in settings if old.get(name) != settings[name]]
        if other:
            raise ValueError(
                f"The run in {out} has another {other[0].replace('_', ' ')} "
                f"({old.get(other[0])}); use the same one, or choose another --out."
            )
    write_text(known, json.dumps(settings, indent=2) + "\n")
    return records


def read_records(out: Path) -> dict[str, dict]:
    """Every picture's record, of all processes; a success counts more than an earlier error."""
    records = {}
    for path in sorted(out.glob("rows-*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                record = json.loads(line)
                if "error" not in record or record["picture"] not in records:
                    records[record["picture"]] = record
            except (ValueError, TypeError, KeyError):
                continue  # cut short by a crash: the picture is done again
    return records


# The results


def area(right: list) -> float:
    """The published number: the area under the accuracy from 0 to 0.9, times 100."""
    return float(np.trapezoid(right, SHARES)) * 100


def summarise(records: list[dict], methods: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """method -> direction -> accuracy at each share, over all pictures."""
    return {
        name: {
            way: np.mean([record["right"][name][way] for record in records], axis=0).tolist()
            for way in DIRECTIONS
        }
        for name in methods
    }


def paired_differences(
    records: list[dict], methods: Sequence[str]
) -> dict[str, dict[str, tuple[float, float]]]:
    """method -> direction -> how far its area lies above that of relevance, picture by picture: the
    mean and its standard error. Pictures differ much more than methods do, so pairs tell more than
    the two areas alone. Empty without relevance, or with fewer than two pictures."""
    if BASELINE not in methods or len(records) < 2:
        return {}
    differences = {}
    for name in methods:
        differences[name] = {}
        for way in DIRECTIONS:
            pairs = [(of["right"][name][way], of["right"][BASELINE][way]) for of in records]
            each = np.array([area(its) - area(baseline) for its, baseline in pairs])
            error = each.std(ddof=1) / len(each) ** 0.5
            differences[name][way] = (float(each.mean()), float(error))
    return differences


def finish(out: Path, records: list[dict], methods: Sequence[str]) -> Result:
    """Write results.csv, summary.csv and perturbation.png."""
    errors = {record["picture"]: record["error"] for record in records if "error" in record}
    records = [record for record in records if "error" not in record]
    if not records:
        raise ValueError("None of the pictures could be read; give another folder.")
    results = [["picture", "truth", "predicted", "method", "direction", "area", *SHARES]]
    for record in records:
        for name in methods:
            for way in DIRECTIONS:
                right = record["right"][name][way]
                about = [
                    cell(printable(record["picture"]), "./"),
                    record["truth"],
                    record["predicted"],
                    name,
                    way,
                ]
                results.append([*about, f"{area(right):.2f}", *right])
    write_text(out / "results.csv", as_csv(results))
    accuracies = summarise(records, methods)
    areas = {name: {way: area(a) for way, a in ways.items()} for name, ways in accuracies.items()}
    differences = paired_differences(records, methods)
    table = [["method", *DIRECTIONS, "pictures"]]
    for way in DIRECTIONS if differences else ():
        table[0] += [f"{way} minus {BASELINE}", f"{way} standard error"]
    for name, of in areas.items():
        pairs = [number for pair in differences.get(name, {}).values() for number in pair]
        numbers = [f"{of[way]:.2f}" for way in DIRECTIONS], [f"{number:.2f}" for number in pairs]
        table.append([name, *numbers[0], len(records), *numbers[1]])
    write_text(out / "summary.csv", as_csv(table))
    with atomic_write(out / "perturbation.png") as part:
        charts.perturbation(accuracies, areas, SHARES, len(records)).save(part, "PNG")
    return Result(len(records), areas, differences, errors)


def as_csv(lines: list[list]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
