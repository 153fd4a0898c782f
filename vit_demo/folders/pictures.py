"""Which pictures: a folder, a glob, several files; and what the names of their folders say about them."""

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from vit_demo.checkpoints.timm_models import imagenet_labels, imagenet_synsets
from vit_demo.image import SUFFIXES
from vit_demo.labels import names_of
from vit_demo.validate import printable


class Pictures(NamedTuple):
    """Files by their names below one folder. A name may be anything that the system allows."""

    folder: str  # absolute
    names: list[str]  # with "/" between folders

    def path(self, number: int) -> str:
        return os.path.join(self.folder, self.names[number])


class Batch(NamedTuple):
    """Pictures that go through the model together."""

    number: int
    pictures: range  # their numbers
    key: str  # changes when one of the files does


# Finding them


def find_pictures(sources: Sequence[str | Path], out: Path) -> Pictures:
    """The pictures of all sources, each once: of a folder those in it and below it, by name; a file as
    it is, so that a bad one is told. What lies in `out` are results."""
    paths = []
    for source in map(os.fsdecode, sources):
        found = [source]
        if not os.path.lexists(source) and glob.has_magic(source):
            found = sorted(glob.glob(source, recursive=True), key=os.fsencode)
        if not found or not os.path.exists(found[0]):
            raise ValueError(
                f"There is no file or folder {printable(source)}; check the name, or give a folder "
                "of pictures."
            )
        for path in found:
            paths += pictures_below(path, os.path.realpath(out)) if os.path.isdir(path) else [path]
    paths = list(dict.fromkeys(map(os.path.abspath, paths)))
    if not paths:
        raise ValueError(
            f"{printable(', '.join(map(os.fsdecode, sources)))} holds no pictures; give a folder with "
            f"files such as {', '.join(SUFFIXES[:3])}."
        )
    folders = [os.path.dirname(path) for path in paths]
    if len(sources) == 1 and os.path.isdir(sources[0]):  # names begin below the folder asked for
        folders = [os.path.abspath(sources[0])]
    folder = os.path.commonpath(folders)
    names = [os.path.relpath(path, folder).replace(os.sep, "/") for path in paths]
    return Pictures(folder, names)


def pictures_below(folder: str, out: str) -> Iterator[str]:
    for place, inner, files in os.walk(folder):
        inner[:] = sorted(
            (
                name
                for name in inner
                if name[0] != "." and os.path.realpath(os.path.join(place, name)) != out
            ),
            key=os.fsencode,
        )
        for name in sorted(files, key=os.fsencode):
            if name[0] != "." and name.lower().endswith(SUFFIXES):
                yield os.path.join(place, name)


def batches_of(pictures: Pictures, size: int) -> list[Batch]:
    """Always the same batches for the same files, so that a run that goes on, and one that is shared
    out, compute what one process computes in one go."""
    batches = []
    for first in range(0, len(pictures.names), size):
        numbers = range(first, min(first + size, len(pictures.names)))
        key = hashlib.sha256()
        for number in numbers:
            key.update(os.fsencode(pictures.names[number]) + b"\0" + stamp(pictures.path(number)))
        batches.append(Batch(len(batches), numbers, key.hexdigest()[:16]))
    return batches


def stamp(path: str) -> bytes:
    """Size and time of a file: enough to see that it was changed."""
    try:
        status = os.stat(path)
    except OSError:
        return b"gone\0"
    return f"{status.st_size} {status.st_mtime_ns}\0".encode()


# What their folders say


def classes_by_name(labels: Sequence[str]) -> dict[str, int]:
    """What a folder may be called to say a class: a label, one of its names, or an ImageNet synset.
    A name that several labels have says nothing."""
    found: dict[str, set[int]] = {}
    for index, label in enumerate(labels):
        for name in names_of(label):
            found.setdefault(folded(name), set()).add(index)
    whole: dict[str, set[int]] = {}
    for index, label in enumerate(labels):
        whole.setdefault(folded(label), set()).add(index)
    classes = {name: of.copy().pop() for name, of in (found | whole).items() if len(of) == 1}
    if labels and list(labels) == imagenet_labels(len(labels)):
        classes |= imagenet_synsets(len(labels))
    return classes


def folded(name: str) -> str:
    """ "Golden_Retriever" and "golden retriever" are the same."""
    return " ".join(name.replace("_", " ").casefold().split())


def true_class(pictures: Pictures, number: int, classes: dict[str, int]) -> int | None:
    """The class of the innermost folder that is named after one."""
    folders = [*pictures.folder.split(os.sep)[-1:], *pictures.names[number].split("/")[:-1]]
    return next((classes[name] for name in map(folded, reversed(folders)) if name in classes), None)
