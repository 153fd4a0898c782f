"""One process of the page, or two behind nginx: how many pictures a second do 32 visitors get?

    python -m benchmarks.processes [--model vit_small_patch16_224] [--pictures 96] [--rounds 3]

Both are up all the time and are visited in turns; the weights are random, and nothing is downloaded.
Needs nginx (`apt-get install nginx-light`).
"""

import argparse
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import timm
import torch
from safetensors.torch import save_file

from benchmarks.visitors import SETTINGS, Proxy, Server, Visitor, noise

VISITORS = 32


def pictures_a_second(address: str, model: str, files: list[bytes]) -> float:
    visitors = [Visitor(address) for _ in range(VISITORS)]

    def visit(number: int) -> None:
        for file in files[number::VISITORS]:
            visitors[number].call("explain", file, model, *SETTINGS)

    began = time.perf_counter()
    with ThreadPoolExecutor(VISITORS) as pool:
        list(pool.map(visit, range(VISITORS)))
    return len(files) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="vit_small_patch16_224")
    parser.add_argument("--pictures", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    files = [noise(number) for number in range(args.pictures)]
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / f"{args.model}.safetensors"
        save_file(timm.create_model(args.model).state_dict(), weights)
        of_model = ("--checkpoint", str(weights), "--arch", args.model, "--device", "cpu")
        threads = max(1, torch.get_num_threads() // 2)
        with (
            Server(*of_model) as alone,
            Server(*of_model, OMP_NUM_THREADS=str(threads)) as first,
            Server(*of_model, OMP_NUM_THREADS=str(threads)) as second,
            Proxy([first, second]) as proxy,
        ):
            ways = {"one process": alone.address, "two processes behind nginx": proxy.address}
            speeds: dict[str, list[float]] = {way: [] for way in ways}
            for turn in range(args.rounds + 1):  # the first one is for warming up
                for way, address in ways.items():
                    speed = pictures_a_second(address, args.model, files)
                    if turn:
                        speeds[way].append(speed)
    found = {way: statistics.median(each) for way, each in speeds.items()}
    for way, speed in found.items():
        print(f"{way:30}{speed:8.1f} pictures a second")
    one, two = found.values()
    print(f"ratio {two / one:.2f}")


if __name__ == "__main__":
    main()
