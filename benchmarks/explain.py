"""What explanations cost, in plain forward passes of the same model.

    python -m benchmarks.explain [--quick] [--only time|memory|growth|app] [--threads N]

The unit is timm's own model: same weights, fused attention, inference mode, plain forward. Everything is
measured in turns in one process, medians: whatever else the machine does falls on all alike. The
weights do not matter for the time, so they are random and nothing is downloaded. `--quick` takes less
than a minute: DeiT-tiny only, few rounds, without the app.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image
from safetensors.torch import save_file

from benchmarks.visitors import ROOT, SETTINGS, Server, Visitor, noise
from vit_demo import faithful, knockout
from vit_demo.attention import head_rollouts
from vit_demo.checkpoints import Checkpoint
from vit_demo.checkpoints.timm_models import config_of, imagenet_labels, preprocess_of
from vit_demo.checkpoints.weights import fill
from vit_demo.class_maps import attention_gradient_maps, contributions
from vit_demo.explain import Classifier
from vit_demo.view import View

# Name -> how often plain; at most: our forward, everything the explorer needs
MODELS = {
    "deit_tiny_patch16_224": (1.02, 1.30),
    "vit_small_patch16_224": (1.02, 1.12),
    "vit_base_patch16_224": (1.02, 1.12),
    "vit_base_patch16_384": (1.02, 1.12),
}
TINY = "deit_tiny_patch16_224"
VISITORS = 16


# The models, and the ways to explain them


def twins(name: str) -> tuple[torch.nn.Module, Classifier]:
    """timm's model, and ours with the same weights."""
    torch.manual_seed(0)
    theirs = timm.create_model(name).eval()
    ours = fill(config_of(theirs), theirs.state_dict(), name)
    labels = imagenet_labels(theirs.num_classes)
    return theirs, Classifier(Checkpoint(name, ours, labels, preprocess_of(theirs)), "cpu")


def noise_view(classifier: Classifier, size: int | None = None) -> View:
    """A square picture as the model sees it: of the model's own size, or of another one."""
    side = size or max(classifier.config.image_size)
    pixels = np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels)
    return View(picture, picture, "native", (0, 0, side, side), classifier.config.patch_size,
                (side, side))  # fmt: skip


def explain_all(classifier: Classifier, view) -> torch.Tensor:
    """One pass, and the rollout of every head of every layer."""
    return classifier.explain_views([view])[0].head_rollouts(None)


class WithHooks:
    """The usual way: timm's model, fused attention off, a hook on each layer's attention; then for
    each head the product of whole N x N matrices through all layers."""

    def __init__(self, name: str, weights: dict):
        self.model = timm.create_model(name).eval()
        self.model.load_state_dict(weights)
        self.kept: list[torch.Tensor] = []
        for block in self.model.blocks:
            block.attn.fused_attn = False
            block.attn.attn_drop.register_forward_hook(
                lambda module, args, A: self.kept.append(A[0])
            )

    @torch.inference_mode()
    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        self.kept.clear()
        self.model(pixels)
        identity = torch.eye(self.kept[0].shape[-1])
        product = identity.expand_as(self.kept[0])
        for A in self.kept:
            A = A + identity
            product = (A / A.sum(dim=-1, keepdim=True)) @ product
        return product[:, 0]


class WithTransformers:
    """Hugging Face's model of the same shape: eager attention, all of it returned; then our rollouts."""

    def __init__(self, classifier: Classifier):
        from transformers import ViTConfig, ViTForImageClassification

        c = classifier.config
        config = ViTConfig(
            hidden_size=c.embed_dim,
            num_hidden_layers=c.depth,
            num_attention_heads=c.heads,
            intermediate_size=c.mlp_dim,
            image_size=c.image_size[0],
            patch_size=c.patch_size[0],
            num_labels=c.num_classes,
        )
        config._attn_implementation = "eager"
        self.model = ViTForImageClassification(config).eval()

    @torch.inference_mode()
    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        layers = self.model(pixels, output_attentions=True).attentions
        rows = torch.stack([A[0, :, 0] for A in layers])
        means = [A[0].mean(dim=0) for A in layers[:-1]]
        v = torch.zeros(rows.shape[-1])
        v[0] = 1
        return head_rollouts(rows, means, v, 0.5)


# Time


