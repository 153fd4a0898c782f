"""The weights at moments of a run, to look at later how a model came to what it can.

Most of what a model learns it learns early, so the moments are close together at the start. Each is a
checkpoint like any other (in half precision), and `snapshots.json` beside them says what each could do.
"""

import json
from dataclasses import replace
from itertools import pairwise

import torch

from vit_demo.checkpoints import save_checkpoint
from vit_demo.files import write_text
from vit_demo.training.config import SNAPSHOT_TABLE
from vit_demo.training.data import Dataset
from vit_demo.training.evaluation import measure
from vit_demo.training.run import Run

FOLDER = "snapshots"  # in the folder of the run
EARLY = 1 / 200  # of the steps: from there on the moments are about geometric
PICTURES = 1000  # test pictures that each moment is measured on


def moments(count: int, steps: int) -> list[int]:
    """After how many of the steps to keep the weights: before the first, after the last, and between
    them at distances that grow by the same factor."""
    if count == 0:
        return []
    if count > steps + 1:
        raise ValueError(
            f"--snapshots is {count}, but there are only {steps} steps; use up to {steps + 1}."
        )
    chosen = [0]
    for k in range(1, count):
        wanted = round(EARLY * steps * ((1 + 1 / EARLY) ** (k / (count - 1)) - 1))
        latest = steps - (count - 1 - k)  # each of those to come needs a step of its own
        chosen.append(min(max(wanted, chosen[-1] + 1), latest))
    return chosen


def take_snapshot(run: Run, step: int, epoch_loss: float = 0.0) -> None:
    """Keep the averaged weights after this step, and what they can do. All processes measure, one
    writes. `epoch_loss`: the sum of the losses of this epoch's steps so far.

    The table holds for each moment the mean training loss of the steps since the moment before.
    """
    losses = epoch_loss + run.steps * sum(row["train_loss"] for row in run.history)
    for earlier, later in pairwise(run.snapshots):
        losses -= later["train_loss"] * (later["step"] - earlier["step"])
    pictures = spread_out(run.test_set, PICTURES)
    result = measure(run.average, pictures, run.preprocess, run.group)
    name = f"step-{step:06}.safetensors"
    run.snapshots.append(
        {
            "file": name,
            "step": step,
            "epoch": step / run.steps,
            "train_loss": losses / (step - run.snapshots[-1]["step"]) if step else None,
            "test_loss": result["loss"],
            "accuracy": result["top1"],
            "confusion": result["confusion"].tolist(),  # row: true label, column: answer
        }
    )
    if run.group.rank == 0:
        folder = run.config.out / FOLDER
        names = run.train_set.class_names
        save_checkpoint(folder / name, run.average, names, run.preprocess, half=True)
        table = {
            "dataset": run.train_set.name,
            "labels": names,
            "steps": run.steps * run.config.epochs,
            "epochs": run.config.epochs,
            "batch_size": run.config.batch_size,
            "test_pictures": len(pictures),
            "moments": run.snapshots,
        }
        write_text(folder / SNAPSHOT_TABLE, json.dumps(table))


def spread_out(dataset: Dataset, most: int) -> Dataset:
    """So many pictures of a set at equal distances: a folder is sorted by class, and its first
    pictures would be of a few classes only."""
    if len(dataset) <= most:
        return dataset
    chosen = torch.arange(most) * len(dataset) // most
    files = [dataset.files[i] for i in chosen.tolist()] if dataset.files else []
    images = None if dataset.images is None else dataset.images[chosen]
    return replace(dataset, labels=dataset.labels[chosen], images=images, files=files)
