"""A run: everything that changes while a model is trained, and the files it leaves behind.

After every epoch the folder holds all that is needed to go on: a run that was killed at any moment
ends with the weights it would have had.
"""

import csv
import hashlib
import io
import pickle
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from vit_demo.checkpoints import save_checkpoint
from vit_demo.distributed import ProcessGroup
from vit_demo.files import atomic_write
from vit_demo.model import VisionTransformer
from vit_demo.training.config import TrainConfig, deciding, flag
from vit_demo.training.data import Dataset
from vit_demo.training.teacher import Student, Teacher
from vit_demo.view import Preprocess

SEAL = b"\nsha256 "  # before the checksum at the end of last.pt


@dataclass
class Run:
    """Everything that changes while a model is trained, and what it is trained with."""

    config: TrainConfig  # complete
    group: ProcessGroup
    train_set: Dataset
    test_set: Dataset
    preprocess: Preprocess
    model: VisionTransformer
    average: VisionTransformer  # the EMA of the weights; this is what is tested and saved
    optimizers: list[torch.optim.Optimizer]
    teacher: Teacher | None = None
    student: Student | None = None  # the model and what it learns its teacher's tokens with
    history: list[dict] = field(default_factory=list)  # one row of metrics.csv for each epoch
    best: float = -1.0  # highest test accuracy so far
    snapshots: list[dict] = field(default_factory=list)  # what is known of each moment kept so far
    drawn: float = field(default_factory=time.monotonic)  # when the curves were drawn

    @property
    def steps(self) -> int:
        """Steps in one epoch. The pictures left over come in another epoch: the order changes."""
        return len(self.train_set) // self.config.batch_size


def save(run: Run) -> None:
    """After an epoch: checkpoints, metrics, curves, and last of all what --resume starts from.

    best.safetensors is chosen by its accuracy on the test pictures, which flatters that number a
    little; last.safetensors is not chosen by anything.
    """
    out, score = run.config.out, run.history[-1].get("test_accuracy")
    if score is not None:
        about = (run.average, run.train_set.class_names, run.preprocess)
        save_checkpoint(out / "last.safetensors", *about)
        if score > run.best:
            save_checkpoint(out / "best.safetensors", *about)
            run.best = score
    with atomic_write(out / "metrics.csv") as part, open(part, "w", newline="") as file:
        names = ("epoch", "lr", "train_loss", "train_accuracy", "test_loss", "test_accuracy",
                 "images_per_second", "seconds")  # fmt: skip
        table = csv.DictWriter(file, names)
        table.writeheader()
        table.writerows(run.history)
    now, last = time.monotonic(), len(run.history) == run.config.epochs
    if last or now - run.drawn > 10:  # with short epochs drawing would cost more than training
        draw_curves(out / "curves.png", run.history)
        run.drawn = now
    state = {
        "settings": deciding(run.config),
        "model": run.model.state_dict(),
        "average": run.average.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in run.optimizers],
        "history": run.history,
        "best": run.best,
        "snapshots": run.snapshots,
    }
    if run.student:
        state["to_teacher"] = run.student.to_teacher.state_dict()
    content = io.BytesIO()  # torch.save itself calls a full disk an internal error
    torch.save(state, content)
    content.write(SEAL + hashlib.sha256(content.getbuffer()).digest())
    with atomic_write(out / "last.pt") as part:
        part.write_bytes(content.getbuffer())


def read_state(path: Path) -> dict:
    """What a run goes on from. It ends with a checksum: most flipped bits would only be other numbers."""
    content, seal, digest = path.read_bytes().rpartition(SEAL)
    if not seal:  # written by an earlier version
        content = digest
    elif hashlib.sha256(content).digest() != digest:
        raise ValueError(f"{path} is damaged; remove it to start again.")
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
        raise ValueError(f"{path} is damaged; remove it to start again.") from error


def resume(run: Run, state: dict) -> None:
    """Go back to the end of the last epoch that was saved."""
    now, then = deciding(run.config), state["settings"]
    then = {name: getattr(TrainConfig, name, None) for name in now} | then  # an older run: defaults
    differ = [f"{flag(name)} {then[name]}" for name in now if now[name] != then[name]]
    if differ:
        raise ValueError(f"The run in {run.config.out} began with {', '.join(differ)}; "
                         "resume it with the same, or choose another --out.")  # fmt: skip
    run.model.load_state_dict(state["model"])
    run.average.load_state_dict(state["average"])
    if run.student:
        run.student.to_teacher.load_state_dict(state["to_teacher"])
    for optimizer, saved in zip(run.optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)
    run.history, run.best = state["history"], state["best"]
    run.snapshots = state.get("snapshots", [])


def line_of(row: dict, epochs: int) -> str:
    line = f"epoch {row['epoch']}/{epochs}: loss {row['train_loss']:.4f}, "
    line += f"training accuracy {row['train_accuracy']:.2%}"
    if "test_accuracy" in row:
        line += f", test loss {row['test_loss']:.4f}, test accuracy {row['test_accuracy']:.2%}"
    return line + f", {row['images_per_second']:.0f} images/s, {row['seconds']:.0f} s"


def draw_curves(path: Path, history: list[dict]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    names = {"train": "training (augmented)", "test": "test (averaged weights)"}
    for axes, what in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        for part, name in names.items():
            rows = [row for row in history if f"{part}_{what}" in row]
            values = [row[f"{part}_{what}"] for row in rows]
            axes.plot([row["epoch"] for row in rows], values, "o-", markersize=3, label=name)
        axes.set(xlabel="epoch", title=what)
        axes.grid(alpha=0.3)
        axes.legend()
    with atomic_write(path) as part:
        figure.savefig(part, dpi=120)
