"""Two models on one picture, or two pictures in one model: both answers, both maps, their difference.

The two need not have the same number of layers, heads, patches or labels. `matched` asks the second one
what the first one was asked, in the same place:

    layer, head   the first is the first, the last is the last, and between them i of n is
                  round(i * (m - 1) / (n - 1)) of m
    patch         one picture: the patch that shows the same point of it
                  two pictures: the patch in the same place of what the model saw
    label         by name

For the difference, both maps are laid on one grid. It covers all that either model saw, and its cells are
about as large as the smaller patches. A patch is shared out over the cells that it covers, by area: the
sum of a map stays what it was, and maps on the same grid stay as they are. Shares of attention are
compared as they are; other class maps have no common unit (contribution grows with the number of layers),
so each is divided by the sum of its absolute values.
"""

import math
from dataclasses import asdict, dataclass, replace

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from PIL import Image
from torch import Tensor

from vit_demo import render
from vit_demo.explain import Explanation, Label
from vit_demo.export import resolved, shown_map
from vit_demo.labels import same_labels, short
from vit_demo.map_settings import CLASS_MAPS, PLAIN_MAPS, MapSettings
from vit_demo.trust import spearman
from vit_demo.validate import choice
from vit_demo.view import View

Box = tuple[float, float, float, float]  # left, top, right, bottom
SHARES = (*PLAIN_MAPS, "gradient_rollout")  # their numbers mean the same in every model
MOST_LABELS = 10


@dataclass(frozen=True)
class SharedLabel:
    """A label and its probability on both sides; None: the model has no such label."""

    label: str
    first: float | None
    second: float | None
    index: int | None  # of the first one's class

    @property
    def apart(self) -> float:
        return (self.first or 0.0) - (self.second or 0.0)


@dataclass(frozen=True)
class Comparison:
    """Two explanations beside each other. All differences are the first minus the second."""

    first: Explanation
    second: Explanation
    settings: tuple[MapSettings, MapSettings]
    heats: tuple[Tensor, Tensor]  # the two maps, each on its own grid and in its own unit
    frame: Box  # what the common grid covers: pixels of the one picture, or (0, 0, 1, 1) of each
    maps: Tensor  # (2, rows, cols) on the common grid, float64
    seen: Tensor  # (rows, cols): whether at least half of a cell lies in what each model saw

    @property
    def difference(self) -> Tensor:
        """(rows, cols): above zero where the first map has more."""
        return self.maps[0] - self.maps[1]

    @property
    def correlation(self) -> float:
        """How alike the two rank the cells that both saw: 1 the same order, 0 unrelated, -1 reversed."""
        first, second = self.maps.float()  # what differs by rounding alone is a tie
        return spearman(first[self.seen], second[self.seen])

    @property
    def labels(self) -> list[SharedLabel]:
        return shared_labels(self.first, self.second)

    @property
    def agree(self) -> bool | None:
        """Whether both give the same answer; None if one has no labels, or not the other's answer."""
        return same_answer(self.first, self.second)

    def arrays(self) -> dict[str, np.ndarray]:
        """The numbers: `first` and `second` on their own grids, the others on the common one."""
        first, second = self.heats
        arrays = {
            "first": first,
            "second": second,
            "first_common": self.maps[0],
            "second_common": self.maps[1],
            "difference": self.difference,
            "seen": self.seen,
        }
        return {name: tensor.numpy() for name, tensor in arrays.items()}

    def describe(self) -> dict:
        """Both answers and what lies between them, in words that JSON knows."""
        rows, cols = self.seen.shape
        sides = {}
        for side, own, heat in zip(("first", "second"), self.settings, self.heats, strict=True):
            about = {"settings": told(own), "sum": float(heat.sum())}
            sides[side] = getattr(self, side).describe() | about
        return sides | {
            "same_picture": same_picture(self.first, self.second),
            "agree": self.agree,
            "labels": [asdict(label) for label in self.labels],
            "grid": [rows, cols],
            "frame": list(self.frame),
            "correlation": self.correlation,
        }


