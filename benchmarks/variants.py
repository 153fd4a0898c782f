"""Is there a better class map than contribution? Variants, chosen on one half of the pictures, reported on
the other.

    python -m benchmarks.variants --images ../shared/images/imagenet [--model M] [--limit N]

The test is the papers' (`vit-demo faithfulness`): the pixels that a map marks become black, most marked
first (positive, lower is better) or last (negative, higher is better), and the area under the top-1
accuracy counts; beside it the area under the probability of the predicted class, which moves in smaller
steps. The first, third, ... picture by name chooses the variant whose areas lie furthest apart, the second,
fourth, ... reports. A choice made on the pictures that report it would flatter itself.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

import vit_demo
from vit_demo.class_maps import gradients_of, linear_pass, slope_of_log_p
from vit_demo.explain import Explanation
from vit_demo.trust.perturbation import SHARES, area, pictures_in, synset_classes
from vit_demo.trust.randomisation import ranks
from vit_demo.trust.removal import fill_of, order_of


def variants(explanation: Explanation, label: int) -> dict[str, Tensor]:
    """Every candidate's map (rows, cols)."""
    second = explanation.top(2)[1].index
    with torch.inference_mode(False), torch.enable_grad():
        logits, inputs = linear_pass(explanation.classifier.model, explanation.pixels.clone())
        one = F.one_hot(torch.tensor([label]), logits.shape[1]).to(logits)
        other = F.one_hot(torch.tensor([second]), logits.shape[1]).to(logits)
        slopes = [slope_of_log_p(logits.detach(), torch.tensor([label])), one, one - other]
        with torch.no_grad():
            shares = [  # of each target: (blocks, N)
                torch.stack([(x * dx).sum(dim=-1)[0] for x, dx in zip(inputs, found, strict=True)])
                for found in gradients_of(logits, inputs, slopes)
            ]
    log_p, logit, margin = shares
    half = len(log_p) // 2
    vectors = {
        "contribution": log_p.sum(dim=0),
        "of the logit": logit.sum(dim=0),
        "of the margin to the second label": margin.sum(dim=0),
        "without the first block": log_p[1:].sum(dim=0),
        "first half of the blocks": log_p[:half].sum(dim=0),
        "second half of the blocks": log_p[half:].sum(dim=0),
        "what is above zero in each block": log_p.clamp_min(0).sum(dim=0),
    }
    maps = {name: explanation.as_map(vector.float().cpu()) for name, vector in vectors.items()}
    relevance = explanation.relevance(label)
    maps["rank sum with relevance"] = (
        (ranks(maps["contribution"]) + ranks(relevance)).reshape(explanation.grid).float()
    )
    return {"relevance": relevance} | maps


@torch.inference_mode()
def areas(explanation: Explanation, heat: Tensor, truth: int, label: int) -> dict[str, float]:
    """Of one map of one picture: accuracy and probability, both ways."""
    model, pixels = explanation.classifier.model, explanation.pixels
    size = pixels.shape[-2:]
    n, black = size[0] * size[1], fill_of(explanation, "black")
    order = order_of(F.interpolate(heat[None, None], size=size, mode="bilinear")[0, 0])
    rank = torch.empty_like(order).scatter(0, order, torch.arange(n)).to(pixels.device)
    gone = [rank < int(n * share) for share in SHARES]
    gone += [rank >= n - int(n * share) for share in SHARES]
    logits = model(torch.where(torch.stack(gone).unflatten(1, size)[:, None], black, pixels))
    right = (logits.argmax(dim=-1) == truth).double().tolist()
    likely = logits.double().softmax(dim=-1)[:, label].tolist()
    found, half = {}, len(SHARES)
    for name, curve in (("accuracy", right), ("probability", likely)):
        found[f"{name}, positive"] = area(curve[:half])
        found[f"{name}, negative"] = area(curve[half:])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=Path, required=True, help="names begin with synsets")
    parser.add_argument("--model", default="deit_tiny_patch16_224.fb_in1k")
    parser.add_argument("--limit", type=int)
    args = parser.parse_args()
    classifier = vit_demo.load(args.model)
    pictures = pictures_in(args.images, args.limit)
    truths = synset_classes(pictures, classifier)
    rows = []  # one a picture: variant -> areas
    for path in tqdm(pictures, unit="picture", disable=None):
        explanation = classifier.explain(path, "stretch")
        label, truth = explanation.label_index(), truths[path.name]
        maps = variants(explanation, label)
        rows.append({name: areas(explanation, heat, truth, label) for name, heat in maps.items()})
    choosing, reporting = rows[::2], rows[1::2]
    best = max(rows[0], key=lambda name: apart(choosing, name))
    for half, name in ((choosing, "chooses"), (reporting, "reports"), (rows, "all")):
        print(f"\n{name}: {len(half)} pictures; in brackets minus relevance, with standard error")
        print_table(half)
    print(f"\nchosen on the first half: {best}")


def apart(rows: list[dict], name: str) -> float:
    """How far the areas of a variant lie apart, accuracy first; probability decides between equals."""
    mean = {key: np.mean([row[name][key] for row in rows]) for key in rows[0][name]}
    accuracy = mean["accuracy, negative"] - mean["accuracy, positive"]
    return accuracy + 1e-3 * (mean["probability, negative"] - mean["probability, positive"])


def print_table(rows: list[dict]) -> None:
    keys = list(rows[0]["relevance"])
    print(f"{'':36}" + "".join(f"{key:>26}" for key in keys))
    for name in rows[0]:
        line = f"{name:36}"
        for key in keys:
            each = np.array([row[name][key] for row in rows])
            pairs = each - [row["relevance"][key] for row in rows]
            error = pairs.std(ddof=1) / len(pairs) ** 0.5
            line += f"{each.mean():10.2f} ({pairs.mean():+6.2f} \u00b1{error:5.2f})"
        print(line)


if __name__ == "__main__":
    main()
