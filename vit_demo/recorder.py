"""What is kept of a forward pass: for each layer the queries, the keys, the head-mean attention and the
read-out's own attention, O(L N (N + D)) numbers. The whole L x h x N x N block never exists.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from vit_demo.model import ViTConfig
from vit_demo.validate import index_of, is_whole, pair

Query = tuple[int, int] | int | None  # a patch (row, column), a token's number, or the read-out

AT_ONCE = 2**21  # weights that are worked on at a time, 8 MB: fewer would keep some cores waiting


def readout_tokens(config: ViTConfig) -> slice:
    """The tokens whose mean is the answer: class, class and distillation, or all patches."""
    if config.pool == "avg":
        return slice(config.prefix_tokens, None)
    return slice(0, 2 if config.distilled else 1)


def token_of(query: tuple[int, int] | int, grid: tuple[int, int], config: ViTConfig) -> int:
    """The number of a token: itself, or that of the patch in this row and column."""
    rows, cols = grid
    if is_whole(query):
        return index_of("token", query, config.prefix_tokens + rows * cols)
    row, col = pair("query", query, "(row, column), a token's number, or None")
    row, col = index_of("row", row, rows), index_of("column", col, cols)
    return config.prefix_tokens + row * cols + col


class Recording(NamedTuple):
    """What is kept of one picture's pass."""

    queries: Tensor  # (L, h, N, d)
    keys: Tensor  # (L, h, N, d)
    mean_attention: Tensor  # (L, N, N), mean over the heads
    readout_attention: Tensor  # (L, h, N), from the read-out to every token

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self)


class Recorder:
    """An `attend` for the model that remembers, of each layer and picture, what later questions need.

    A few heads at a time: all that remains of their N x N weights is their share of the mean, and the
    read-out's rows.
    """

    def __init__(self, layers: int, readout_tokens: slice):
        self.layers, self.readout_tokens = layers, readout_tokens
        self.layer = 0
        self.recordings: list[Recording] = []  # one a picture

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        B, h, N, d = q.shape
        seen, mean_attention = q.new_empty(B, N, h, d), q.new_zeros(B, N, N)
        readout_attention = q.new_empty(B, h, N)
        few = max(1, AT_ONCE // (B * N * N))
        for heads in (slice(first, first + few) for first in range(0, h, few)):
            A = (q[:, heads] * d**-0.5) @ k[:, heads].transpose(-2, -1)  # (B, few, N, N)
            torch.softmax(A, dim=-1, out=A)
            seen[:, :, heads] = (A @ v[:, heads]).transpose(1, 2)
            mean_attention += A.sum(dim=1)
            readout_attention[:, heads] = A[:, :, self.readout_tokens].mean(dim=2)
        self.store(Recording(q, k, mean_attention.div_(h), readout_attention))
        return seen.transpose(1, 2)

    def store(self, of_layer: Recording) -> None:
        """Copy a layer's tensors (B, ...) to their place in each picture's own recording (L, ...):
        pictures that went through together are forgotten one by one."""
        if not self.recordings:
            self.recordings = [
                Recording(*(torch.empty(self.layers, *t.shape[1:]) for t in of_layer))
                for _ in of_layer.queries
            ]
        for i, recording in enumerate(self.recordings):
            for kept, tensor in zip(recording, of_layer, strict=True):
                kept[self.layer] = tensor[i]
        self.layer += 1
