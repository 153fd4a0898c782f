"""Numbers about maps to pictures: how maps did in the tests, and what each head does to the answer.

Everything is said twice, in colour and in words or numbers. Layers and heads are counted from 1, as
in all pictures.
"""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from PIL import Image
from torch import Tensor

from vit_demo.explain import Explanation
from vit_demo.labels import short
from vit_demo.map_settings import DIFFERENCES
from vit_demo.render import (
    ACCENT,
    INK,
    PAPER,
    drawn,
    method_overlay,
    scale_around_zero,
)
from vit_demo.trust.curves import Trust
from vit_demo.trust.randomisation import RandomWeights

GREY, FAINT, WARM = "#5b626b", "#c6cbd2", "#c8581d"  # words, chance, and what is bad for a map
COLOUR_OF = {"much better": ACCENT, "better": ACCENT, "chance": GREY, "worse": WARM}
ALL_ORDERS = "#e9ebee"
PERCENT = PercentFormatter(1, decimals=0)


def sheet(width: float, height: float, margin: float = 0.1) -> Figure:
    """An empty page, all in inches, with a margin around everything that is drawn on it."""
    page = Figure(figsize=(width, height), dpi=130, facecolor=PAPER, layout="constrained")
    page.get_layout_engine().set(w_pad=margin, h_pad=margin)
    return page


def trust(
    explanation: Explanation, maps: dict[str, Tensor], trusts: dict[str, Trust]
) -> Image.Image:
    """The strip of maps with their scores; under each, what happens when patches go in its order."""
    columns, first = len(maps) + 1, next(iter(trusts.values()))
    page = sheet(2.3 * columns, 5.2)
    above, below = page.subplots(2, columns, squeeze=False, height_ratios=[1, 0.95])
    view = explanation.view
    for axes in above:
        axes.axis("off")
    above[0].imshow(view.picture, cmap="gray")
    words = f"{short(first.label, 22)}\n{float(first.deletion[0]):.1%}"
    above[0].set_title(words, fontsize=10, color=INK)
    name_the_curves(below[0])
    for column, (name, heat) in enumerate(maps.items(), start=1):
        result = trusts[name]
        above[column].imshow(method_overlay(view.picture, heat, name, least_size=224))
        words = f"{name.replace('_', ' ')}\n{result.score:+.3f}"
        colour = COLOUR_OF[result.verdict]
        above[column].set_title(words, fontsize=10, color=colour, fontweight="bold")
        draw_curves(below[column], result)
    top = max(axes.get_ylim()[1] for axes in below[1:])
    for axes in below[1:]:
        axes.set_ylim(0, top)
    for axes in below[2:]:
        axes.set_yticklabels([])
    return drawn(page)


