"""A model at moments of its training: what `vit-demo train ... --snapshots N` kept, asked about one
picture.

history = load_history("runs/mnist/snapshots")
for moment, explanation in zip(history.moments, history.explain("digit.png")):
    print(moment.step, moment.accuracy, explanation.top(1))
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vit_demo.checkpoints import CheckpointError, load_checkpoint
from vit_demo.embedded import snapshots
from vit_demo.explain import Classifier, Explanation
from vit_demo.training.config import SNAPSHOT_TABLE


@dataclass(frozen=True)
class Moment:
    """The model after so many steps, and what it could do then."""

    classifier: Classifier
    step: int
    epoch: float
    train_loss: float | None  # mean of the steps since the moment before; None: there were none
    test_loss: float
    accuracy: float
    confusion: list[list[int]]  # row: true label, column: answer


@dataclass(frozen=True)
class History:
    """The moments of one run, the first before its first step, the last after its last."""

    moments: list[Moment]
    dataset: str
    labels: list[str]
    steps: int
    epochs: int
    batch_size: int
    test_pictures: int  # that each moment was measured on

    def explain(self, source: Any, fit: str = "crop") -> list[Explanation]:
        """A picture at every moment: one forward pass each."""
        view = self.moments[0].classifier.view(source, fit)
        return [moment.classifier.explain_views([view])[0] for moment in self.moments]


def load_history(folder: str | Path | None = None, device: str = "auto") -> History:
    """The moments in a folder that training wrote; None: those of the embedded model of digits."""
    folder = snapshots() if folder is None else Path(folder)
    path = folder / SNAPSHOT_TABLE
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        moments = [read_moment(folder, device, **known) for known in about.pop("moments")]
        return History(moments, **about)
    except CheckpointError:
        raise
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{folder} has no {path.name}; give the folder snapshots of a run that was trained "
            "with --snapshots."
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged; train again with --snapshots.") from error


def read_moment(folder: Path, device: str, file: str, **known: Any) -> Moment:
    checkpoint = load_checkpoint(str(folder / Path(file).name))
    return Moment(Classifier(checkpoint, device), **known)
