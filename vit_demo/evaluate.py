"""How good is a model? Accuracy over a whole set, for each class, and what is taken for what."""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.checkpoints import load_checkpoint
from vit_demo.data import NAMED, DataError, Dataset, load_dataset, normalise
from vit_demo.explain import choose_device
from vit_demo.files import whole_file
from vit_demo.model import VisionTransformer
from vit_demo.team import Team
from vit_demo.view import Preprocess

TOP_5_FROM = 11  # classes: with ten, half of all answers are among the top five


def add_evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("dataset", nargs="?", help=f"{', '.join(NAMED)}, or a folder with one folder a class")
    add("--model", required=True, metavar="M", help="an embedded model, a timm name, or a file")
    add("--arch", help="timm architecture of a file that does not describe itself")
    add("--labels", metavar="FILE", help="text file with one label a line")
    add("--data", metavar="DIR", help="where the files of a named set are; or the folder itself")
    add("--all", action="store_true", help="every picture of a folder, not only the held-out ones")
    add("--out", type=Path, default=Path("confusion.png"), metavar="PNG",
        help="picture of the confusion matrix (confusion.png)")  # fmt: skip
    add("--batch-size", type=int, default=250, metavar="N")
    add("--device", default="auto", help="auto, cpu, cuda or mps")
    add("--workers", type=int, default=2, help="threads that read the pictures of folders (2)")
    add("--json", action="store_true", help="print JSON only")


@torch.inference_mode()
def measure(
    model: VisionTransformer,
    dataset: Dataset,
    preprocess: Preprocess,
    team: Team,
    batch_size: int = 250,
    label_of: Tensor | None = None,
) -> dict:
    """Loss, top-1, top-5 and confusion (true label, answer) over a whole set, in equal shares.

    `label_of` gives the model's label for each class of the set, where they are not the same.
    """
    model.eval()
    C = model.config.num_classes
    labels = dataset.labels if label_of is None else label_of[dataset.labels]
    confusion, sums = torch.zeros(C * C), torch.zeros(2)  # loss, right within five
    for indices in torch.arange(team.rank, len(dataset), team.world).split(batch_size):
        images = normalise(dataset.batch(indices), preprocess).to(team.device)
        logits, truth = model(images).float().cpu(), labels[indices]
        confusion += torch.bincount(truth * C + logits.argmax(1), minlength=C * C)
        five = (logits.topk(min(5, C)).indices == truth[:, None]).any(1).sum()
        sums += torch.stack([F.cross_entropy(logits, truth, reduction="sum"), five])
    confusion = team.sum(confusion).reshape(C, C).long()
    loss, five = team.sum(sums).tolist()
    right, M = confusion.diag().sum().item(), len(dataset)
    return {"loss": loss / M, "top1": right / M, "top5": five / M, "confusion": confusion}


def evaluate(args: argparse.Namespace) -> dict:
    """Accuracy of a model on a set; printed, returned, and the confusion matrix drawn."""
    checkpoint = load_checkpoint(args.model, args.arch, args.labels)
    name = args.dataset or args.data
    if name is None:
        raise DataError(f"Say on what: a folder with one folder a class, or {', '.join(NAMED)}.")
    if not checkpoint.labels:
        raise DataError(f"{checkpoint.name} has no labels; choose a model that classifies.")
    if args.batch_size < 1 or args.workers < 1:
        raise ValueError("--batch-size and --workers must be at least 1.")
    preprocess = checkpoint.preprocess
    part = "all" if args.all and name not in NAMED else "test"
    (dataset,) = load_dataset(
        name, args.data, preprocess.size, len(preprocess.mean),
        workers=args.workers, preprocess=preprocess, parts=(part,),
    )  # fmt: skip
    unknown = [c for c in dataset.class_names if c not in checkpoint.labels]
    if unknown:
        raise DataError(
            f"{checkpoint.name} has no label {unknown[0]!r}; name the class folders as its labels: "
            f"{', '.join(checkpoint.labels[:10])}{', ...' if len(checkpoint.labels) > 10 else '.'}"
        )
    label_of = torch.tensor([checkpoint.labels.index(c) for c in dataset.class_names])
    team = Team(0, 1, choose_device(args.device))
    measured = measure(checkpoint.model.to(team.device), dataset, preprocess, team,
                       args.batch_size, label_of)  # fmt: skip
    confusion = measured["confusion"][label_of]  # the rows of this set's classes
    draw_confusion(args.out, confusion, dataset.class_names, checkpoint.labels)
    right = confusion[torch.arange(len(label_of)), label_of].double() / confusion.sum(1)
    result = {
        "model": checkpoint.name,
        "dataset": dataset.name,
        "pictures": len(dataset),
        "loss": measured["loss"],
        "top1": measured["top1"],
        "top5": measured["top5"] if len(checkpoint.labels) >= TOP_5_FROM else None,
        "per_class": dict(zip(dataset.class_names, right.tolist(), strict=True)),
        "confusion": str(args.out),
    }
    if args.json:
        print(json.dumps(result))
        return result
    print(f"{result['model']} on {result['pictures']:,} pictures of {result['dataset']}")
    print(f"top-1 {result['top1']:.2%}")
    if result["top5"] is not None:
        print(f"top-5 {result['top5']:.2%}")
    width = max(len(name) for name in result["per_class"])
    for name, share in result["per_class"].items():
        print(f"  {name:<{width}}  {share:.2%}")
    print(f"confusion matrix: {args.out}")
    return result


def draw_confusion(path: Path, confusion: Tensor, rows: list[str], columns: list[str]) -> None:
    """True classes down, answers across, as shares of each true class; only answers that occur."""
    from matplotlib.figure import Figure

    occurs = [i for i, name in enumerate(columns) if confusion[:, i].any() or name in rows]
    shares = (confusion / confusion.sum(1, keepdim=True))[:, occurs]
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    axes = figure.subplots()
    picture = axes.imshow(shares.numpy(), cmap="cividis", vmin=0, vmax=1)
    axes.set(xlabel="answer", ylabel="true class")
    if len(occurs) <= 40:
        axes.set_xticks(range(len(occurs)), [columns[i] for i in occurs], rotation=90)
        axes.set_yticks(range(len(rows)), rows)
    if len(occurs) <= 12:
        for row, column in np.ndindex(*shares.shape):
            count, share = int(confusion[row, occurs[column]]), shares[row, column]
            colour = "black" if share > 0.5 else "white"
            axes.text(column, row, count, ha="center", va="center", color=colour, fontsize=8)
    figure.colorbar(picture, label="share of the true class")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part:
        figure.savefig(part, dpi=120, format="png", bbox_inches="tight")
