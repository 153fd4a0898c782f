"""How good is a model? Accuracy over a whole set, for each class, and what is taken for what."""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.checkpoints import Checkpoint
from vit_demo.distributed import ProcessGroup, choose_device
from vit_demo.files import atomic_write, make_folder
from vit_demo.model import VisionTransformer
from vit_demo.training.config import DATASETS
from vit_demo.training.data import DataError, Dataset, load_dataset, normalise
from vit_demo.view import Preprocess

TOP_5_FROM = 11  # classes: with ten, half of all answers are among the top five


@torch.inference_mode()
def measure(
    model: VisionTransformer,
    dataset: Dataset,
    preprocess: Preprocess,
    group: ProcessGroup,
    batch_size: int = 250,
    label_of: Tensor | None = None,
) -> dict:
    """Loss, top-1, top-5 and confusion (class of the set, answer) over a whole set, in equal shares.

    `label_of` gives the model's label for each class of the set, where they are not the same.
    """
    model.eval()
    K, C = len(dataset.class_names), model.config.num_classes
    label_of = torch.arange(K) if label_of is None else label_of
    confusion, sums = torch.zeros(K * C), torch.zeros(2)  # loss, right within five
    for indices in torch.arange(group.rank, len(dataset), group.world).split(batch_size):
        images = normalise(dataset.batch(indices), preprocess).to(group.device)
        logits, true = model(images).float().cpu(), dataset.labels[indices]
        confusion += torch.bincount(true * C + logits.argmax(1), minlength=K * C)
        truth = label_of[true]
        five = (logits.topk(min(5, C)).indices == truth[:, None]).any(1).sum()
        sums += torch.stack([F.cross_entropy(logits, truth, reduction="sum"), five])
    confusion = group.sum(confusion).reshape(K, C).long()
    loss, five = group.sum(sums).tolist()
    right, M = confusion[torch.arange(K), label_of].sum().item(), len(dataset)
    return {"loss": loss / M, "top1": right / M, "top5": five / M, "confusion": confusion}


def evaluate(
    checkpoint: Checkpoint,
    dataset: str,
    data: str | None = None,
    *,
    every_picture: bool = False,
    out: Path | None = None,
    batch_size: int = 250,
    device: str = "auto",
    workers: int = 2,
) -> dict:
    """Accuracy of a model on a set (DATASETS, or a folder); `out`: where to draw the confusion matrix.

    `every_picture` of a folder counts, also those that training would not hold out.
    """
    if not checkpoint.labels:
        raise DataError(f"{checkpoint.name} has no labels; choose a model that classifies.")
    if batch_size < 1 or workers < 1:
        raise ValueError("--batch-size and --workers must be at least 1.")
    if out is not None:
        make_folder(out.parent)
    preprocess = checkpoint.preprocess
    part = "all" if every_picture and dataset not in DATASETS else "test"
    (pictures,) = load_dataset(
        dataset, data, preprocess.size, len(preprocess.mean),
        workers=workers, preprocess=preprocess, parts=(part,),
    )  # fmt: skip
    unknown = [c for c in pictures.class_names if c not in checkpoint.labels]
    if unknown:
        raise DataError(
            f"{checkpoint.name} has no label {unknown[0]!r}; name the class folders as its labels: "
            f"{', '.join(checkpoint.labels[:10])}{', ...' if len(checkpoint.labels) > 10 else '.'}"
        )
    label_of = torch.tensor([checkpoint.labels.index(c) for c in pictures.class_names])
    group = ProcessGroup(0, 1, choose_device(device))
    model = checkpoint.model.to(group.device)
    measured = measure(model, pictures, preprocess, group, batch_size, label_of)
    confusion = measured["confusion"]
    if out is not None:
        draw_confusion(out, confusion, pictures.class_names, checkpoint.labels)
    right = confusion[torch.arange(len(label_of)), label_of].double() / confusion.sum(1)
    return {
        "model": checkpoint.name,
        "dataset": pictures.name,
        "pictures": len(pictures),
        "loss": measured["loss"],
        "top1": measured["top1"],
        "top5": measured["top5"] if len(checkpoint.labels) >= TOP_5_FROM else None,
        "per_class": dict(zip(pictures.class_names, right.tolist(), strict=True)),
        "confusion": str(out) if out is not None else None,
    }


def draw_confusion(path: Path, confusion: Tensor, true: list[str], answers: list[str]) -> None:
    """True classes down, answers across, as shares of each true class; only answers that occur."""
    from matplotlib.figure import Figure

    occurs = [i for i, name in enumerate(answers) if confusion[:, i].any() or name in true]
    shares = (confusion / confusion.sum(1, keepdim=True))[:, occurs]
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    axes = figure.subplots()
    picture = axes.imshow(shares.numpy(), cmap="cividis", vmin=0, vmax=1)
    axes.set(xlabel="answer", ylabel="true class")
    if len(occurs) <= 40:
        axes.set_xticks(range(len(occurs)), [answers[i] for i in occurs], rotation=90)
        axes.set_yticks(range(len(true)), true)
    if len(occurs) <= 12:
        for row, column in np.ndindex(*shares.shape):
            count, share = int(confusion[row, occurs[column]]), shares[row, column]
            colour = "black" if share > 0.5 else "white"
            axes.text(column, row, count, ha="center", va="center", color=colour, fontsize=8)
    figure.colorbar(picture, label="share of the true class")
    with atomic_write(path) as part:
        figure.savefig(part, dpi=120, format="png", bbox_inches="tight")