def medians(tasks: dict[str, Callable], rounds: int, seldom: set[str] = frozenset()) -> dict:
    """Seconds of each task. A round runs all in turns, the long ones only in every third."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():  # the first run pays for memory and caches
        task()
    for turn in range(rounds):
        for name, task in tasks.items():
            if turn % 3 == 0 or name not in seldom:
                began = time.perf_counter()
                task()
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in times.items()}


def measure_time(name: str, rounds: int) -> None:
    theirs, classifier = twins(name)
    view = noise_view(classifier)
    explanation = classifier.explain_views([view])[0]
    heat, pixels = explanation.rollout(), explanation.pixels

    @torch.inference_mode()
    def plain(model):
        return model(pixels)

    def relevance():
        explanation.class_vectors.clear()  # or it would be remembered
        return explanation.relevance(281)

    def contribution():
        explanation.class_vectors.clear()
        return explanation.contribution(281)

    hooks = WithHooks(name, theirs.state_dict())
    tasks = {
        "timm, plain forward": lambda: plain(theirs),
        "ours, plain forward": lambda: plain(classifier.model),
        "ours, explain + all head rollouts": lambda: explain_all(classifier, view),
        "ours, contribution to one class": contribution,
        "ours, relevance of one class": relevance,
        "hooks and N x N products (the usual way)": lambda: hooks(pixels),
    }
    try:
        transformers = WithTransformers(classifier)
        tasks["transformers, eager, our rollouts"] = lambda: transformers(pixels)
    except ImportError:
        pass
    limits = {
        "ours, plain forward": MODELS[name][0],
        "ours, explain + all head rollouts": MODELS[name][1],
        "ours, contribution to one class": 2.8,
        "ours, relevance of one class": 3.0,
    }
    seldom = {"hooks and N x N products (the usual way)", "transformers, eager, our rollouts"}
    if name == TINY:
        tasks["ours, trust score of one map"] = lambda: faithful.trust(explanation, heat)
        tasks["ours, wall of heads without"] = lambda: knockout.knockout_wall(explanation)
        limits["ours, trust score of one map"] = 40.0
        seldom |= {"ours, trust score of one map", "ours, wall of heads without"}
    found = medians(tasks, rounds, seldom)
    unit = found["timm, plain forward"]
    print(f"\n{name}: {1000 * unit:.1f} ms a plain forward of timm's model")
    for task, seconds in found.items():
        row(task, f"{seconds / unit:.2f}", f"{limits[task]:.2f}" if task in limits else "")


def row(what: str, value: str, limit: str = "") -> None:
    print(f"  {what:52}{value:>10}" + (f"   at most {limit}" if limit else ""), flush=True)


# Memory: each way in a fresh process, because memory that was used once is not given back


def measure_memory(name: str = "vit_base_patch16_384") -> None:
    print(f"\n{name}: memory above the model's own, MB (each in a process of its own)")
    peaks = {}
    for way in ("timm", "ours", "explain", "contribution", "relevance", "hooks"):
        command = [sys.executable, "-m", "benchmarks.explain", "--peak", way, name]
        runs = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
                for _ in range(3)]  # fmt: skip
        peaks[way] = statistics.median(float(text.split()[0]) for text in runs)
        kept = statistics.median(float(text.split()[1]) for text in runs)
        ratio = f"{peaks[way] / peaks['timm']:.2f}"
        limit = "1.50" if way == "explain" else ""
        row(f"{way}: peak {peaks[way]:.0f}, tensors kept {kept:.0f}", ratio, limit)


def print_peak(way: str, name: str) -> None:
    """For `measure_memory`: how far the memory in use rises above what it was with the model loaded,
    and what the result itself holds."""
    torch.set_num_threads(1)
    theirs, classifier = twins(name)
    view = noise_view(classifier)
    pixels = torch.zeros(1, 3, *classifier.config.image_size)
    if way == "hooks":
        hooks = WithHooks(name, theirs.state_dict())
    Path("/proc/self/clear_refs").write_text("5")  # the highest level is counted from here
    before = memory("VmRSS")
    with torch.inference_mode():
        if way == "explain":
            explanation = classifier.explain_views([view])[0]
            result, held = explanation.head_rollouts(None), explanation.memory
        elif way == "contribution":
            result, held = contributions(classifier.model, pixels, torch.tensor([[281]])), 0
        elif way == "relevance":
            classes = torch.tensor([[281]])
            result, held = attention_gradient_maps(classifier.model, pixels, classes, slice(1)), 0
        else:
            result = {"timm": theirs, "ours": classifier.model}.get(way) or hooks
            result, held = result(pixels), 0
    print(memory("VmHWM") - before, held / 2**20)


def memory(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


# Growth with the size of the picture


def measure_growth(rounds: int, name: str = "vit_small_patch16_224") -> None:
    _, classifier = twins(name)
    print(f"\n{name} at other sizes: one picture, ms; plain: timm's forward")
    print(f"  {'pixels':>8}{'tokens':>8}{'plain':>10}{'explain':>10}{'ratio':>8}{'maps':>8}"
          f"{'explain / token':>18}")  # fmt: skip
    for size in (224, 384, 512, 768):
        view = noise_view(classifier, size)
        pixels = classifier.explain_views([view])[0].pixels

        theirs = timm.create_model(name, img_size=size).eval()

        @torch.inference_mode()
        def plain(theirs=theirs, pixels=pixels):
            return theirs(pixels)

        tasks = {"plain": plain, "explain": lambda view=view: explain_all(classifier, view)}
        found = medians(tasks, rounds)
        plain_ms, explain_ms = 1000 * found["plain"], 1000 * found["explain"]
        tokens = 1 + (size // 16) ** 2
        print(f"  {size:>8}{tokens:>8}{plain_ms:>10.0f}{explain_ms:>10.0f}{explain_ms / plain_ms:>8.2f}"
              f"{1 - plain_ms / explain_ms:>8.0%}{explain_ms / tokens:>18.3f}", flush=True)  # fmt: skip


# The running app


@contextmanager
def running(name: str, classifier: Classifier):
    """The app with this model, from a file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.safetensors"
        weights = {key: tensor.clone() for key, tensor in classifier.model.state_dict().items()}
        save_file(weights, file)
        with Server("--checkpoint", str(file), "--arch", name, "--device", "cpu") as server:
            yield server


