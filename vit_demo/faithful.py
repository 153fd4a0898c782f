"""Is the map true? Take away what it marks, and see whether the answer goes away with it.

A map orders the patches. `deletion` keeps the patches it marks least: if the map is true, the
probability falls fast. `insertion` keeps those it marks most: the probability should stay. Both are
read at the same shares of patches left, so they lie on one axis, with the band of random orders
between them; without the band the numbers mean little, because any picture gets worse when patches
go. The score is half the area between the two curves, in units of probability:

    score = (mean insertion - mean deletion) / 2        a random order: about 0, inside the band

Two ways to take patches away: paint them (black, or blurred), or drop their tokens, which a ViT
allows exactly and which makes every later step cheaper.

The second question, with the same aim: does the map look the same when the model has unlearnt all?
`random_weights` makes the blocks random from the top down (Adebayo et al. 2018).
"""

import copy
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from PIL import Image, ImageFilter
from torch import Tensor

from vit_demo.arguments import choice, shown, whole
from vit_demo.explain import Explanation, Label
from vit_demo.view import to_tensor

REMOVALS = ("tokens", "black", "blur")
BUDGET = 40.0  # forward passes that one score may cost
ORDERS = 10  # random orders in the band, at least
MOST_ORDERS = 1000
MOST_STEPS = 20
SAME = 0.5  # a rank correlation above this: the map has not noticed that the weights are random

Progress = Callable[[int, int], object]  # (done, total) now and then; answer False to stop
Predict = Callable[[Tensor], Tensor]  # numbers of the patches left (B, K) -> probabilities (B,)


class Cancelled(Exception):
    """The one who watched the progress said False."""


def report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None and progress(done, total) is False:
        raise Cancelled(f"stopped after {done} of {total}")


# The maps that are compared


def random_map(explanation: Explanation, index: int | None = None) -> Tensor:
    """Chance as a map: always the same for the same picture, whatever the model."""
    seed = zlib.crc32(explanation.view.picture.tobytes())
    return torch.rand(explanation.grid, generator=torch.Generator().manual_seed(seed))


METHODS: dict[str, Callable[[Explanation, int], Tensor]] = {
    "raw": lambda explanation, index: explanation.attention(-1, "mean"),
    "rollout": lambda explanation, index: explanation.rollout(),
    "gradient_rollout": lambda explanation, index: explanation.gradient_rollout(index),
    "relevance": lambda explanation, index: explanation.relevance(index),
    "grad_cam": lambda explanation, index: explanation.grad_cam(index),
    "random": random_map,
}


def check_method(name: str) -> None:
    if name not in METHODS:
        raise ValueError(f"There is no method {shown(name)}; use one of {', '.join(METHODS)}.")


def method_maps(explanation: Explanation, label: Label = None) -> dict[str, Tensor]:
    """Every method's map of one class: what the strip of methods shows. One pass for all."""
    index = explanation.label_index(label)
    return {name: method(explanation, index) for name, method in METHODS.items()}


def order_of(heat: Tensor, seed: int = 0) -> Tensor:
    """Positions of a map, most marked first. Equal values come in random order: a map that says
    nothing shall not profit from the order in which we read."""
    heat = heat.flatten()
    shuffled = torch.randperm(len(heat), generator=torch.Generator().manual_seed(seed))
    return shuffled[heat[shuffled].argsort(descending=True, stable=True)]


# Taking patches away


def fill_of(explanation: Explanation, kind: str) -> Tensor:
    """What takes the place of a patch, as a whole picture (1, C, H, W): black or blurred."""
    view = explanation.view
    if kind == "black":
        picture = Image.new("RGB", view.picture.size)
    elif kind == "blur":
        picture = view.picture.filter(ImageFilter.GaussianBlur(max(view.patch_size)))
    else:
        raise ValueError(f'Patches are painted over, not {shown(kind)}; use "black" or "blur".')
    preprocess = explanation.classifier.preprocess
    return to_tensor(replace(view, picture=picture), preprocess).to(explanation.pixels)


def paint(pixels: Tensor, fill: Tensor, left: Tensor, patch_size: tuple[int, int]) -> Tensor:
    """Pictures in which only the patches `left` (B, rows, cols) stand, the rest is `fill`."""
    p, q = patch_size
    mask = left.repeat_interleave(p, dim=1).repeat_interleave(q, dim=2)[:, None]  # (B, 1, H, W)
    return torch.where(mask, pixels, fill)


def predictor(explanation: Explanation, index: int, remove: str) -> Predict:
    """The probability of a class as a function of the patches that are left."""
    choice("remove", remove, REMOVALS)
    model, pixels, (rows, cols) = explanation.classifier.model, explanation.pixels, explanation.grid
    fill = None if remove == "tokens" else fill_of(explanation, remove)

    @torch.inference_mode()
    def predict(keep: Tensor) -> Tensor:
        keep = keep.to(pixels.device)
        if fill is None:
            logits = model(pixels.expand(len(keep), -1, -1, -1), keep=keep)
        else:
            left = torch.zeros(len(keep), rows * cols, dtype=torch.bool, device=keep.device)
            left = left.scatter(1, keep, True).unflatten(1, (rows, cols))
            logits = model(paint(pixels, fill, left, explanation.config.patch_size))
        return logits.float().softmax(dim=-1)[:, index].cpu()

    return predict


