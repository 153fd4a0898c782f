"""What explanations cost, in plain forward passes of the same model.

    python benchmarks/explain.py [--model NAME] [--image FILE] [--quick]

One process, all measured in turns, medians: whatever else the machine does falls on all alike. Two
columns: time on the clock, and time on the processor, which on a busy machine is the steadier one (with
one thread and a quiet machine they are the same). The unit is timm's own model, fused attention, in
inference mode. The weights do not matter for the time, so they are random and nothing is downloaded.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import timm
import torch
from PIL import Image

from vit_demo import faithful, knockout
from vit_demo.checkpoints import Checkpoint, config_of, fill, imagenet_labels, preprocess_of
from vit_demo.explain import Classifier

LIMITS = {"relevance of one class": 3.0, "trust score (default)": 40.0}


def classifier_like(reference: torch.nn.Module, name: str) -> Classifier:
    """Our model with timm's weights."""
    model = fill(config_of(reference), reference.state_dict(), name)
    labels = imagenet_labels(reference.num_classes)
    return Classifier(Checkpoint(name, model, labels, preprocess_of(reference)), "cpu")


def medians(
    tasks: dict[str, Callable], rounds: int, seldom: set[str]
) -> dict[str, tuple[float, float]]:
    """Seconds of each task, on the clock and on the processor. One round runs all in turns, the long
    ones only in every third."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for task in tasks.values():  # the first run pays for memory and caches
        task()
    for turn in range(rounds):
        for name, task in tasks.items():
            if turn % 3 == 0 or name not in seldom:
                clock, processor = time.perf_counter(), time.process_time()
                task()
                spent = time.perf_counter() - clock, time.process_time() - processor
                times[name].append(spent)
    return {
        name: tuple(map(statistics.median, zip(*values, strict=True)))
        for name, values in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="deit_tiny_patch16_224.fb_in1k", metavar="NAME")
    parser.add_argument("--image", metavar="FILE", help="a picture (noise if none is given)")
    parser.add_argument("--threads", type=int, default=1, help="of torch, for both sides alike (1)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    reference = timm.create_model(args.model).eval()
    classifier = classifier_like(reference, args.model)
    noise = np.random.default_rng(0).integers(0, 255, (300, 400, 3), dtype=np.uint8)
    view = classifier.view(args.image or Image.fromarray(noise))
    explanation = classifier.explain_views([view])[0]
    heat, pixels = explanation.rollout(), explanation.pixels

    @torch.inference_mode()
    def plain():
        return reference(pixels)

    def relevance():
        explanation.class_vectors.clear()  # or it would be remembered
        return explanation.relevance(281)

    tasks = {
        "plain forward (timm)": plain,
        "explain": lambda: classifier.explain_views([view]),
        "relevance of one class": relevance,
        "trust score (default)": lambda: faithful.trust(explanation, heat),
        "wall of heads without": lambda: knockout.knockout_wall(explanation),
    }
    seldom = {"trust score (default)", "wall of heads without"}
    found = medians(tasks, 6 if args.quick else 30, seldom)
    clock, processor = found.pop("plain forward (timm)")
    print(f"{args.model}, {args.threads} thread(s); plain forward of timm's model: {clock * 1e3:.1f} ms "
          f"on the clock, {processor * 1e3:.1f} ms on the processor")  # fmt: skip
    print(f"{'in plain forward passes':28}{'clock':>8}{'processor':>12}")
    for name, (wall, cpu) in found.items():
        limit = f"   at most {LIMITS[name]:.1f}" if name in LIMITS else ""
        print(f"{name:28}{wall / clock:8.2f}{cpu / processor:12.2f}{limit}")


if __name__ == "__main__":
    main()