def compare(
    first: Explanation, second: Explanation, settings: MapSettings | None = None
) -> Comparison:
    """The map that `settings` ask of the first (rollout, if not told), the same of the second, and their
    difference. For a class map without a label, each is asked about its own answer."""
    settings = settings or MapSettings()
    both = [resolved(first, settings), matched(settings, first, second)]
    if settings.is_class_map:
        both = [
            replace(own, label=e.label_index(own.label))
            for e, own in zip((first, second), both, strict=True)
        ]
    heats = tuple(shown_map(e, own) for e, own in zip((first, second), both, strict=True))
    boxes = places(first, second)
    frame = around(*boxes)
    grid = common_grid(frame, boxes, (first.grid, second.grid))
    units = [heat.double() if settings.map in SHARES else share_of_all(heat) for heat in heats]
    maps = [on_grid(heat, box, frame, grid) for heat, box in zip(units, boxes, strict=True)]
    seen = torch.stack([coverage(box, frame, grid) for box in boxes]).amin(dim=0) > 0.5 - 1e-9
    return Comparison(first, second, tuple(both), heats, frame, torch.stack(maps), seen)


# The same question to both


def question(
    first: Explanation,
    method: str = "rollout",
    *,
    layer: int = -1,
    head: int | None = None,
    query: tuple[int, int] | None = None,
    label: Label = None,
    minus: Label = None,
) -> MapSettings:
    """What is asked of the first, from words: labels by name or number, None for what is not given."""
    choice("method", method, (*PLAIN_MAPS, *CLASS_MAPS))
    if head is not None and method not in ("head_rollout", "attention"):
        raise ValueError(
            "A head goes with the method head_rollout or attention; choose one of them."
        )
    if method not in CLASS_MAPS and (label is not None or minus is not None):
        raise ValueError(f"A label goes with a class map; choose the method {CLASS_MAPS[0]}.")
    return MapSettings(
        map=method,
        layer=layer,
        head="mean" if head is None else head,
        query=query,
        label=None if label is None else first.label_index(label),
        minus=None if minus is None else first.label_index(minus),
    )


def matched(settings: MapSettings, first: Explanation, second: Explanation) -> MapSettings:
    """What `settings` ask of the first, asked of the second: layer, head, patch and labels that match."""
    changes = {"layer": matching(first.layer_index(settings.layer), first.layers, second.layers)}
    if not isinstance(settings.head, str):
        changes["head"] = matching(first.head_index(settings.head), first.heads, second.heads)
    if settings.query is not None:
        changes["query"] = matching_patch(first, second, settings.query)
        if changes["query"] is None:
            raise ValueError(
                "The second one did not see this patch of the first; choose another patch, or "
                "let both see the whole picture (fit pad or stretch)."
            )
    for name in ("label", "minus"):
        label = getattr(settings, name)
        if label is None and (name == "minus" or settings.minus is None):
            continue
        changes[name] = matching_label(first, second, first.label_index(label))
    return replace(settings, **changes)


def matching(index: int, count: int, others: int) -> int:
    """The index in the same relative place among `others`. What is alone matches the last."""
    if count == 1:
        return others - 1
    return math.floor(index * (others - 1) / (count - 1) + 0.5)


def matching_patch(
    first: Explanation, second: Explanation, patch: tuple[int, int]
) -> tuple[int, int] | None:
    """The second one's patch in the place of the first one's; None if it did not see that place."""
    rows, cols = first.grid
    row, col = divmod(first.query_tokens(patch).start - first.config.prefix_tokens, cols)
    if same_picture(first, second):
        left, top, right, bottom = first.view.box
        x = left + (col + 0.5) * (right - left) / cols
        y = top + (row + 0.5) * (bottom - top) / rows
        return second.view.patch_at(x, y)
    return tuple(
        math.floor((index + 0.5) * others / count)
        for index, count, others in zip((row, col), first.grid, second.grid, strict=True)
    )


def matching_label(first: Explanation, second: Explanation, index: int) -> int:
    """The second one's class of the same name."""
    second.require_labels()
    found = same_labels(first.labels, second.labels).get(index)
    if found is None:
        raise ValueError(
            f"{second.model_name} has no label {first.labels[index]!r}; leave the label out to ask "
            "each model about its own answer."
        )
    return found


def same_picture(first: Explanation, second: Explanation) -> bool:
    one, other = first.view.original, second.view.original
    same_size = first.view.size == second.view.size and one.size == other.size
    return same_size and (one is other or one.tobytes() == other.tobytes())


# Both maps on one grid


def places(first: Explanation, second: Explanation) -> tuple[Box, Box]:
    """Where the two maps lie: in the one picture, or each over all that was seen of its own."""
    if same_picture(first, second):
        return first.view.box, second.view.box
    return (0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, 1.0)


def bounds(first: Explanation, second: Explanation) -> Box:
    """Where there is picture, in the same coordinates."""
    width, height = first.view.size if same_picture(first, second) else (1, 1)
    return 0.0, 0.0, float(width), float(height)


