"""What is kept of a forward pass: for each layer the queries, the keys, the head-mean attention and the
read-out's own rows, O(L N (N + D)) numbers. The whole L x h x N x N block of attention never exists.
"""

import torch
from torch import Tensor

from vit_demo.model import ViTConfig


def readout_tokens(config: ViTConfig) -> slice:
    """The tokens whose mean is the answer: class, class and distillation, or all patches."""
    if config.pool == "avg":
        return slice(config.prefix_tokens, None)
    return slice(0, 2 if config.distilled else 1)


AT_ONCE = 2**21  # weights that are worked on at a time, 8 MB: fewer would keep some cores waiting


class Recorder:
    """Attention that is remembered: of each layer and picture, what later questions need.

    A few heads at a time: all that remains of their N x N weights is their share of the mean, and the
    read-out's rows.
    """

    def __init__(self, layers: int, readout: slice):
        self.layers, self.readout = layers, readout
        self.layer = 0
        self.pictures: list[tuple[Tensor, ...]] = []

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        B, h, N, d = q.shape
        seen, mean, rows = q.new_empty(B, N, h, d), q.new_zeros(B, N, N), q.new_empty(B, h, N)
        few = max(1, AT_ONCE // (B * N * N))
        for heads in (slice(first, first + few) for first in range(0, h, few)):
            A = (q[:, heads] * d**-0.5) @ k[:, heads].transpose(-2, -1)  # (B, few, N, N)
            torch.softmax(A, dim=-1, out=A)
            seen[:, :, heads] = (A @ v[:, heads]).transpose(1, 2)
            mean += A.sum(dim=1)
            rows[:, heads] = A[:, :, self.readout].mean(dim=2)
        self.keep(q, k, mean.div_(h), rows)
        return seen.transpose(1, 2)

    def keep(self, *of_layer: Tensor) -> None:
        """Copy a layer's queries, keys, mean and rows (B, ...) to their place in each picture's own
        tensors (L, ...): pictures that went through together are forgotten one by one."""
        if not self.pictures:
            self.pictures = [
                tuple(torch.empty(self.layers, *each.shape[1:]) for each in of_layer)
                for _ in of_layer[0]
            ]
        for i, kept in enumerate(self.pictures):
            for tensor, each in zip(kept, of_layer, strict=True):
                tensor[self.layer] = each[i]
        self.layer += 1