# The curves


@dataclass(frozen=True)
class Trust:
    """How one map did on one picture. All curves are probabilities at the shares `kept`."""

    label: str
    kept: Tensor  # (S,) share of patches left, from 1 down to 0
    deletion: Tensor  # (S,) what the map marks is gone: low is good
    insertion: Tensor  # (S,) only what the map marks is there: high is good
    random: Tensor  # (orders, S)
    forwards: float  # what it cost, in forward passes of the whole picture

    def area(self, curve: Tensor) -> Tensor:
        """The mean height of curves (..., S)."""
        width = self.kept[0] - self.kept[-1]
        return -torch.trapezoid(curve, self.kept) / width

    @property
    def score(self) -> float:
        """Half the area between insertion and deletion: above the band is good, below 0 is bad."""
        return float(self.area(self.insertion) - self.area(self.deletion)) / 2

    @property
    def band(self) -> float:
        """A random map scores between -band and band at least 19 times of 20 (Student's t)."""
        areas, k = self.area(self.random), len(self.random)
        t = 1.960 + 2.372 / (k - 1) + 2.823 / (k - 1) ** 2
        return float(t * areas.std() * (1 + 1 / k) ** 0.5)

    @property
    def verdict(self) -> str:
        """ "much better", "better", "chance" or "worse": than chance."""
        if abs(self.score) <= self.band:
            return "chance"
        if self.score < 0:
            return "worse"
        return "much better" if self.score > 2 * self.band else "better"

    @property
    def sentence(self) -> str:
        name = self.label.split(",")[0]
        removing = f"Removing what the map marks lowers '{name}'"
        return {
            "much better": f"{removing} much faster than chance.",
            "better": f"{removing} faster than chance.",
            "chance": "No better than chance: do not trust this map here.",
            "worse": f"{removing} more slowly than chance: this map points the wrong way here.",
        }[self.verdict]


def kept_counts(n: int, steps: int, least: int) -> list[int]:
    """How many of n patches are left at each step, from all down to `least`."""
    counts = {max(least, round(n * step / steps)) for step in range(steps + 1)}
    return sorted(counts, reverse=True)


def rows_at(count: int, n: int, maps: int, orders: int) -> int:
    """Pictures to look at with so many patches left; all orders agree on everything and nothing."""
    return 1 if count in (0, n) else 2 * maps + orders


def cost_of(counts: list[int], n: int, maps: int, orders: int, prefix: int | None) -> float:
    """Forward passes. `prefix`: tokens are dropped, so a pass costs its tokens; None: all of one."""
    cost = 0.0
    for count in counts:
        share = 1.0 if prefix is None else (count + prefix) / (n + prefix)
        cost += rows_at(count, n, maps, orders) * share
    return cost