def measure_app(name: str, rounds: int, pictures: int, round_trip: bool) -> None:
    theirs, classifier = twins(name)
    view = noise_view(classifier)
    pixels = classifier.explain_views([view])[0].pixels
    with running(name, classifier) as server:
        one = Visitor(server.address)

        @torch.inference_mode()
        def plain():
            return theirs(pixels)

        def visit(visitor: Visitor, file: bytes) -> float:
            began = time.perf_counter()
            _, maps = visitor.call("explain", file, name, *SETTINGS)
            visitor.ask("GET", f"/gradio_api/file={maps['path']}")
            return time.perf_counter() - began

        files = [noise(number) for number in range(pictures)]
        print(f"\n{name} in the running app")
        if round_trip:
            turns = cycle(files)
            found = medians({"plain": plain, "trip": lambda: visit(one, next(turns))}, rounds)
            row(
                "round trip: upload, queue, explain, fetch the maps, ms",
                f"{1000 * found['trip']:.0f}",
            )
            above = 1000 * (found["trip"] - found["plain"])
            row("above the model's own plain forward, ms", f"{above:.0f}", "150")

        visitors = [Visitor(server.address) for _ in range(VISITORS)]
        bare, served, apart, waits = [], [], [], []
        for _ in range(4):  # in turns; the first one is for warming up
            began = time.perf_counter()
            for file in files:
                explain_all(classifier, classifier.view(file))
            bare.append(len(files) / (time.perf_counter() - began))
            began, own = time.perf_counter(), time.process_time()
            with ThreadPoolExecutor(VISITORS) as pool:
                shares = [(visitors[i], files[i::VISITORS]) for i in range(VISITORS)]
                each = pool.map(lambda mine: [visit(mine[0], file) for file in mine[1]], shares)
                waits.append([wait for mine in each for wait in mine])
            seconds = time.perf_counter() - began
            own = (time.process_time() - own) / (seconds * os.cpu_count())
            served.append(len(files) / seconds)
            apart.append(served[-1] / (1 - own))
        bare, served = statistics.median(bare[1:]), statistics.median(served[1:])
        row(
            f"{VISITORS} visitors: pictures a second, of {bare:.1f} in a bare loop", f"{served:.1f}"
        )
        row("of the bare loop (read, explain, all head rollouts)", f"{served / bare:.2f}")
        without = statistics.median(apart[1:]) / bare
        row("the same, had the visitors' own work cost nothing", f"{without:.2f}")
        waits = sorted(wait for turn in waits[1:] for wait in turn)
        late = waits[int(0.95 * len(waits))]
        row("95 of 100 visitors wait at most, ms", f"{1000 * late:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--only", choices=("time", "memory", "growth", "app"))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS, metavar="NAME")
    parser.add_argument("--threads", type=int, help="of torch, for all alike (its own choice)")
    parser.add_argument("--rounds", type=int, help="more of them: steadier")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak:
        print_peak(*args.peak)
        return
    if args.threads:
        torch.set_num_threads(args.threads)
        os.environ["OMP_NUM_THREADS"] = str(args.threads)  # for the app
    rounds = args.rounds or (6 if args.quick else 30)
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}, "
          f"load {os.getloadavg()[0]:.1f}")  # fmt: skip

    def wanted(part: str) -> bool:
        return args.only == part or (args.only is None and (not args.quick or part == "time"))

    if wanted("time"):
        for name in [TINY] if args.quick else args.models:
            measure_time(name, rounds)
    if wanted("memory"):
        measure_memory()
    if wanted("growth"):
        measure_growth(max(3, rounds // 6))
    if wanted("app"):
        measure_app(TINY, rounds, 64, round_trip=True)
        measure_app("vit_small_patch16_224", rounds, 32, round_trip=False)
        measure_app("vit_base_patch16_224", rounds, 32, round_trip=False)


if __name__ == "__main__":
    main()