def around(one: Box, other: Box) -> Box:
    """The smallest box that holds both."""
    return (*map(min, one[:2], other[:2]), *map(max, one[2:], other[2:]))


def common_grid(
    frame: Box, boxes: tuple[Box, Box], grids: tuple[tuple[int, int], tuple[int, int]]
) -> tuple[int, int]:
    """Rows and columns over the frame, with cells about as large as the smaller patches."""
    counts = []
    for axis, low in ((0, 1), (1, 0)):  # rows lie between top and bottom, columns left and right
        length = frame[low + 2] - frame[low]
        fine = [
            grid[axis] * length / (box[low + 2] - box[low])
            for box, grid in zip(boxes, grids, strict=True)
        ]
        counts.append(math.floor(max(fine) + 0.5))
    return counts[0], counts[1]


def on_grid(heat: Tensor, box: Box, frame: Box, grid: tuple[int, int]) -> Tensor:
    """A map (rows, cols) over `box` on another grid over `frame`, which holds the box. Each patch is
    shared out by area, so that the sum stays what it was."""
    down = shares(box[1], box[3], heat.shape[0], frame[1], frame[3], grid[0])
    across = shares(box[0], box[2], heat.shape[1], frame[0], frame[2], grid[1])
    return down @ heat.double() @ across.T


def shares(
    start: float, stop: float, count: int, frame_start: float, frame_stop: float, cells: int
) -> Tensor:
    """(cells, count): the share of each of `count` pieces of a line that lies in each cell of the frame.
    Columns sum to 1."""
    pieces = torch.linspace(start, stop, count + 1, dtype=torch.float64)
    edges = torch.linspace(frame_start, frame_stop, cells + 1, dtype=torch.float64)[:, None]
    common = torch.minimum(pieces[1:], edges[1:]) - torch.maximum(pieces[:-1], edges[:-1])
    common = common.clamp_min(0)
    return common / common.sum(dim=0)


def coverage(box: Box, frame: Box, grid: tuple[int, int]) -> Tensor:
    """(rows, cols): the share of each cell that lies in the box."""
    inside = []
    for axis, low in ((0, 1), (1, 0)):
        edges = torch.linspace(frame[low], frame[low + 2], grid[axis] + 1, dtype=torch.float64)
        common = edges[1:].clamp_max(box[low + 2]) - edges[:-1].clamp_min(box[low])
        inside.append(common.clamp_min(0) * grid[axis] / (frame[low + 2] - frame[low]))
    return torch.outer(*inside)


def share_of_all(heat: Tensor) -> Tensor:
    """Of a map without a unit: each value as a share of all values together, whatever their sign."""
    heat = heat.double()
    return heat / heat.abs().sum().clamp_min(1e-300)


# The answers


def same_answer(first: Explanation, second: Explanation) -> bool | None:
    if not (first.labels and second.labels):
        return None
    matches = same_labels(first.labels, second.labels)
    mine, others = first.label_index(), second.label_index()
    if mine not in matches and others not in matches.values():
        return None
    return matches.get(mine) == others


def shared_labels(
    first: Explanation, second: Explanation, top: int = MOST_LABELS
) -> list[SharedLabel]:
    """The likely labels of both, those first on which the two are furthest apart."""
    if not (first.labels and second.labels):
        return []
    matches = same_labels(first.labels, second.labels)
    back = {there: here for here, there in matches.items()}
    p, q = (e.logits.double().softmax(dim=-1).tolist() for e in (first, second))
    pairs = {(label.index, matches.get(label.index)) for label in first.top(top)}
    pairs |= {(back.get(label.index), label.index) for label in second.top(top)}
    found = [
        SharedLabel(
            second.labels[there] if here is None else first.labels[here],
            None if here is None else p[here],
            None if there is None else q[there],
            here,
        )
        for here, there in pairs
    ]
    return sorted(found, key=lambda label: (-abs(label.apart), label.label))


def told(settings: MapSettings) -> dict:
    """The settings that say which map it is; colours are not among them."""
    names = ("map", "layer", "head", "query", "direction", "below", "part", "residual", "discard")
    known = asdict(settings)
    return {name: known[name] for name in (*names, "label", "minus")}


# As a picture


