"""Maps to pictures: overlay, difference, wall of heads, animation, overview figure.

A map is drawn on exactly the pixels the model saw, one flat block a patch, because that is all the
model knows; `smooth` interpolates between the patches and is an option. Colour scales are
perceptually uniform and safe for colour-blind readers, and each picture says what its colours mean.
"""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter
from PIL import Image, ImageColor, ImageDraw, ImageFont
from torch import Tensor

from vit_demo.explain import Explanation
from vit_demo.labels import short
from vit_demo.map_settings import COLOUR_MAPS, DIFFERENCES, SIGNED_MAPS, unknown_colours

INK, PAPER, ACCENT = "#1b1f24", "#ffffff", "#2a68d4"
CRISP_SIDE = 64  # pictures up to this side are shown with their pixels as blocks, and kept lossless
Scale = tuple[float, float]


def scale_of(maps: Tensor | np.ndarray | list[np.ndarray]) -> Scale:
    """From the smallest to the largest value; the legend beside it gives both as numbers."""
    maps = np.asarray(maps, dtype=np.float64)
    low, high = float(maps.min()), float(maps.max())
    return low, max(high, low + 1e-12)


def scale_around_zero(maps: Tensor | np.ndarray) -> Scale:
    """As far below zero as above it: zero is the middle of the colours, whatever the values are."""
    far = max(float(np.abs(np.asarray(maps, dtype=np.float64)).max()), 1e-12)
    return -far, far


def colourise(values: np.ndarray, colour_map: str, scale: Scale) -> np.ndarray:
    """Values to RGB bytes (..., 3)."""
    if colour_map not in (*COLOUR_MAPS, DIFFERENCES):
        raise unknown_colours(colour_map)
    low, high = scale
    share = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    return matplotlib.colormaps[colour_map](share.clip(0, 1), bytes=True)[..., :3]


def overlay(
    picture: Image.Image,
    heat: Tensor | np.ndarray,
    *,
    opacity: float = 0.55,
    colour_map: str = "inferno",
    smooth: bool = False,
    scale: Scale | None = None,
    least_size: int = 448,
) -> Image.Image:
    """A map (rows, cols) over the picture the model saw. Small pictures are enlarged, uncut."""
    heat = np.asarray(heat, dtype=np.float32)
    factor = max(1, round(least_size / max(picture.size)))
    size = (picture.width * factor, picture.height * factor)
    if smooth:
        heat = np.asarray(Image.fromarray(heat).resize(size, Image.Resampling.BICUBIC))
    colours = Image.fromarray(colourise(heat, colour_map, scale or scale_of(heat)))
    colours = colours.resize(size, Image.Resampling.NEAREST)
    grey = picture.convert("L").convert("RGB").resize(size, Image.Resampling.NEAREST)
    return Image.blend(grey, colours, opacity)  # on grey, every colour belongs to the map


def signed_overlay(
    picture: Image.Image, heat: Tensor | np.ndarray, *, opacity: float = 0.7, **options
) -> Image.Image:
    """A map with values on both sides of zero: red above, blue below, white at zero."""
    scale = scale_around_zero(heat)
    return overlay(picture, heat, colour_map=DIFFERENCES, scale=scale, opacity=opacity, **options)


def method_overlay(
    picture: Image.Image, heat: Tensor | np.ndarray, method: str, **options
) -> Image.Image:
    """A method's map in the colours that fit it."""
    draw = signed_overlay if method in SIGNED_MAPS else overlay
    return draw(picture, heat, **options)


