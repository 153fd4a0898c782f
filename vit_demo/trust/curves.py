"""Is the map true? Take away what it marks, and see whether the answer goes away with it.

A map orders the patches. `deletion` keeps the patches it marks least: if the map is true, the
probability falls fast. `insertion` keeps those it marks most: the probability should stay. Both are
read at the same shares of patches left, so they lie on one axis, with the band of random orders
between them; without the band the numbers mean little, because any picture gets worse when patches
go. The score is half the area between the two curves, in units of probability:

    score = (mean insertion - mean deletion) / 2        a random order: about 0, inside the band
"""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from vit_demo.explain import Explanation, Label
from vit_demo.trust.progress import Progress, report
from vit_demo.trust.removal import REMOVALS, Predict, order_of, predictor
from vit_demo.validate import choice, shown, whole

BUDGET = 40.0  # forward passes that one score may cost
ORDERS = 10  # random orders in the band, at least
MOST_ORDERS = 1000
MOST_STEPS = 20
THOROUGH_STEPS, THOROUGH_ORDERS = 20, 30
NONE_WINS = "None wins everywhere: another picture may have another one."


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

    def describe(self) -> dict:
        """The numbers, in words that JSON knows."""
        curves = {"kept": self.kept, "deletion": self.deletion, "insertion": self.insertion}
        return {
            "score": self.score,
            "band": self.band,
            "verdict": self.verdict,
            "sentence": self.sentence,
            **{name: curve.tolist() for name, curve in curves.items()},
            "random": self.random.tolist(),
        }


def kept_counts(n: int, steps: int, least: int) -> list[int]:
    """How many of n patches are left at each step, from all down to `least`."""
    counts = {max(least, round(n * step / steps)) for step in range(steps + 1)}
    return sorted(counts, reverse=True)


def orders_at(count: int, n: int, maps: int, orders: int) -> int:
    """Pictures to look at with so many patches left; all orders agree on all patches and on none."""
    return 1 if count in (0, n) else 2 * maps + orders


def cost_of(counts: list[int], n: int, maps: int, orders: int, prefix: int | None) -> float:
    """Forward passes. `prefix`: tokens are dropped, so a pass costs its tokens; None: all of one."""
    cost = 0.0
    for count in counts:
        share = 1.0 if prefix is None else (count + prefix) / (n + prefix)
        cost += orders_at(count, n, maps, orders) * share
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
    total = sum(orders_at(count, n, m, orders) for count in counts)
    curves, done = [], 0
    for count in counts:
        kept = torch.cat([marked[:, n - count :], marked[:, :count], chance[:, :count]])
        kept = kept[: orders_at(count, n, m, orders)]
        values = []
        for part in kept.split(batch):
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


def trust_thoroughly(
    explanation: Explanation,
    maps: dict[str, Tensor],
    label: Label = None,
    *,
    paint: str = "black",
    seed: int = 0,
    batch: int = 16,
    progress: Progress | None = None,
) -> dict[str, dict[str, Trust]]:
    """Way of removing -> map -> trust: patches dropped as tokens, and painted over (`paint`).

    More steps and random orders than `trust_all` takes by itself, so the band is narrower; it costs
    more than ten times as much. `progress` runs through both ways together.
    """
    removals = ("tokens", choice("paint", paint, [way for way in REMOVALS if way != "tokens"]))
    options = {"steps": THOROUGH_STEPS, "orders": THOROUGH_ORDERS, "seed": seed, "batch": batch}
    results = {}
    for part, way in enumerate(removals):

        def together(done: int, total: int, part: int = part) -> object:
            return progress is None or progress(part * total + done, len(removals) * total)

        results[way] = trust_all(explanation, maps, label, remove=way, progress=together, **options)
    return results


@dataclass(frozen=True)
class Best:
    """The method that did best on one picture, or None: none did better than chance."""

    method: str | None
    score: float | None = None
    second: str | None = None  # the next one, if there is one
    second_score: float | None = None

    @property
    def sentence(self) -> str:
        if self.method is None:
            return f"On this picture no method did better than chance. {NONE_WINS}"
        words = f"On this picture {spoken(self.method)} did best ({self.score:+.3f})"
        if self.second:
            words += f", before {spoken(self.second)} ({self.second_score:+.3f})"
        return f"{words}. {NONE_WINS}"

    def describe(self) -> dict:
        return asdict(self) | {"sentence": self.sentence}


def best_method(*trusts: dict[str, Trust]) -> Best:
    """Which of the maps did best on this picture: the highest score, the mean over all `trusts` (one
    for each way of removing). The random map is not among them."""
    names = [name for name in trusts[0] if name != "random"]
    if not names:
        raise ValueError("There is no map to choose from; test one besides the random one.")
    scores = {name: sum(of[name].score for of in trusts) / len(trusts) for name in names}
    best, *others = sorted(names, key=scores.get, reverse=True)
    band = sum(of[best].band for of in trusts) / len(trusts)
    if scores[best] <= band:
        return Best(None)
    return Best(best, scores[best], *((others[0], scores[others[0]]) if others else ()))


def spoken(method: str) -> str:
    return method.replace("_", " ")


def trust(explanation: Explanation, heat: Tensor, label: Label = None, **options) -> Trust:
    """The trust score of one map of this picture; options as for `trust_all`."""
    return trust_all(explanation, {"map": heat}, label, **options)["map"]
