"""Pictures with labels: the named sets, and anyone's folder of pictures.

Small sets live in memory as one uint8 tensor, so that a batch is one indexing operation; the
pictures of big folders are read when their batch comes. Every file is opened once before training
starts: what is wrong with the data is said then, with the file's name, and not after an hour.
"""

import io
import os
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from torchvision import datasets
from torchvision.transforms import v2

from vit_demo.checkpoints import Checkpoint
from vit_demo.image import SUFFIXES, ImageError, open_image
from vit_demo.training.config import TrainConfig
from vit_demo.view import Preprocess, make_view

NAMED = {
    "mnist": datasets.MNIST,
    "fashion-mnist": datasets.FashionMNIST,
    "cifar10": datasets.CIFAR10,
}
STATISTICS = {  # mean and standard deviation of the training pixels
    "mnist": ((0.1307,), (0.3081,)),
    "fashion-mnist": ((0.2860,), (0.3530,)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
}
CIFAR10_ZIP = "cifar10-images.zip"
PARTS = ("train", "test")
DATA_DIR = "data"  # where named sets are downloaded to when no other place is given
IN_MEMORY = 2 * 1024**3  # bytes: a part of a folder that is larger is read batch by batch
HELD_OUT = 10  # in a folder without test pictures, one in so many of each class is held out


class DataError(ValueError):
    """Pictures that cannot be trained on; the message is for the person who gave them."""


@dataclass
class Dataset:
    name: str
    labels: Tensor  # (M,) int64
    class_names: list[str]
    image_size: tuple[int, int]  # of the pictures in a batch: height, width
    channels: int
    images: Tensor | None = None  # (M, C, H, W) uint8; None: read the files when they are wanted
    files: list[Path] = field(default_factory=list)
    read: Callable[[Path], np.ndarray] | None = None
    workers: int = 2

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Tensor) -> Tensor:
        """These pictures as uint8 (B, C, H, W), in the size and with the channels asked for."""
        if self.images is None:
            return read_all([self.files[i] for i in indices.tolist()], self.read, self.workers)
        return fit(self.images[indices], self.image_size, self.channels)


def load_dataset(
    name_or_folder: str,
    data_dir: str | None = None,
    image_size: int | tuple[int, int] = 224,
    channels: int = 3,
    download: bool = True,
    *,
    workers: int = 2,
    preprocess: Preprocess | None = None,
    parts: Sequence[str] = PARTS,
) -> tuple[Dataset, ...]:
    """The training and the test pictures of a named set, or of a folder with a folder a class.

    `preprocess` says how a model wants the pictures of a folder; else the middle is cut out.
    """
    size = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
    if name_or_folder in NAMED:
        return load_named(name_or_folder, data_dir, size, channels, download, parts)
    folder = Path(name_or_folder)
    if not folder.is_dir():
        raise DataError(
            f"{name_or_folder!r} is neither a folder nor a named set; give a folder that has one "
            f"folder of pictures for each class, or one of {', '.join(NAMED)}."
        )
    preprocess = preprocess or Preprocess(size, (0.5,) * channels, (0.5,) * channels)
    return load_folder(folder, preprocess, workers, parts)


def preprocess_of(config: TrainConfig, start: Checkpoint | None) -> Preprocess:
    """What the trained model will do with pictures: exactly what it saw in training."""
    if start is not None:
        size = (config.image_size,) * 2 if config.image_size else start.preprocess.size
        digits = start.preprocess.light_on_dark or config.dataset == "mnist"
        return replace(start.preprocess, size=size, crop_pct=1.0, crop_mode="center",
                       light_on_dark=digits)  # fmt: skip
    mean, std = STATISTICS.get(str(config.dataset), ((0.5,), (0.5,)))
    if len(mean) != config.channels:
        mean, std = ((sum(v) / len(v),) * config.channels for v in (mean, std))
    digits = config.dataset == "mnist"
    return Preprocess((config.image_size,) * 2, mean, std, light_on_dark=digits)


# Named sets


Loaded = tuple[list[str], list[tuple[Tensor, Tensor]]]  # class names; pictures and labels of a part