def measure(
    predict: Predict,
    heats: Tensor,
    counts: list[int],
    *,
    orders: int = ORDERS,
    seed: int = 0,
    batch: int = 16,
    progress: Progress | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Deletion and insertion curves of maps (m, n), and those of random orders: (m, S), (m, S),
    (orders, S). All orders with the same number of patches left go through in one batch."""
    m, n = heats.shape
    generator = torch.Generator().manual_seed(seed)
    marked = torch.stack([order_of(heat, seed) for heat in heats])  # (m, n), most marked first
    chance = torch.stack([torch.randperm(n, generator=generator) for _ in range(orders)])
    total = sum(rows_at(count, n, m, orders) for count in counts)
    curves, done = [], 0
    for count in counts:
        keep = torch.cat([marked[:, n - count :], marked[:, :count], chance[:, :count]])
        keep = keep[: rows_at(count, n, m, orders)]
        values = []
        for part in keep.split(batch):
            values.append(predict(part))
            done += len(part)
            report(progress, done, total)
        curves.append(torch.cat(values).expand(2 * m + orders))
    return torch.stack(curves, dim=-1).split([m, m, orders])


def check_map(name: str, heat: Tensor, grid: tuple[int, int]) -> None:
    shape = tuple(getattr(heat, "shape", ()))
    if shape != grid:
        raise ValueError(f"The map {shown(name)} is {shape}; the grid is {grid}: use such a map.")
    if not torch.isfinite(torch.as_tensor(heat)).all():
        raise ValueError(f"The map {shown(name)} holds NaN or infinity; use one of plain numbers.")


def trust_all(
    explanation: Explanation,
    maps: dict[str, Tensor],
    label: Label = None,
    *,
    remove: str = "tokens",
    orders: int = ORDERS,
    steps: int | None = None,
    budget: float = BUDGET,
    seed: int = 0,
    batch: int = 16,
    progress: Progress | None = None,
) -> dict[str, Trust]:
    """The trust score of several maps (rows, cols) of one picture; the random band is shared.

    `steps=None` takes as many steps as one map may have within `budget` forward passes (each
    further map costs a sixth of that more). `progress(done, total)` may answer False to stop:
    `Cancelled` is raised then.
    """
    index, n = explanation.label_index(label), explanation.grid[0] * explanation.grid[1]
    orders = whole("orders", orders, 1, MOST_ORDERS)
    if orders < ORDERS:
        raise ValueError(f"orders is {orders}; use {ORDERS} or more, or the band means nothing.")
    batch, seed = whole("batch", batch, 1), whole("seed", seed, 0, 2**63 - 1)
    steps = None if steps is None else min(whole("steps", steps, 1), n)
    for name, heat in maps.items():
        check_map(name, heat, tuple(explanation.grid))
    drops = remove == "tokens"
    prefix = explanation.config.prefix_tokens if drops else None
    least = 1 if drops and explanation.config.pool == "avg" else 0  # no mean over no patches
    if steps is None:
        steps = 1
        while steps < min(MOST_STEPS, n) and budget >= cost_of(
            kept_counts(n, steps + 1, least), n, 1, orders, prefix
        ):
            steps += 1
    counts = kept_counts(n, steps, least)
    predict = predictor(explanation, index, remove)
    heats = torch.stack([torch.as_tensor(heat).float().flatten() for heat in maps.values()])
    options = {"orders": orders, "seed": seed, "batch": batch, "progress": progress}
    deletion, insertion, chance = measure(predict, heats, counts, **options)
    kept = torch.tensor(counts) / n
    forwards = cost_of(counts, n, len(maps), orders, prefix)
    text = explanation.labels[index]
    return {
        name: Trust(text, kept, deletion[i], insertion[i], chance, forwards)
        for i, name in enumerate(maps)
    }


def trust(explanation: Explanation, heat: Tensor, label: Label = None, **options) -> Trust:
    """The trust score of one map of this picture; options as for `trust_all`."""
    return trust_all(explanation, {"map": heat}, label, **options)["map"]


# Random weights


@dataclass(frozen=True)
class RandomWeights:
    """Maps while the blocks become random from the top down; entry 0 is the real model."""

    heats: Tensor  # (L + 1, rows, cols)
    correlations: Tensor  # (L + 1,) rank correlation with the real map

    @property
    def passed(self) -> bool:
        """With all blocks random, the map must be another one."""
        return float(self.correlations[-1]) <= SAME

    @property
    def sentence(self) -> str:
        rest = f"rank correlation {float(self.correlations[-1]):.2f}"
        if self.passed:
            return f"With random weights the map is another one ({rest}): it depends on the model."
        return (
            f"With random weights the map stays much the same ({rest}): it fails the check, "
            "because it does not show what the model has learnt."
        )


def random_weights(
    explanation: Explanation,
    method: str | Callable[[Explanation, int], Tensor] = "relevance",
    label: Label = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> RandomWeights:
    """Cascading randomisation in a copy of the model; the loaded one is not touched.

    Each tensor of a block is drawn anew with its own mean and spread, so the signals keep their
    size and only what was learnt is gone.
    """
    index, seed = explanation.label_index(label), whole("seed", seed, 0, 2**63 - 1)
    if not callable(method):
        method = METHODS[choice("method", method, METHODS)]
    classifier = copy.copy(explanation.classifier)
    classifier.model = copy.deepcopy(classifier.model)
    generator = torch.Generator().manual_seed(seed)
    real = method(explanation, index)
    heats, blocks = [real], list(reversed(classifier.model.blocks))
    for done, block in enumerate(blocks, start=1):
        randomise(block, generator)
        heats.append(method(classifier.explain_views([explanation.view])[0], index))
        report(progress, done, len(blocks))
    correlations = torch.tensor([spearman(real, heat) for heat in heats])
    return RandomWeights(torch.stack(heats), correlations)


@torch.no_grad()
def randomise(module: torch.nn.Module, generator: torch.Generator) -> None:
    for p in module.parameters():
        noise = torch.randn(p.shape, generator=generator).to(p)
        p.copy_(p.mean() + p.std(correction=0) * noise)


def ranks(values: Tensor) -> Tensor:
    """The place of each value in the order; equal values share the mean of their places."""
    _, place, counts = values.flatten().unique(return_inverse=True, return_counts=True)
    return (counts.cumsum(0) - (counts - 1) / 2).double()[place]


def spearman(a: Tensor, b: Tensor) -> float:
    """Rank correlation: 1 the same order, 0 unrelated, -1 reversed. A flat map is related to none
    but another flat one."""
    a, b = (r - r.mean() for r in (ranks(a), ranks(b)))
    size = float(a.norm() * b.norm())
    return float(a @ b) / size if size else float(a.norm() == b.norm())
