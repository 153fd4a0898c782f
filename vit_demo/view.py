"""What the model sees of a picture, without losing the way back to the original.

    make_view    picture  ->  `View`: the pixels the model sees, and where they lie in the original
    to_tensor    view     ->  (1, C, H, W), normalised

There are four ways to fit a picture into the model's input. All of them scale the whole picture and
then look at it through a centred window, so one record, `View.box`, describes any of them:

    crop      timm's evaluation transform, what the published numbers were measured with
    pad       the whole picture, its aspect kept, the rest filled with the model's mean colour
    stretch   the whole picture, squeezed to the model's own size
    native    the whole picture, its aspect kept, on a grid of another shape with as many patches
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, ImageOps

from vit_demo.image import MAX_PIXELS
from vit_demo.map_settings import FITS
from vit_demo.validate import is_whole

CROP_MODES = ("center", "squash", "border")
PREVIEW_SIDE = 1024  # pixels: as fine as a screen shows it
KEPT_PIXELS = 2 * PREVIEW_SIDE**2  # of the original: enough for a preview of its middle square


@dataclass(frozen=True)
class Preprocess:
    """How a model wants its pictures. One mean for each channel: one is grey, three are RGB."""

    size: tuple[int, int]  # height, width of the model's own input
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    interpolation: str = "bicubic"
    crop_pct: float = 1.0
    crop_mode: str = "center"  # timm's: "center", "squash", "border"
    light_on_dark: bool = False  # digits: invert a picture whose background is light

    def __post_init__(self):
        for name in ("size", "mean", "std"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.mean) not in (1, 3) or len(self.mean) != len(self.std):
            raise ValueError(f"mean {self.mean}, std {self.std}: give both 1 (grey) or 3 numbers.")
        if self.interpolation.upper() not in Image.Resampling.__members__:
            names = ", ".join(name.lower() for name in Image.Resampling.__members__)
            raise ValueError(f"interpolation is {self.interpolation!r}; use one of {names}.")
        if self.crop_mode not in CROP_MODES:
            raise ValueError(f"crop_mode is {self.crop_mode!r}; use one of {CROP_MODES}.")
        if len(self.size) != 2 or not all(is_whole(side) and side >= 1 for side in self.size):
            raise ValueError(f"size is {self.size}; give height and width in whole pixels.")
        object.__setattr__(self, "size", tuple(map(int, self.size)))  # numpy's become Python's
        if not all(map(math.isfinite, self.mean)) or not all(0 < x < math.inf for x in self.std):
            raise ValueError(f"mean {self.mean}, std {self.std}: use numbers, std above 0.")
        if not 0.01 <= self.crop_pct <= 100:
            raise ValueError(f"crop_pct is {self.crop_pct}; use a share such as 0.9.")


@dataclass(frozen=True)
class View:
    """What the model saw of a picture. Points are (x, y), boxes (left, top, right, bottom), in pixels
    of the picture that was given. Of that itself only `original` is kept, which is smaller if it was
    large: many views fit into memory, however large the pictures are."""

    original: Image.Image  # RGB, upright, at most KEPT_PIXELS
    picture: Image.Image  # RGB, exactly the pixels the model saw
    fit: str
    # The part of the given one in `picture`; wider if padded
    box: tuple[float, float, float, float]
    patch_size: tuple[int, int]
    size: tuple[int, int]  # width and height of the picture that was given

    @property
    def nbytes(self) -> int:
        """What the two pictures take in memory: Pillow stores a pixel in 4 bytes."""
        return 4 * sum(one.width * one.height for one in (self.original, self.picture))

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.picture.height // self.patch_size[0], self.picture.width // self.patch_size[1]

    @property
    def content(self) -> tuple[int, int, int, int]:
        """The pixels of `picture` that hold picture; what is outside them is padding."""
        return self._content(self.picture.size)

    def _content(self, size: tuple[int, int]) -> tuple[int, int, int, int]:
        """The same for the view drawn `size` pixels large."""
        starts, ends = [], []
        for axis in (0, 1):
            low, high = self.box[axis], self.box[axis + 2]
            scale = size[axis] / (high - low)
            starts.append(round(max(0, -low) * scale))
            ends.append(round((min(high, self.size[axis]) - low) * scale))
        return *starts, *ends

    def preview(self, side: int = PREVIEW_SIDE) -> Image.Image:
        """The same part of the original in its own detail, to look at: `side` pixels at most.

        Every patch has the same whole number of pixels. Where the original is no finer than what the
        model saw, this is `picture`.
        """
        (W, H), (rows, cols), (p, q) = self.picture.size, self.grid, self.patch_size
        left, top, right, bottom = self.box
        kept = self.original.width / self.size[0]
        finer = min(kept * max((right - left) / W, (bottom - top) / H), side / max(W, H))
        size = cols * int(q * finer), rows * int(p * finer)
        if size[0] <= W or size[1] <= H:
            return self.picture
        preview = self.picture.resize(size, Image.Resampling.NEAREST)  # keeps the padding
        left, top, right, bottom = self._content(size)
        shape = max(1, right - left), max(1, bottom - top)
        source = [
            self._to_original(edge, axis, size[axis]) / self.size[axis] * self.original.size[axis]
            for edge, axis in ((left, 0), (top, 1), (right, 0), (bottom, 1))
        ]
        own = self.original.resize(shape, Image.Resampling.BICUBIC, source, reducing_gap=2)
        preview.paste(own, (left, top))
        return preview

    def patch_box(self, row: int, col: int) -> tuple[float, float, float, float]:
        """The patch's area in pixels of the original; empty when the patch is only padding."""
        (p, q), content = self.patch_size, self.content

        def to_original(pixel: int, axis: int) -> float:
            pixel = min(max(pixel, content[axis]), content[axis + 2])  # so that empty is empty
            return self._to_original(pixel, axis, self.picture.size[axis])

        left, right = to_original(col * q, 0), to_original(col * q + q, 0)
        top, bottom = to_original(row * p, 1), to_original(row * p + p, 1)
        return left, top, right, bottom

    def _to_original(self, pixel: int, axis: int, pixels: int) -> float:
        """Where a pixel of the view lies in the original, when the view is `pixels` long."""
        low, high = self.box[axis], self.box[axis + 2]
        return min(max(low + pixel * (high - low) / pixels, 0.0), float(self.size[axis]))

    def patch_at(self, x: float, y: float) -> tuple[int, int] | None:
        """The patch that shows this point of the original; None when the model did not see it."""
        if not (0 <= x < self.size[0] and 0 <= y < self.size[1]):
            return None
        left, top, right, bottom = self.box
        row = math.floor((y - top) / (bottom - top) * self.picture.height / self.patch_size[0])
        col = math.floor((x - left) / (right - left) * self.picture.width / self.patch_size[1])
        rows, cols = self.grid
        return (row, col) if 0 <= row < rows and 0 <= col < cols else None


