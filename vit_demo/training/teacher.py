"""A teacher: a trained model whose answers a student learns beside the true labels.

The teacher looks once at each of a few views of every training picture (moved, flipped, relit: the
views are given by the seed). Its answers are kept in a file beside the run, and the student is shown
those same views: a patient and consistent teacher (Beyer et al. 2022).
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm import tqdm

from vit_demo.checkpoints import Checkpoint
from vit_demo.distributed import ProcessGroup, in_precision
from vit_demo.files import atomic_write, make_folder
from vit_demo.labels import names_of
from vit_demo.training.augment import DRAWS, WARPS, generator, warp
from vit_demo.training.config import TrainConfig
from vit_demo.training.data import DataError, Dataset, normalise
from vit_demo.view import Preprocess

VIEW = 1_000_003  # part of the seed of a view: views share no seed with the steps of an epoch
AT_ONCE = 50  # pictures


class Teacher:
    """What the teacher says to every view of every training picture."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        config: TrainConfig,
        pictures: Dataset,
        preprocess: Preprocess,
        group: ProcessGroup,
    ):
        self.checkpoint, self.config, self.group = checkpoint, config, group
        self.pictures, self.preprocess = pictures, preprocess
        self.columns = columns_of(pictures.class_names, checkpoint)
        self.view: int | None = None  # whose draws and answers are at hand
        self.draws: Tensor | None = None  # (M, DRAWS)
        self.answers: Tensor | None = None  # (M, classes), shares of 1

    def open_view(self, epoch: int) -> None:
        """Have the view of this epoch at hand: from its file, or by asking the teacher."""
        view = epoch % self.config.views
        if view == self.view:
            return
        self.view, self.draws = view, draws_of(view, len(self.pictures), self.config.seed)
        path = Path(self.config.out) / f"teacher-view-{view}.safetensors"
        if self.group.broadcast(path.exists()):
            self.answers = self.group.broadcast(read_answers(path, self.group, self.pictures))
            return
        self.answers = self.ask()
        if self.group.rank == 0:
            make_folder(path.parent)
            with atomic_write(path) as part:
                save_file({"answers": self.answers}, part)
        self.group.wait()

    @torch.inference_mode()
    def ask(self) -> Tensor:
        """The answers to every picture of the view (M, classes); the processes share the work."""
        group, M = self.group, len(self.pictures)
        model = self.checkpoint.model.to(group.device).eval()
        answers = torch.zeros(M, len(self.columns))
        mine = torch.arange(group.rank, M, group.world).split(AT_ONCE)
        words = f"teacher, view {self.view + 1} of {self.config.views}"
        for indices in tqdm(mine, words, leave=False, disable=True if group.rank else None):
            images = normalise(self.pictures.batch(indices), self.preprocess)
            images = warp(images, WARPS[self.config.augment], self.draws[indices])
            images = self.as_teacher_sees(images).to(group.device)
            with in_precision(self.config.precision, group.device):
                logits = model(images)[:, self.columns]
            answers[indices] = logits.float().softmax(dim=1).cpu()
        return group.sum(answers).half()

    def as_teacher_sees(self, images: Tensor) -> Tensor:
        """The student's pictures (B, C, H, W) in the teacher's size, channels and normalisation."""
        own, side = self.checkpoint.preprocess, self.config.teacher_size
        size = (side, side) if side else own.size
        images = images * as_channels(self.preprocess.std) + as_channels(self.preprocess.mean)
        if len(own.mean) != images.shape[1]:
            images = images.mean(dim=1, keepdim=True).expand(-1, len(own.mean), -1, -1)
        images = F.interpolate(images, size=size, mode="bicubic").clamp(0, 1)
        return (images - as_channels(own.mean)) / as_channels(own.std)


def as_channels(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values)[:, None, None]


def draws_of(view: int, pictures: int, seed: int) -> Tensor:
    """The random numbers (M, DRAWS) that make a view of each picture."""
    return torch.rand(pictures, DRAWS, generator=generator(seed, VIEW, view))


def read_answers(path: Path, group: ProcessGroup, pictures: Dataset) -> Tensor | None:
    """The answers in a file; only rank 0 reads, perhaps only its machine has the file."""
    if group.rank:
        return None
    try:
        answers = load_file(path)["answers"]
        fine = answers.shape == (len(pictures), len(pictures.class_names))
    except Exception as error:  # safetensors and the system have many kinds
        raise DataError(f"{path} is damaged; remove it, and the teacher is asked again.") from error
    if not fine:
        raise DataError(f"{path} belongs to other pictures; remove it, or choose another --out.")
    return answers


def columns_of(class_names: list[str], teacher: Checkpoint) -> Tensor:
    """The teacher's class for each class of the set: the same text, or one of its names."""
    columns = []
    for name in class_names:
        same = [i for i, label in enumerate(teacher.labels) if label == name]
        same = same or [i for i, label in enumerate(teacher.labels) if name in names_of(label)]
        if len(same) != 1:
            found = "several labels" if same else "no label"
            raise DataError(
                f"The teacher {teacher.name} has {found} called {name!r}; name the class folders as "
                "its labels, or choose a teacher that knows them."
            )
        columns += same
    return torch.tensor(columns)
