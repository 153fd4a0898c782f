"""Ways of taking patches away: drop their tokens, which a ViT allows exactly and which makes every later
step cheaper, or paint them over, black or blurred.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from PIL import Image, ImageFilter
from torch import Tensor

from vit_demo.explain import Explanation
from vit_demo.map_settings import FILLS, REMOVALS
from vit_demo.validate import choice
from vit_demo.view import to_tensor

Predict = Callable[[Tensor], Tensor]  # numbers of the patches left (B, K) -> probabilities (B,)


def order_of(heat: Tensor, seed: int = 0) -> Tensor:
    """Positions of a map, most marked first. Equal values come in random order: a map that says
    nothing shall not profit from the order in which we read."""
    heat = heat.flatten()
    shuffled = torch.randperm(len(heat), generator=torch.Generator().manual_seed(seed))
    return shuffled[heat[shuffled].argsort(descending=True, stable=True)]


def fill_of(explanation: Explanation, kind: str) -> Tensor:
    """What takes the place of a patch, as a whole picture (1, C, H, W): black or blurred."""
    view = explanation.view
    if choice("fill", kind, FILLS) == "black":
        picture = Image.new("RGB", view.picture.size)
    else:
        picture = view.picture.filter(ImageFilter.GaussianBlur(max(view.patch_size)))
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
    def predict(kept_patches: Tensor) -> Tensor:
        kept, B = kept_patches.to(pixels.device), len(kept_patches)
        if fill is None:
            logits = model(pixels.expand(B, -1, -1, -1), kept_patches=kept)
        else:
            left = torch.zeros(B, rows * cols, dtype=torch.bool, device=kept.device)
            left = left.scatter(1, kept, True).unflatten(1, (rows, cols))
            logits = model(paint(pixels, fill, left, explanation.config.patch_size))
        return logits.float().softmax(dim=-1)[:, index].cpu()

    return predict