def make_view(
    picture: Image.Image,
    preprocess: Preprocess,
    patch_size: tuple[int, int],
    fit: str = "crop",
    size: tuple[int, int] | None = None,
) -> View:
    """Fit a picture from `open_image` into the model's input, and remember how. `size`: that of the
    picture that was given, where this one is what another view has kept of it."""
    if fit not in FITS:
        raise ValueError(f"fit is {fit!r:.60}; use one of {', '.join(FITS)}.")
    seen = picture.convert("L") if len(preprocess.mean) == 1 else picture
    if preprocess.light_on_dark and _light_border(picture):
        seen = ImageOps.invert(seen)
    (w, h), (H, W) = picture.size, preprocess.size
    resample = Image.Resampling[preprocess.interpolation.upper()]
    fill = tuple(round(255 * mean) for mean in preprocess.mean)  # as near to 0 as a byte allows
    if fit == "crop":
        scaled, resample = _crop_scale(w, h, preprocess, resample)
        if preprocess.crop_mode != "border":
            fill = (0,) * len(fill)
    elif fit == "pad":
        scale = min(W / w, H / h)
        scaled = max(1, round(w * scale)), max(1, round(h * scale))
    else:
        if fit == "native":
            H, W = _native_size(w, h, preprocess.size, patch_size)
        scaled = W, H
    left, top = _window_start(scaled[0], W), _window_start(scaled[1], H)
    window = (left, top, left + W, top + H)  # in pixels of the scaled picture
    seen = _look(seen, scaled, window, resample, fill)
    size = size or picture.size
    box = tuple(e * a / b for e, a, b in zip(window, size * 2, scaled * 2, strict=True))
    return View(bounded(picture), seen.convert("RGB"), fit, box, tuple(patch_size), size)


def bounded(picture: Image.Image) -> Image.Image:
    """The picture itself, or a smaller one of KEPT_PIXELS at most."""
    w, h = picture.size
    if w * h <= KEPT_PIXELS:
        return picture
    scale = math.sqrt(KEPT_PIXELS / (w * h))
    size = max(1, int(w * scale)), max(1, int(h * scale))
    return picture.resize(size, Image.Resampling.BICUBIC, reducing_gap=2)


