"""A teacher: a trained model whose answers a student learns beside the true labels.

The teacher looks once at each of a few views of every training picture (moved, flipped, relit: the
views are given by the seed). Its answers are kept in a file beside the run, and the student is shown
those same views: a patient and consistent teacher (Beyer et al. 2022). They are also shown mirrored,
where the set allows it: to that the teacher would answer nearly the same.

An answer is a hundred numbers. What the teacher made of each patch is far more, and it learnt it from
far more pictures: with --teacher-tokens the student's last tokens, through one linear map, are to be
the teacher's (Romero et al. 2015). Both must see the same grid of patches.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from tqdm import tqdm

from vit_demo.checkpoints import Checkpoint
from vit_demo.distributed import ProcessGroup, in_precision
from vit_demo.files import atomic_write, make_folder
from vit_demo.labels import names_of
from vit_demo.model import VisionTransformer, ViTConfig
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
        student: ViTConfig | None = None,
    ):
        self.checkpoint, self.config, self.group = checkpoint, config, group
        self.pictures, self.preprocess = pictures, preprocess
        self.columns = columns_of(pictures.class_names, checkpoint)
        self.view: int | None = None  # whose draws and answers are at hand
        self.draws: Tensor | None = None  # (M, DRAWS)
        self.answers: Tensor | None = None  # (M, classes), shares of 1
        self.tokens: np.ndarray | None = None  # (M, 1 + patches, D) in half precision, in a file
        self.student = student
        if config.teacher_tokens:
            check_tokens(checkpoint.model.config, student, self.size)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the pictures that the teacher gets."""
        side = self.config.teacher_size
        return (side, side) if side else self.checkpoint.preprocess.size

    def open_view(self, epoch: int) -> None:
        """Have the view of this epoch at hand: from its file, or by asking the teacher."""
        view = epoch % self.config.views
        if view == self.view:
            return
        self.view, self.draws = view, draws_of(view, len(self.pictures), self.config.seed)
        path = Path(self.config.out) / f"teacher-view-{view}.safetensors"
        tokens = (
            path.with_name(f"teacher-tokens-{view}.npy") if self.config.teacher_tokens else None
        )
        if self.group.broadcast(path.exists() and (tokens is None or tokens.exists())):
            self.answers = self.group.first(lambda: read_answers(path, self.pictures))
        else:
            self.group.first(lambda: make_folder(path.parent))
            with self.tokens_file(tokens) as file:
                self.answers = self.ask(file)
            if self.group.rank == 0:
                with atomic_write(path) as part:
                    save_file({"answers": self.answers}, part)
            self.group.wait()
        if tokens is not None:
            self.tokens = read_tokens(tokens, self.pictures)

    @contextmanager
    def tokens_file(self, path: Path | None) -> Iterator[np.ndarray | None]:
        """A file for the tokens of a view, of which each process fills its part."""
        if path is None:
            yield None
            return
        part = path.with_name(f"tmp-{path.stem}.part.npy")
        width, patches = self.checkpoint.model.config.embed_dim, math.prod(self.student.grid)
        shape = (len(self.pictures), 1 + patches, width)

        def create() -> None:
            np.lib.format.open_memmap(part, "w+", np.float16, shape).flush()

        self.group.first(create)
        file = np.load(part, mmap_mode="r+")
        yield file
        file.flush()
        self.group.wait()
        self.group.first(lambda: part.rename(path).name)

    def tokens_of(self, chosen: Tensor, mirrored: Tensor) -> Tensor:
        """The teacher's tokens (B, 1 + patches, D) for some pictures of the view as the student sees
        them: some mirrored."""
        tokens = torch.from_numpy(self.tokens[chosen.numpy()]).float()
        patches = tokens[:, 1:].unflatten(1, self.student.grid)  # (B, rows, cols, D)
        patches[mirrored] = patches[mirrored].flip(2)
        return tokens

    @torch.inference_mode()
    def ask(self, file: np.ndarray | None = None) -> Tensor:
        """The answers to every picture of the view (M, classes), and its tokens into a file; the
        processes share the work."""
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
                x = last_tokens(model, images)
                logits = model.forward_head(x)[:, self.columns]
            if file is not None:
                file[indices.numpy()] = compared(model, x).half().cpu().numpy()
            answers[indices] = logits.float().softmax(dim=1).cpu()
        return group.sum(answers).half()

    def as_teacher_sees(self, images: Tensor) -> Tensor:
        """The student's pictures (B, C, H, W) in the teacher's size, channels and normalisation."""
        own = self.checkpoint.preprocess
        images = images * as_channels(self.preprocess.std) + as_channels(self.preprocess.mean)
        if len(own.mean) != images.shape[1]:
            images = images.mean(dim=1, keepdim=True).expand(-1, len(own.mean), -1, -1)
        images = F.interpolate(images, size=self.size, mode="bicubic").clamp(0, 1)
        return (images - as_channels(own.mean)) / as_channels(own.std)


