"""How fast are folders explained, beside a bare loop of timm's batched forward pass?

    python -m benchmarks.folders [--model NAME ...] [--pictures 64] [--rounds 5]

Three ways in turns in this process, over the same JPEG files of 500 x 375 pixels: timm's model on batches
that are ready in memory; timm's model with its own transform, reading each file as any loop must; and
`explain_folder`, which reads, answers, makes the maps and writes the report. Medians of the rounds.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image

from benchmarks.explain import twins
from vit_demo.folders.run import BATCH, explain_folder

MODELS = ("deit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224")


def make_pictures(folder: Path, count: int) -> list[Path]:
    """Smooth colours with some grain: as large on disk as photographs are."""
    chance, paths = np.random.default_rng(0), []
    for number in range(count):
        rough = Image.fromarray(chance.integers(0, 255, (12, 16, 3), dtype=np.uint8))
        smooth = np.asarray(rough.resize((500, 375), Image.Resampling.BICUBIC), np.int16)
        grain = chance.integers(-12, 12, smooth.shape)
        paths.append(folder / f"{number:04}.jpg")
        Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8)).save(paths[-1], quality=90)
    return paths


def measure(name: str, folder: Path, paths: list[Path], rounds: int) -> None:
    theirs, classifier = twins(name)
    config = timm.data.resolve_model_data_config(theirs)
    transform = timm.data.create_transform(**config, is_training=False)

    def read(some: list[Path]) -> torch.Tensor:
        return torch.stack([transform(Image.open(path).convert("RGB")) for path in some])

    groups = [paths[i : i + BATCH] for i in range(0, len(paths), BATCH)]
    ready = [read(group) for group in groups]

    @torch.inference_mode()
    def forward() -> None:
        for pixels in ready:
            theirs(pixels)

    @torch.inference_mode()
    def read_and_forward() -> None:
        for group in groups:
            theirs(read(group))

    def ours() -> None:
        with tempfile.TemporaryDirectory() as out:
            explain_folder(classifier, folder, Path(out) / "out")

    ways = {
        "timm, batches ready in memory": forward,
        "timm, with reading the files": read_and_forward,
        "ours: reading, maps, report": ours,
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds + 1):  # the first one is for warming up
        for way, run in ways.items():
            began = time.perf_counter()
            run()
            if turn:
                times[way].append(time.perf_counter() - began)
    seconds = {way: statistics.median(each) for way, each in times.items()}
    own = seconds["ours: reading, maps, report"]
    print(f"\n{name}: pictures a second, and ours as a share of it")
    for way, each in seconds.items():
        print(f"  {way:36}{len(paths) / each:8.1f}{each / own:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", nargs="+", default=MODELS, metavar="NAME")
    parser.add_argument("--pictures", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = make_pictures(Path(folder), args.pictures)
        for name in args.model:
            measure(name, Path(folder), paths, args.rounds)


if __name__ == "__main__":
    main()
