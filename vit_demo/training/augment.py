"""How training pictures are changed at random: moved, recoloured, mixed.

Every function gets its random numbers, already drawn or as a generator; none has a state of its own.
So the training loop decides what a draw depends on, and a run can be repeated.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.transforms import v2


def seed_of(*key: int) -> int:
    """One number from (seed, epoch, step, ...); keys that are near give numbers that are not."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))


def generator(*key: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed_of(*key))


DRAWS = 8  # random numbers that decide how one picture is warped


@dataclass(frozen=True)
class Warp:
    """How far a picture may be changed: shares of its side, a factor more or less, degrees."""

    shift: float = 0.0
    zoom: float = 0.0
    turn: float = 0.0
    flip: bool = False
    light: float = 0.0  # brightness, contrast and warmth


WARPS = {
    "none": Warp(),
    "digits": Warp(shift=0.08, zoom=0.1, turn=10),
    "clothes": Warp(shift=0.08, flip=True),
    "photos": Warp(shift=0.125, flip=True),
    "zoom": Warp(shift=0.125, zoom=0.25, turn=5, flip=True),
    "uploads": Warp(shift=0.1, zoom=0.3, turn=6, flip=True, light=0.25),
}


def warp(x: Tensor, how: Warp, draws: Tensor) -> Tensor:
    """Shift, zoom, turn, flip and light each picture by its own draws (B, DRAWS) from 0 to 1."""
    if how == Warp():
        return x
    u = draws * 2 - 1
    angle, zoom = u[:, 0] * math.radians(how.turn), 1 + u[:, 1] * how.zoom
    flip = 1 - 2 * (u[:, 2] < 0).float() * how.flip
    pixels = torch.tensor([x.shape[3], x.shape[2]])
    shift = (u[:, 3:5] * how.shift * pixels).round() * 2 / pixels  # whole pixels: stays sharp
    cos, sin = angle.cos() * zoom, angle.sin() * zoom
    to_x = torch.stack([cos * flip, -sin, shift[:, 0]], dim=1)
    to_y = torch.stack([sin * flip, cos, shift[:, 1]], dim=1)
    grid = F.affine_grid(torch.stack([to_x, to_y], dim=1), list(x.shape), align_corners=False)
    x = F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)
    return relight(x, how.light * u[:, 5:8]) if how.light else x


def relight(x: Tensor, u: Tensor) -> Tensor:
    """Brightness, contrast and warmth of each picture, by three draws; x is normalised."""
    mean = x.mean(dim=(1, 2, 3), keepdim=True)
    brightness, contrast, warmth = (u[:, i, None, None, None] for i in range(3))
    colours = torch.tensor([0.5, 0.0, -0.5])[None, :, None, None] if x.shape[1] == 3 else 0.0
    return mean + (x - mean) * (1 + contrast) + brightness + warmth * colours


@contextmanager
def seeded(g: torch.Generator) -> Iterator[None]:
    """torchvision draws from the global state: lend it ours, then put everything back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**62, (), generator=g)))
        yield


def recolour(images: Tensor, operations: int, g: torch.Generator) -> Tensor:
    """RandAugment of a group of uint8 pictures: the same operations for all of them."""
    with seeded(g):
        return v2.RandAugment(num_ops=operations)(images)


def mix(
    x: Tensor, targets: Tensor, mixup: float, cutmix: float, share: float, g: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Blend the pictures of a group, or paste a part of each into the next; the targets too."""
    classes = targets.shape[1]
    kinds = [v2.MixUp(alpha=mixup, num_classes=classes)] if mixup else []
    kinds += [v2.CutMix(alpha=cutmix, num_classes=classes)] if cutmix else []
    with seeded(g):
        kind, chance = kinds[int(torch.randint(len(kinds), ()))], torch.rand(())
        return kind(x, targets) if chance < share and len(x) > 1 else (x, targets)


def mix_patches(
    x: Tensor,
    targets: Tensor,
    tokens: Tensor,
    grid: tuple[int, int],
    cutmix: float,
    share: float,
    g: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor]:
    """CutMix of a group in whole patches, so that each keeps its teacher's token (MixToken, Jiang et
    al. 2021): a rectangle of each picture comes from the one before it.

    x (B, C, H, W), targets (B, classes), tokens (B, 1 + rows * cols, D): the first is the picture's.
    """
    rows, cols = grid
    with seeded(g):
        part = 1 - torch.distributions.Beta(cutmix, cutmix).sample()
        chance, across, down = torch.rand(3)
    height, width = (round(n * float(part) ** 0.5) for n in grid)
    if chance >= share or len(x) < 2 or not height * width:
        return x, targets, tokens
    top, left = int(down * (rows - height + 1)), int(across * (cols - width + 1))
    pasted = torch.zeros(grid, dtype=torch.bool)
    pasted[top : top + height, left : left + width] = True
    pixels = F.interpolate(pasted[None, None].float(), size=x.shape[2:])[0, 0].bool()
    part = height * width / (rows * cols)
    first, patches = tokens[:, :1], tokens[:, 1:]
    first = first.lerp(first.roll(1, 0), part)
    patches = torch.where(pasted.flatten()[:, None], patches.roll(1, 0), patches)
    x = torch.where(pixels, x.roll(1, 0), x)
    return x, targets.lerp(targets.roll(1, 0), part), torch.cat([first, patches], dim=1)