def difference(
    picture: Image.Image, heat: Tensor | np.ndarray, more: str, less: str, **options
) -> Image.Image:
    """What speaks for one label rather than another, over the picture: red for `more`, blue for
    `less`, white where nothing decides between them; below it the scale, the same on both sides."""
    scale = scale_around_zero(heat)
    shown = signed_overlay(picture, heat, **options)
    canvas = Image.new("RGB", (shown.width, shown.height + 64), PAPER)
    canvas.paste(shown)
    draw, font, y = ImageDraw.Draw(canvas), ImageFont.load_default(13), shown.height + 12
    width = min(320, shown.width - 40)
    left = (shown.width - width) // 2
    bar = colourise(np.linspace(*scale, width)[None].repeat(12, axis=0), DIFFERENCES, scale)
    canvas.paste(Image.fromarray(bar), (left, y))
    middle = left + width / 2
    draw.rectangle((left - 1, y - 1, left + width, y + 12), outline="#c6cbd2")
    draw.line((middle, y - 1, middle, y + 16), INK)
    for x, text, anchor in (
        (left, f"{scale[0]:.3g}  {short(less, 18)}", "la"),
        (middle, "0", "ma"),
        (left + width, f"{short(more, 18)}  +{scale[1]:.3g}", "ra"),
    ):
        draw.text((x, y + 20), text, INK, font, anchor=anchor)
    return canvas


