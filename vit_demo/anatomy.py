"""A model alone: how far each of its heads looks, and how widely, as a mean over several pictures.

In the lower layers of a trained ViT some heads stay close and others look everywhere; further up all
look far (Dosovitskiy et al. 2021, figure 7). A head that looked at every patch alike would lie on the
line of uniform attention.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vit_demo.attention import attention_distance, attention_entropy
from vit_demo.explain import Explanation


class Anatomy(NamedTuple):
    """The mean over the pictures; from patch to patch, other tokens left out."""

    pictures: int
    distance: Tensor  # (L, h), in pixels of what the model sees
    entropy: Tensor  # (L, h), in bits
    uniform_distance: float  # of attention to all patches alike
    uniform_entropy: float


def anatomy(explanations: Sequence[Explanation]) -> Anatomy:
    """What the heads of a model are like, from explanations on one grid."""
    grids = {e.grid for e in explanations}
    if len(grids) != 1:
        raise ValueError("Give one explanation or more, all of them on the same grid of patches.")
    distances, entropies = zip(*map(head_facts, explanations), strict=True)
    ((rows, cols),), patch = grids, explanations[0].view.patch_size
    everywhere = torch.ones(1, rows * cols, rows * cols)
    return Anatomy(
        len(explanations),
        torch.stack(distances).mean(dim=0),
        torch.stack(entropies).mean(dim=0),
        float(attention_distance(everywhere, (rows, cols), patch, prefix=0)),
        math.log2(rows * cols),
    )


@torch.inference_mode()
def head_facts(explanation: Explanation) -> tuple[Tensor, Tensor]:
    """Attention distance in pixels and entropy in bits of every head (L, h), on one picture."""
    e, prefix, found = explanation, explanation.config.prefix_tokens, []
    for layer in range(e.layers):
        A = e.layer_attention(layer)
        distance = attention_distance(A, e.grid, e.view.patch_size, prefix)
        found.append(torch.stack([distance, attention_entropy(A, prefix)]))
    distance, entropy = torch.stack(found, dim=1)
    return distance, entropy