def to_tensor(view: View, preprocess: Preprocess) -> torch.Tensor:
    """The view as the model's input, (1, C, H, W) float32."""
    picture = view.picture.convert("L") if len(preprocess.mean) == 1 else view.picture
    pixels = np.array(picture).reshape(picture.height, picture.width, -1)  # (H, W, C)
    x = torch.from_numpy(pixels).permute(2, 0, 1).contiguous().float() / 255
    mean, std = (torch.tensor(v).float()[:, None, None] for v in (preprocess.mean, preprocess.std))
    return ((x - mean) / std)[None]


def _crop_scale(
    w: int, h: int, preprocess: Preprocess, resample: Image.Resampling
) -> tuple[tuple[int, int], Image.Resampling]:
    """What timm scales a picture to before it crops, with timm's and torchvision's rounding."""
    H, W = (math.floor(side / preprocess.crop_pct) for side in preprocess.size)
    if preprocess.crop_mode == "squash":
        return (W, H), resample
    if preprocess.crop_mode == "center" and H == W:
        return ((W, int(W * h / w)) if w <= h else (int(H * w / h), H)), resample
    if preprocess.crop_mode == "center":
        ratio, resample = min(h / H, w / W), Image.Resampling.BILINEAR  # timm always, if not square
    else:
        ratio = max(h / H, w / W)
    return (max(1, round(w / ratio)), max(1, round(h / ratio))), resample


def _window_start(scaled: int, window: int) -> int:
    """Where a centred window begins on the scaled picture; below zero where padding is needed."""
    return -((window - scaled) // 2) if window > scaled else round((scaled - window) / 2)


def _native_size(
    w: int, h: int, size: tuple[int, int], patch_size: tuple[int, int]
) -> tuple[int, int]:
    """Height and width in whole patches: the picture's shape, about the model's number of patches.

    The aspect counts twice as much as the number, and the number is at most a tenth above the
    model's own, so cost stays what it was. What whole patches cannot give is stretched: a few
    percent, more only for pictures thinner than one patch.
    """
    p, q = patch_size
    budget = (size[0] // p) * (size[1] // q)
    limit = max(1, int(1.1 * budget))
    aspect = (w / q) / (h / p)  # columns to one row

    def cost(grid: tuple[int, int]) -> float:
        rows, cols = grid
        return 2 * abs(math.log(cols / rows / aspect)) + abs(math.log(rows * cols / budget))

    grids = (
        (rows, min(max(cols, 1), limit // rows))
        for rows in range(1, limit + 1)
        for cols in (math.floor(rows * aspect), math.ceil(rows * aspect))
    )
    rows, cols = min(grids, key=cost)
    return rows * p, cols * q


def _look(
    picture: Image.Image,
    scaled: tuple[int, int],
    window: tuple[int, int, int, int],
    resample: Image.Resampling,
    fill: tuple[int, ...],
) -> Image.Image:
    """Scale a picture and look at it through a window; never more than MAX_PIXELS on the way."""
    (w, h), (W, H), (left, top, right, bottom) = picture.size, scaled, window
    inside = max(left, 0), max(top, 0), min(right, W), min(bottom, H)
    if W * H > MAX_PIXELS:  # a thread of a picture: enlarge only what the window shows
        box = [e * a / b for e, a, b in zip(inside, picture.size * 2, scaled * 2, strict=True)]
        x, y = max(0, int(box[0]) - 4), max(0, int(box[1]) - 4)  # no filter reaches beyond 3 pixels
        picture = picture.crop((x, y, min(w, int(box[2]) + 5), min(h, int(box[3]) + 5)))
        size = inside[2] - inside[0], inside[3] - inside[1]
        part = picture.resize(size, resample, box=(box[0] - x, box[1] - y, box[2] - x, box[3] - y))
    else:
        if W * h > MAX_PIXELS:  # Pillow widens before it shortens; here that would be too large
            picture = picture.resize((w, H), resample)
        part = picture.resize(scaled, resample).crop(inside)
    canvas = Image.new(picture.mode, (right - left, bottom - top), fill)
    canvas.paste(part, (inside[0] - left, inside[1] - top))
    return canvas


def _light_border(picture: Image.Image) -> bool:
    w, h = picture.size
    sides = (0, 0, w, 1), (0, h - 1, w, h), (0, 0, 1, h), (w - 1, 0, w, h)
    border = [np.asarray(picture.crop(side).convert("L")).ravel() for side in sides]
    return bool(np.median(np.concatenate(border)) > 127)