def load_named(
    name: str,
    data_dir: str | None,
    size: tuple[int, int],
    channels: int,
    download: bool,
    parts: Sequence[str],
) -> tuple[Dataset, ...]:
    root = Path(data_dir or DATA_DIR)
    archive = root / CIFAR10_ZIP
    if name == "cifar10" and archive.is_file():
        names, loaded = read_zip(archive, parts)
    else:
        names, loaded = read_torchvision(name, root, download and data_dir is None, parts)
    return tuple(Dataset(name, labels, names, size, channels, images) for images, labels in loaded)


def read_torchvision(name: str, root: Path, download: bool, parts: Sequence[str]) -> Loaded:
    try:
        sets = [NAMED[name](root, train=part == "train", download=download) for part in parts]
    except (RuntimeError, OSError, ValueError) as error:
        also = f"as {CIFAR10_ZIP}, or " if name == "cifar10" else ""
        raise DataError(
            f"The {name} pictures are not in {root} ({error}). Put them there {also}as torchvision "
            "stores them; or, with a network, leave --data out and they are downloaded."
        ) from error
    loaded = []
    for part in sets:
        images = torch.as_tensor(part.data)  # (M, 28, 28), or (M, 32, 32, 3)
        images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
        loaded.append((images, torch.as_tensor(part.targets, dtype=torch.int64)))
    names = [str(digit) for digit in range(10)] if name == "mnist" else list(sets[0].classes)
    return names, loaded


def read_zip(path: Path, parts: Sequence[str]) -> Loaded:
    """CIFAR-10 as PNG files in train/CLASS and test/CLASS, inside one zip."""
    loaded = []
    try:
        with zipfile.ZipFile(path) as archive:
            files = sorted(n for n in archive.namelist() if n.lower().endswith(SUFFIXES))
            names = sorted({Path(file).parent.name for file in files})
            for part in parts:
                inside = [file for file in files if Path(file).parent.parent.name == part]
                labels = [names.index(Path(file).parent.name) for file in inside]
                check_classes(names, labels, f"{path}/{part}")
                pixels = [decode(archive.read(file), f"{path}/{file}") for file in inside]
                images = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).contiguous()
                loaded.append((images, torch.tensor(labels)))
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path} cannot be read ({error}); get the file again.") from error
    return names, loaded


def decode(content: bytes, name: str) -> np.ndarray:
    try:
        pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise DataError(f"{name} is not a picture ({error}); get the file again.") from error
    H, W = pixels.shape[:2]
    if (H, W) != (32, 32):
        raise DataError(f"{name} has {H}x{W} pixels, not 32x32; get the file again.")
    return pixels


def fit(images: Tensor, size: tuple[int, int], channels: int) -> Tensor:
    """Pictures in memory, to another size or number of channels."""
    if images.shape[1] == 3 and channels == 1:  # Pillow's "L", to the bit
        weights = torch.tensor([19595, 38470, 7471])[:, None, None]
        images = (((images.int() * weights).sum(1, keepdim=True) + 2**15) >> 16).to(torch.uint8)
    if images.shape[1] == 1 and channels == 3:
        images = images.expand(-1, 3, -1, -1)
    if tuple(images.shape[2:]) != tuple(size):
        bicubic = v2.InterpolationMode.BICUBIC
        images = v2.functional.resize(images, list(size), bicubic, antialias=True)
    return images


def normalise(images: Tensor, preprocess: Preprocess) -> Tensor:
    """uint8 to what the model takes."""
    values = (preprocess.mean, preprocess.std)
    mean, std = (torch.tensor(v, device=images.device)[:, None, None] for v in values)
    return (images.float() / 255 - mean) / std


# Folders