class Student(nn.Module):
    """A model that learns its teacher's tokens: with a linear map to them, as long as it learns."""

    def __init__(self, model: VisionTransformer, width: int):
        super().__init__()
        self.model, self.to_teacher = model, nn.Linear(model.config.embed_dim, width)

    def forward(self, images: Tensor, kept_patches: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits (B, classes), and what is to be the teacher's tokens (B, 1 + patches, D)."""
        x = last_tokens(self.model, images, kept_patches)
        normed = self.model.norm(x)
        P = self.model.config.prefix_tokens
        own = torch.cat([normed[:, :1], normed[:, P:]], dim=1)
        return self.model.forward_head(x), self.to_teacher(own)


def last_tokens(
    model: VisionTransformer, images: Tensor, kept_patches: Tensor | None = None
) -> Tensor:
    """What the last block makes of the tokens (B, N, D)."""
    x = model.embed(images, kept_patches)
    for block in model.blocks:
        x = block(x)
    return x


def compared(model: VisionTransformer, x: Tensor) -> Tensor:
    """The class token and the patches (B, 1 + patches, D), each with mean 0 and variance 1."""
    x = model.norm(x).float()
    x = torch.cat([x[:, :1], x[:, model.config.prefix_tokens :]], dim=1)
    return F.layer_norm(x, x.shape[-1:])


def of_kept(tokens: Tensor, kept: Tensor) -> Tensor:
    """The first token and those of the patches that stay (B, 1 + K, D)."""
    patches = tokens[:, 1:].gather(1, kept[:, :, None].expand(-1, -1, tokens.shape[-1]))
    return torch.cat([tokens[:, :1], patches], dim=1)


def token_loss(found: Tensor, wanted: Tensor) -> Tensor:
    """How far the student's tokens are from the teacher's: the class token, and the patches."""
    found = F.layer_norm(found.float(), found.shape[-1:])
    return F.mse_loss(found[:, 0], wanted[:, 0]) + F.mse_loss(found[:, 1:], wanted[:, 1:])


def check_tokens(teacher: ViTConfig, student: ViTConfig, size: tuple[int, int]) -> None:
    """Do both have a class token, and the same grid of patches?"""
    if not (teacher.class_token and student.class_token):
        raise ValueError("--teacher-tokens needs a class token in both models.")
    wanted = tuple(n * patch for n, patch in zip(student.grid, teacher.patch_size, strict=True))
    if tuple(size) != wanted:
        (rows, cols), (height, width) = student.grid, wanted
        raise ValueError(
            f"--teacher-tokens: the student sees {rows}x{cols} patches; use --teacher-size "
            f"{max(height, width)}, and the teacher sees as many."
        )


def read_tokens(path: Path, pictures: Dataset) -> np.ndarray:
    """The tokens in a file, which is not read before it is needed."""
    try:
        tokens = np.load(path, mmap_mode="r")
    except (ValueError, OSError) as error:
        raise DataError(
            f"{path} is damaged or not here; remove the teacher's files, and it is asked again."
        ) from error
    if tokens.ndim != 3 or len(tokens) != len(pictures):
        raise DataError(f"{path} belongs to other pictures; remove it, or choose another --out.")
    return tokens


def as_channels(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values)[:, None, None]


def draws_of(view: int, pictures: int, seed: int) -> Tensor:
    """The random numbers (M, DRAWS) that make a view of each picture."""
    return torch.rand(pictures, DRAWS, generator=generator(seed, VIEW, view))


def read_answers(path: Path, pictures: Dataset) -> Tensor:
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
