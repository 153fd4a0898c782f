"""Is there a better class map than contribution? Variants, chosen on one half of the pictures, reported on
the other.

    python -m benchmarks.variants FOLDER [--model M] [--limit N]

The test is the papers' (`vit-demo faithfulness`): the pixels that a map marks become black, most marked
first (positive, lower is better) or last (negative, higher is better), and the area under the top-1
accuracy counts; beside it the area under the probability of the predicted class, which moves in smaller
steps. Of a folder of labelled folders, or of pictures whose names begin with ImageNet's synsets, the true
class counts; else what the model said at first. Every second picture helps to choose the variant whose
areas lie furthest apart, the others report: a choice on the pictures that report it would flatter itself.
"""

import argparse
import re
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

import vit_demo
from vit_demo.class_maps import gradients_of, linear_pass, slope_of_log_p
from vit_demo.explain import Explanation
from vit_demo.folders.pictures import Pictures, classes_by_name, find_pictures, true_class
from vit_demo.trust.perturbation import BASELINE, DIRECTIONS, area, perturbed_logits
from vit_demo.trust.randomisation import ranks


def variants(explanation: Explanation, label: int) -> dict[str, Tensor]:
    """Every candidate's map (rows, cols), and the baseline's."""
    own, second = (torch.tensor([index]) for index in (label, explanation.top(2)[1].index))
    with torch.inference_mode(False), torch.enable_grad():
        logits, inputs = linear_pass(explanation.classifier.model, explanation.pixels.clone())
        one, other = (F.one_hot(index, logits.shape[1]) for index in (own, second))
        slopes = [slope_of_log_p(logits.detach(), own), one, one - other]
        with torch.no_grad():
            log_p, logit, margin = (  # each (blocks, N)
                torch.stack([(x * dx).sum(dim=-1)[0] for x, dx in zip(inputs, found, strict=True)])
                for found in gradients_of(logits, inputs, slopes)
            )
    half = len(log_p) // 2
    vectors = {
        "contribution": log_p.sum(dim=0),
        "of the logit": logit.sum(dim=0),
        "of the margin to the second": margin.sum(dim=0),
        "without the first block": log_p[1:].sum(dim=0),
        "first half of the blocks": log_p[:half].sum(dim=0),
        "second half of the blocks": log_p[half:].sum(dim=0),
        "above zero in each block": log_p.clamp_min(0).sum(dim=0),
    }
    maps = {name: explanation.as_map(vector.float().cpu()) for name, vector in vectors.items()}
    relevance = explanation.relevance(label)
    both = ranks(maps["contribution"]) + ranks(relevance)
    return {
        BASELINE: relevance,
        **maps,
        "rank sum with relevance": both.float().reshape(explanation.grid),
    }


def areas(explanation: Explanation, heat: Tensor, truth: int, label: int) -> dict[str, float]:
    """Of one map of one picture: accuracy and probability, both ways."""
    logits = perturbed_logits(explanation, heat)
    curves = {
        "accuracy": (logits.argmax(dim=-1) == truth).double(),
        "probability": logits.double().softmax(dim=-1)[..., label],
    }
    return {
        f"{name}, {way}": area(curve.tolist())
        for name, both in curves.items()
        for way, curve in zip(DIRECTIONS, both, strict=True)
    }


def true_classes(pictures: Pictures, labels: list[str]) -> list[int | None]:
    """By folder, or by the synset that a name begins with."""
    classes = classes_by_name(labels)
    found = []
    for number, name in enumerate(pictures.names):
        synset = re.match(r"n\d{8}", Path(name).name)
        by_name = classes.get(synset[0]) if synset else None
        found.append(true_class(pictures, number, classes) if by_name is None else by_name)
    return found


def apart(rows: list[dict], name: str) -> float:
    """How far the areas of a variant lie apart: accuracy, and between equals probability."""
    mean = {key: np.mean([row[name][key] for row in rows]) for key in rows[0][name]}
    gap = {
        key: mean[f"{key}, negative"] - mean[f"{key}, positive"]
        for key in ("accuracy", "probability")
    }
    return gap["accuracy"] + 1e-3 * gap["probability"]


def print_table(title: str, rows: list[dict]) -> None:
    keys = list(rows[0][BASELINE])
    print(f"\n{title}: {len(rows)} pictures; in brackets minus {BASELINE}, with standard error")
    print(f"{'':28}" + "".join(f"{key:>26}" for key in keys))
    for name in rows[0]:
        line = f"{name:28}"
        for key in keys:
            each = np.array([row[name][key] for row in rows])
            pairs = each - [row[BASELINE][key] for row in rows]
            error = pairs.std(ddof=1) / len(pairs) ** 0.5 if len(pairs) > 1 else float("nan")
            line += f"{each.mean():10.2f} ({pairs.mean():+6.2f} \u00b1{error:5.2f})"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "folder", type=Path, help="pictures, or folders of pictures named after labels"
    )
    parser.add_argument("--model", default="deit_tiny_patch16_224.fb_in1k")
    parser.add_argument("--limit", type=int, help="so many pictures, spread evenly over the folder")
    args = parser.parse_args()
    classifier = vit_demo.load(args.model)
    pictures = find_pictures([args.folder], args.folder / "none")
    truths, count = true_classes(pictures, classifier.labels), len(pictures.names)
    taken = min(args.limit or count, count)
    rows = []  # one a picture: variant -> areas
    for number in tqdm([k * count // taken for k in range(taken)], unit="picture", disable=None):
        explanation = classifier.explain(pictures.path(number), "stretch")
        label = explanation.label_index()
        truth = label if truths[number] is None else truths[number]
        maps = variants(explanation, label)
        rows.append({name: areas(explanation, heat, truth, label) for name, heat in maps.items()})
    choosing, reporting = rows[::2], rows[1::2]
    for title, half in (("choose", choosing), ("report", reporting), ("all", rows)):
        print_table(title, half)
    best = max(rows[0], key=lambda name: apart(choosing, name))
    print(f"\nchosen on the first half: {best}")


if __name__ == "__main__":
    main()