def figure(comparison: Comparison) -> Image.Image:
    """One page: both maps, their difference on the common grid, both answers, the labels between them."""
    page = Figure(figsize=(14, 8.6), facecolor=render.PAPER, layout="constrained")
    (one, two, between), (left, right, labels) = page.subplots(2, 3, height_ratios=[1.15, 1])
    sides = zip(("first", "second"), (one, two), (left, right), strict=True)
    for (name, axes, answer), own, heat in zip(
        sides, comparison.settings, comparison.heats, strict=True
    ):
        explanation = getattr(comparison, name)
        draw = render.signed_overlay if own.is_signed else render.overlay
        axes.imshow(draw(explanation.view.picture, heat))
        axes.set_title(f"{name}: {what(explanation, own)}", fontsize=10, color=render.INK)
        axes.axis("off")
        render.draw_answer(answer, explanation)
    draw_difference(page, between, comparison)
    draw_labels(labels, comparison.labels)
    return render.drawn(page)


def what(explanation: Explanation, settings: MapSettings) -> str:
    """A map in words; layers, heads and patches count from 1, as in all pictures."""
    words = settings.map.replace("_", " ")
    if settings.is_class_map:
        words += f" of {short(explanation.labels[settings.label])}"
        return words + (
            f" minus {short(explanation.labels[settings.minus])}"
            if settings.minus is not None
            else ""
        )
    words += f", layer {settings.layer + 1} of {explanation.layers}"
    if not isinstance(settings.head, str):
        words += f", head {settings.head + 1}"
    if settings.query is not None:
        words += ", patch {}, {}".format(*(index + 1 for index in settings.query))
    return words


def draw_difference(page: Figure, axes, comparison: Comparison) -> None:
    """The difference where both saw something; the rest is dim. Under it the one picture, or nothing."""
    (rows, cols), seen = comparison.seen.shape, comparison.seen
    if same_picture(comparison.first, comparison.second):
        picture = cut_out(comparison.first.view, comparison.frame)
    else:
        picture = Image.new("RGB", (32 * cols, 32 * rows), render.PAPER)
    difference = comparison.difference * seen
    low, high = render.scale_around_zero(difference)
    drawn = render.signed_overlay(picture, difference)
    dim = Image.blend(picture.convert("L").convert("RGB"), Image.new("RGB", picture.size), 0.6)
    mask = Image.fromarray(seen.numpy()).resize(drawn.size, Image.Resampling.NEAREST)
    axes.imshow(Image.composite(drawn, dim.resize(drawn.size), mask))
    axes.axis("off")
    words = f"first minus second, on {rows} x {cols} cells"
    if not seen.all():
        words += " (dim: one of them did not see it)"
    words += f"\nrank correlation {comparison.correlation:+.2f}"
    axes.set_title(words, fontsize=10, color=render.INK)
    colours = matplotlib.cm.ScalarMappable(
        matplotlib.colors.Normalize(low, high), render.DIFFERENCES
    )
    percent = PercentFormatter(1, decimals=1 if high >= 0.01 else 2)
    page.colorbar(colours, ax=axes, shrink=0.7, format=percent, label="red: more in the first")


def cut_out(view: View, frame: Box, side: int = 448) -> Image.Image:
    """What the frame covers of the picture, of a size to look at."""
    scale = [kept / whole for kept, whole in zip(view.original.size, view.size, strict=True)] * 2
    part = view.original.crop([round(e * s) for e, s in zip(frame, scale, strict=True)])
    scale = side / max(part.size)
    return part.resize([max(1, round(length * scale)) for length in part.size])


def draw_labels(axes, labels: list[SharedLabel]) -> None:
    """Each label as a line from its probability on one side to that on the other."""
    axes.set_title("the labels they disagree on", fontsize=10, color=render.INK)
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    if not labels:
        axes.text(0.5, 0.5, "no labels to compare", ha="center", va="center", color=render.INK)
        axes.axis("off")
        return
    shown = labels[:MOST_LABELS][::-1]
    for row, label in enumerate(shown):
        ends = [p for p in (label.first, label.second) if p is not None]
        if len(ends) == 2:
            axes.plot(ends, [row, row], color="#c6cbd2", lw=2, zorder=1)
        for value, colour in ((label.first, "#b3261e"), (label.second, "#2458c4")):
            if value is not None:
                axes.scatter(value, row, color=colour, s=36, zorder=2)
    axes.set_yticks(range(len(shown)), [short(label.label, 24) for label in shown])
    axes.set_xlim(-0.03, 1.03)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.tick_params(length=0, labelsize=8)
    axes.set_xlabel("red: first, blue: second; no dot: not one of its labels", fontsize=8)