def draw_curves(axes: Axes, result: Trust) -> None:
    """The probability while patches go: by the map from both ends, and in random orders."""
    kept = result.kept
    axes.fill_between(kept, result.random.amin(0), result.random.amax(0), color=ALL_ORDERS)
    axes.plot(kept, result.random.mean(0), color=GREY, lw=1, ls=(0, (4, 3)))
    axes.plot(kept, result.insertion, color=ACCENT, lw=1.8)
    axes.plot(kept, result.deletion, color=WARM, lw=1.8)
    axes.set_xlim(1, 0)
    curves = (result.deletion, result.insertion, result.random)
    axes.set_ylim(0, 1.05 * max(float(curve.max()) for curve in curves) + 1e-9)
    better = "no better" if result.verdict == "chance" else result.verdict
    verdict = f"{better} than chance"
    words, colour = f"{verdict} (\u00b1{result.band:.3f})", COLOUR_OF[result.verdict]
    axes.set_title(words, fontsize=8, color=colour)
    axes.set_xticks([1, 0.5, 0])
    axes.xaxis.set_major_formatter(PERCENT)
    axes.yaxis.set_major_formatter(PERCENT)
    axes.tick_params(labelsize=7, colors=GREY, length=2)
    axes.set_xlabel("patches left", fontsize=8, color=GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_color(FAINT)


def name_the_curves(axes: Axes) -> None:
    """In the place under the picture: what the lines are, and what is good."""
    lines = (
        ("only what is marked is left", "high is good", ACCENT, "-", 1.8),
        ("what is marked is gone", "low is good", WARM, "-", 1.8),
        ("random orders", "grey: all of them", GREY, (0, (4, 3)), 1),
    )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    axes.text(0, 0.95, "probability of the label", fontsize=8.5, color=INK, va="center")
    for row, (what, good, colour, style, width) in enumerate(lines):
        y = 0.74 - 0.26 * row
        if row == 2:
            axes.fill_between([0, 0.16], y - 0.06, y + 0.06, color=ALL_ORDERS)
        axes.plot([0, 0.16], [y, y], color=colour, ls=style, lw=width)
        axes.text(0.22, y + 0.045, what, fontsize=8, color=INK, va="center")
        axes.text(0.22, y - 0.055, good, fontsize=7.5, color=GREY, va="center")


def random_weights(explanation: Explanation, checks: dict[str, RandomWeights]) -> Image.Image:
    """One row a method: its map while the blocks become random from the top down."""
    steps = explanation.layers + 1
    tile = 1.15
    page = sheet(1.9 + tile * steps, 0.8 + (tile + 0.25) * len(checks), margin=0.05)
    places = page.subplots(len(checks), steps + 1, squeeze=False, width_ratios=[1.5] + [1] * steps)
    for row, (name, check) in enumerate(checks.items()):
        words, colour = ("passes", ACCENT) if check.passed else ("fails", WARM)
        head = places[row, 0]
        head.set(xlim=(0, 1), ylim=(0, 1))
        head.text(0, 0.58, name.replace("_", " "), fontsize=10, color=INK, va="center")
        head.text(0, 0.38, words, fontsize=10, color=colour, va="center", fontweight="bold")
        head.axis("off")
        for step, axes in enumerate(places[row, 1:]):
            heat, picture = check.heats[step], explanation.view.picture
            axes.imshow(method_overlay(picture, heat, name, least_size=112))
            axes.axis("off")
            above = f"{float(check.correlations[step]):+.2f}"
            if row == 0:
                last = "all random" if step == explanation.layers else f"{step} random"
                above = f"{'as learnt' if step == 0 else last}\n{above}"
            axes.set_title(above, fontsize=8, color=INK if step else GREY)
    words = "Blocks made random from the last one down; above each map its rank correlation with the first"
    page.suptitle(words, fontsize=10, color=INK)
    return drawn(page)


def heads(changes: Tensor, label: str) -> Image.Image:
    """What happens to the label's probability without each single head, in percentage points."""
    points = 100 * np.asarray(changes, dtype=np.float64)
    layers, count = points.shape
    scale = scale_around_zero(points)
    page = sheet(max(4.8, 1.8 + 0.62 * count), 1.6 + 0.4 * layers)
    axes = page.subplots()
    colours = Normalize(*scale)
    axes.imshow(points, cmap=DIFFERENCES, norm=colours, origin="lower", aspect="auto")
    for layer, head in np.ndindex(layers, count):
        value = points[layer, head]
        ink = "white" if abs(value) > 0.55 * scale[1] else INK
        text = f"{value:+.1f}" if abs(value) >= 0.05 else "0"
        axes.text(head, layer, text, ha="center", va="center", fontsize=8, color=ink)
    axes.set_xticks(range(count), [str(head + 1) for head in range(count)])
    axes.set_yticks(range(layers), [str(layer + 1) for layer in range(layers)])
    axes.set_xlabel("head", color=INK)
    axes.set_ylabel("layer", color=INK)
    axes.tick_params(length=0, labelsize=8, colors=INK)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(count + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(layers + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=PAPER, lw=2)
    axes.tick_params(which="minor", length=0)
    words = f"'{short(label)}' without this head, in percentage points"
    axes.set_title(words, fontsize=10, color=INK)
    bar = page.colorbar(matplotlib.cm.ScalarMappable(colours, DIFFERENCES), ax=axes, aspect=30)
    bar.set_label("blue: the head speaks for the label", fontsize=8, color=GREY)
    bar.ax.tick_params(labelsize=7, colors=GREY)
    bar.outline.set_visible(False)
    return drawn(page)


def perturbation(
    accuracies: dict[str, dict[str, list[float]]],
    areas: dict[str, dict[str, float]],
    shares: Sequence[float],
    pictures: int,
) -> Image.Image:
    """The perturbation test: accuracy while pixels go, the most marked first and the least first."""
    page = sheet(11, 4.6)
    titles = {
        "positive": "most marked pixels first (lower is better)",
        "negative": "least marked pixels first (higher is better)",
    }
    for axes, (way, title) in zip(page.subplots(1, 2, sharey=True), titles.items(), strict=True):
        colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(accuracies)))
        for (name, of), colour in zip(accuracies.items(), colours, strict=True):
            chance = name == "random"
            style = {"color": "#8a9099", "ls": "--"} if chance else {"color": colour, "marker": "o"}
            text = f"{name}  {areas[name][way]:.2f}"
            axes.plot(shares, of[way], label=text, markersize=3.5, **style)
        axes.set_title(title, fontsize=10, color=INK)
        axes.set_xlabel("share of pixels made black")
        axes.xaxis.set_major_formatter(PERCENT)
        axes.yaxis.set_major_formatter(PERCENT)
        axes.set_ylim(-0.03, 1.03)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(title="area x 100", fontsize=8, title_fontsize=8, frameon=False)
    page.axes[0].set_ylabel(f"top-1 accuracy ({pictures} pictures)")
    return drawn(page)