def load_folder(
    folder: Path, preprocess: Preprocess, workers: int, parts: Sequence[str]
) -> tuple[Dataset, ...]:
    """train/CLASS/* with test/CLASS/* or val/CLASS/*; or CLASS/*, of which a tenth is held out.

    The part "all" is every picture of a folder, as if nothing were held out.
    """
    inner = folder / "train" if (folder / "train").is_dir() else folder
    beside = [folder / name for name in ("test", "val") if (folder / name).is_dir()]
    names, files, labels = list_classes(inner)
    listed = {"all": (files, labels)}
    if inner != folder and beside:
        test_names, test_files, test_labels = list_classes(beside[0])
        if test_names != names:
            only = sorted(set(names) ^ set(test_names))
            raise DataError(
                f"{inner} and {beside[0]} must have the same classes, but only one of them has "
                f"{', '.join(only)}; add or remove these folders."
            )
        listed = {
            "all": (files + test_files, labels + test_labels),
            "train": (files, labels),
            "test": (test_files, test_labels),
        }
    elif "all" not in parts:
        listed |= hold_out(names, files, labels)
    read, channels = reader(preprocess), len(preprocess.mean)
    size = channels * preprocess.size[0] * preprocess.size[1]  # bytes of one picture
    loaded = []
    for part in parts:
        files, labels = listed[part]
        images = None
        if len(files) * size <= IN_MEMORY:
            images = read_all(files, read, workers)
        else:
            check_files(files, read, workers)
        dataset = Dataset(folder.name, torch.tensor(labels), names, preprocess.size, channels)
        dataset.images, dataset.files = images, files
        dataset.read, dataset.workers = read, workers
        loaded.append(dataset)
    return tuple(loaded)


def list_classes(folder: Path) -> tuple[list[str], list[Path], list[int]]:
    """Class names, files and labels of a folder that has one folder a class."""
    names = sorted(e.name for e in os.scandir(folder) if e.is_dir() and e.name[0] not in "._")
    files, labels = [], []
    for label, name in enumerate(names):
        found = sorted((folder / name).rglob("*"))
        inside = [f for f in found if f.suffix.lower() in SUFFIXES and f.name[0] != "."]
        files += inside
        labels += [label] * len(inside)
    check_classes(names, labels, str(folder))
    return names, files, labels


def check_classes(names: list[str], labels: list[int], where: str) -> None:
    if len(names) < 2:
        found = f"only the class {names[0]!r}" if names else "no classes"
        raise DataError(f"{where} has {found}; make a folder of pictures for each class.")
    there = set(labels)
    for label, name in enumerate(names):
        if label not in there:
            raise DataError(
                f"{where}/{name} has no pictures; add some ({', '.join(SUFFIXES)}) "
                "or remove the folder."
            )


def hold_out(names: list[str], files: list[Path], labels: list[int]) -> dict:
    """Take the same tenth of each class away for the test every time, on every machine."""
    g = torch.Generator().manual_seed(0)
    train, test = ([], []), ([], [])
    files_of = [[] for _ in names]
    for file, label in zip(files, labels, strict=True):
        files_of[label].append(file)
    for label, (name, inside) in enumerate(zip(names, files_of, strict=True)):
        if len(inside) < 2:
            raise DataError(
                f"The class {name!r} has one picture, {inside[0]}; it needs two or more, "
                "because one in ten is held out for the test."
            )
        order = torch.randperm(len(inside), generator=g).tolist()
        count = max(1, len(inside) // HELD_OUT)
        for part, picked in ((test, order[:count]), (train, order[count:])):
            part[0].extend(inside[i] for i in sorted(picked))
            part[1].extend([label] * len(picked))
    return {"train": train, "test": test}


def reader(preprocess: Preprocess) -> Callable[[Path], np.ndarray]:
    """A function that reads a picture, (H, W, C) uint8, exactly as the model will see it later."""
    channels = len(preprocess.mean)

    def read(path: Path) -> np.ndarray:
        try:
            picture = make_view(open_image(path), preprocess, preprocess.size).picture
        except (ImageError, OSError) as error:
            raise DataError(f"{path}: {error} Repair the file or remove it.") from error
        pixels = np.array(picture.convert("L") if channels == 1 else picture)
        return pixels.reshape(*preprocess.size, channels)

    return read


def read_all(files: Sequence[Path], read: Callable[[Path], np.ndarray], workers: int) -> Tensor:
    with ThreadPoolExecutor(workers) as pool:
        pixels = np.stack(list(pool.map(read, files)))
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def check_files(files: Sequence[Path], read: Callable[[Path], np.ndarray], workers: int) -> None:
    """Read everything once and keep nothing: a bad file is found now, not in the third epoch."""
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(read, files):
            pass