def wall(
    maps: Tensor | np.ndarray,
    *,
    shared: bool = True,
    colour_map: str = "inferno",
    tile: int = 56,
) -> Image.Image:
    """Every head (layers, heads, rows, cols) as a small map: one row a layer, the last on top.

    `shared`: one colour scale for all, so that tiles can be compared; otherwise each has its own.
    """
    maps = np.asarray(maps, dtype=np.float32)
    layers, heads, rows, cols = maps.shape
    width, height = max(1, tile * cols // max(rows, cols)), max(1, tile * rows // max(rows, cols))
    gap, left, top, bottom = 4, 64, 24, 40
    canvas_width = left + heads * (width + gap) + gap
    size = (max(canvas_width, 460), top + layers * (height + gap) + bottom)
    canvas, font = Image.new("RGB", size, PAPER), ImageFont.load_default(12)
    draw = ImageDraw.Draw(canvas)
    for head in range(heads):
        x = left + head * (width + gap) + width / 2
        draw.text((x, top / 2), f"{head + 1}", INK, font, anchor="mm")
    draw.text((left - 10, top / 2), "head", INK, font, anchor="rm")
    of_all = scale_of(maps)
    for layer in range(layers):
        y = top + (layers - 1 - layer) * (height + gap)
        draw.text((left - 10, y + height / 2), f"layer {layer + 1}", INK, font, anchor="rm")
        for head in range(heads):
            scale = of_all if shared else scale_of(maps[layer, head])
            small = Image.fromarray(colourise(maps[layer, head], colour_map, scale))
            small = small.resize((width, height), Image.Resampling.NEAREST)
            canvas.paste(small, (left + head * (width + gap), y))
    words = "share of attention on a patch" if shared else "each map on a scale of its own"
    ends = tuple(f"{end:.2%}" for end in of_all) if shared else ("least", "most")
    legend(draw, canvas, (left, size[1] - 26), colour_map, ends, words, font)
    return canvas


def sheets(
    picture: Image.Image,
    maps: Tensor | np.ndarray,
    *,
    words: str,
    quantity: str,
    grid: tuple[int, int],
    query: tuple[int, int] | None = None,
    signed: bool = False,
    percent: bool = True,
    layers: bool = False,
    opacity: float = 0.55,
    colour_map: str = "inferno",
    smooth: bool = False,
) -> list[Image.Image]:
    """Each of some maps (maps, rows, cols) over the picture, below it its words, its own scale, and the
    `quantity` that its colours measure. `layers`: they are a model's layers, and each sheet says which.
    `percent`: the numbers are shares, or with a sign differences of shares.

    The patch that asks has a frame. It keeps most of what it is asked about, and would leave nothing
    but darkness for the others: the scale does not reach up to it.
    """
    maps = np.asarray(maps, dtype=np.float32)
    others = np.ones(maps.shape[1:], bool)
    if query is not None:
        others[query] = False
    scales = [scale_around_zero(m[others]) if signed else scale_of(m[others]) for m in maps]
    colour_map = DIFFERENCES if signed else colour_map
    looks = {"opacity": opacity, "colour_map": colour_map, "smooth": smooth}
    pictures = [
        overlay(picture, heat, scale=scale, **looks)
        for heat, scale in zip(maps, scales, strict=True)
    ]
    font, room, done = ImageFont.load_default(14), pictures[0].width - 20, []
    ends = [
        scale_words(scale, signed, percent, query is not None and abs(heat[query]) > scale[1])
        for heat, scale in zip(maps, scales, strict=True)
    ]
    beside = max(legend_width(two, quantity, font) for two in ends) <= room  # on one line, in all
    below = [] if beside else wrapped(quantity, room, font)
    for layer, (shown, two) in enumerate(zip(pictures, ends, strict=True)):
        draw = ImageDraw.Draw(shown)
        if query is not None:
            sides = zip(query[::-1], (shown.width / grid[1], shown.height / grid[0]), strict=True)
            (left, width), (top, height) = ((at * side, side) for at, side in sides)
            draw.rectangle((left, top, left + width - 1, top + height - 1), outline="#fff", width=3)
        lines = [
            *([f"layer {layer + 1} of {len(maps)}"] if layers else []),
            *wrapped(words, room, font),
        ]
        height = shown.height + 20 * (len(lines) + len(below)) + 40
        sheet = Image.new("RGB", (shown.width, height), PAPER)
        sheet.paste(shown)
        draw, y = ImageDraw.Draw(sheet), shown.height + 16
        for line in lines:
            draw.text((10, y), line, INK, font, anchor="lm")
            y += 20
        if layers:
            end = (shown.width - 130) * (layer + 1) / len(maps)
            draw.rectangle((120, shown.height + 14, 120 + end, shown.height + 18), fill=ACCENT)
        legend(draw, sheet, (10, y + 2), colour_map, two, quantity if beside else "", font)
        for k, line in enumerate(below):
            draw.text((10, y + 27 + 20 * k), line, INK, font, anchor="lm")
        done.append(sheet)
    return done


def scale_words(scale: Scale, signed: bool, percent: bool, cut: bool) -> tuple[str, str]:
    """Both ends of a scale as a reader has them: shares, percentage points, or plain numbers; `cut`:
    there are values beyond."""
    if percent and signed:
        digits = ".1f" if scale[1] >= 0.1 else ".2f" if scale[1] >= 0.001 else ".2g"
        low, high = (f"{100 * end:+{digits}} pp" for end in scale)
    else:
        low, high = (f"{end:.2%}" if percent else f"{end:.3g}" for end in scale)
    return ("<= " if cut and signed else "") + low, (">= " if cut else "") + high


def legend_width(ends: tuple[str, str], words: str, font: ImageFont.FreeTypeFont) -> float:
    return font.getlength(ends[0]) + 108 + font.getlength(f"{ends[1]}   {words}")


def for_gif(sheet: Image.Image, colour_map: str) -> Image.Image:
    """A GIF's frame has 256 colours, and those of a small legend would not be among them: 64 are the
    colour map's own, three the paper's, the others the picture's."""
    ramp = colourise(np.linspace(0, 1, 64), colour_map, (0, 1)).ravel().tolist()
    paper = [part for colour in (INK, PAPER, ACCENT) for part in ImageColor.getrgb(colour)]
    rest = sheet.quantize(256 - 64 - 3).getpalette()
    palette = Image.new("P", (1, 1))
    palette.putpalette([*ramp, *paper, *rest])
    return sheet.quantize(palette=palette, dither=Image.Dither.NONE)


def wrapped(text: str, width: float, font: ImageFont.FreeTypeFont) -> list[str]:
    """The text in lines that are no wider than this."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def legend(
    draw: ImageDraw.ImageDraw,
    canvas: Image.Image,
    corner: tuple[int, int],
    colour_map: str,
    ends: tuple[str, str],
    words: str,
    font: ImageFont.ImageFont,
) -> None:
    """A small colour bar with its two ends and what is measured."""
    x, y = corner
    bar = colourise(np.linspace(0, 1, 96)[None].repeat(10, axis=0), colour_map, (0, 1))
    draw.text((x, y + 5), ends[0], INK, font, anchor="lm")
    x += draw.textlength(ends[0], font) + 6
    canvas.paste(Image.fromarray(bar), (int(x), y))
    draw.text((x + 102, y + 5), f"{ends[1]}   {words}", INK, font, anchor="lm")


def figure(
    explanation: Explanation,
    heat: Tensor | np.ndarray,
    heads: dict[int, np.ndarray],
    *,
    title: str,
    heads_title: str,
    colour_map: str = "inferno",
    smooth: bool = False,
) -> Image.Image:
    """One page: the picture with what the model saw of it, the answer, the map, the heads."""
    columns = min(8, len(heads))
    lines = -(-len(heads) // columns)
    page = Figure(figsize=(13, 4.4 + 1.75 * lines), facecolor=PAPER, layout="constrained")
    above, below = page.subfigures(2, 1, height_ratios=[4.4, 1.75 * lines])
    seen, shown, answer = above.subplots(1, 3, width_ratios=[1, 1, 1.1])
    draw_original(seen, explanation)
    view, scale = explanation.view, scale_of(heat)
    picture = overlay(view.picture, heat, colour_map=colour_map, smooth=smooth, scale=scale)
    shown.imshow(picture)
    shown.set_title(title, fontsize=10, color=INK)
    shown.axis("off")
    colours = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(*scale), colour_map)
    percent = PercentFormatter(1, decimals=2)
    above.colorbar(colours, ax=shown, shrink=0.7, format=percent, label="share on a patch")
    draw_answer(answer, explanation)
    below.suptitle(heads_title, fontsize=10, color=INK)
    options = {"colour_map": colour_map, "smooth": smooth, "least_size": 224}
    options["scale"] = scale_of(list(heads.values()))
    places = list(below.subplots(lines, columns, squeeze=False).flat)
    for axes in places:
        axes.axis("off")
    for (index, values), axes in zip(heads.items(), places, strict=False):
        axes.imshow(overlay(view.picture, values, **options))
        axes.set_title(f"head {index + 1}", fontsize=8, color=INK)
    return drawn(page)


def drawn(page: Figure) -> Image.Image:
    """A matplotlib figure as a picture, without a window anywhere."""
    canvas = FigureCanvasAgg(page)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())


def draw_original(axes: Axes, explanation: Explanation) -> None:
    """The whole picture, with a frame around the part that went into the model."""
    view = explanation.view
    width, height = view.size
    axes.imshow(view.original, extent=(0, width, height, 0))
    left, top, right, bottom = view.box
    frame = Rectangle((left, top), right - left, bottom - top, fill=False, lw=2.5, ec=ACCENT)
    axes.add_patch(frame)
    rows, cols = view.grid
    axes.set_xlim(min(left, 0) - 1, max(right, width) + 1)
    axes.set_ylim(max(bottom, height) + 1, min(top, 0) - 1)
    axes.set_title(f"framed: what the model saw\n({rows} x {cols} patches)", fontsize=10, color=INK)
    axes.axis("off")


def draw_answer(axes: Axes, explanation: Explanation) -> None:
    """The ten most probable labels as bars; a model without labels says so."""
    axes.set_title(explanation.model_name, fontsize=10, color=INK)
    if not explanation.labels:
        axes.text(0.5, 0.5, "no label head: maps only", ha="center", va="center", color=INK)
        axes.axis("off")
        return
    top = explanation.top(10)[::-1]
    bars = axes.barh([short(p.label) for p in top], [p.probability for p in top], color=ACCENT)
    axes.bar_label(bars, [f"{p.probability:.1%}" for p in top], padding=3, fontsize=8, color=INK)
    axes.set_xlim(0, max(p.probability for p in top) * 1.25)
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
