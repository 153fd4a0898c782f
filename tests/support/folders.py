"""Folders of pictures, and what a run over one leaves behind."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

LABELS = ("label 0", "label 1", "label 2")  # of `small_classifier`


def make_pictures(folder: Path, count: int = 9) -> Path:
    """Pictures of noise in folders that have the names of labels; no two sizes are the same."""
    for i in range(count):
        chance = np.random.default_rng(i)
        pixels = chance.integers(0, 255, (33 + i, 60 - i, 3), dtype=np.uint8)
        path = folder / LABELS[i % len(LABELS)] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder


def table(out: Path) -> list[dict]:
    with open(out / "answers.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def contents(out: Path) -> dict[str, bytes]:
    """Every file of a folder of results; the empty lock apart."""
    files = (path for path in out.rglob("*") if path.is_file() and path.name != ".lock")
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}
