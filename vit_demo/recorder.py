"""What is kept of a forward pass: for each layer the queries, the keys, the head-mean attention and the
read-out's own attention, O(L N (N + D)) numbers. The whole L x h x N x N block never exists.

No map of any token goes through the whole matrix of the last layer: that token's row of it is where a
rollout begins. So the last layer's head-mean is left out, and of its attention only what the answer needs.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from vit_demo.model import ViTConfig
from vit_demo.validate import index_of, is_whole, pair

Query = tuple[int, int] | int | None  # a patch (row, column), a token's number, or the read-out

AT_ONCE = 2**20  # weights that are worked on at a time, 4 MB: more would not stay in the cache
AT_ONCE_ON_GPU = 2**27


def token_of(query: tuple[int, int] | int, grid: tuple[int, int], config: ViTConfig) -> int:
    """The number of a token: itself, or that of the patch in this row and column."""
    rows, cols = grid
    if is_whole(query):
        return index_of("token", query, config.prefix_tokens + rows * cols)
    row, col = pair("query", query, "(row, column), a token's number, or None")
    row, col = index_of("row", row, rows), index_of("column", col, cols)
    return config.prefix_tokens + row * cols + col


def slices(count: int, at_once: int) -> list[slice]:
    return [slice(first, first + at_once) for first in range(0, count, at_once)]


class Recording(NamedTuple):
    """What is kept of one picture's pass."""

    queries: Tensor  # (L, h, N, d)
    keys: Tensor  # (L, h, N, d)
    mean_attention: Tensor  # (L - 1, N, N), mean over the heads
    readout_attention: Tensor  # (L, h, N), from the read-out to every token

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self)


class Recorder:
    """An `attend` for the model that remembers, of each layer and picture, what later questions need.

    A few rows of all heads at a time: all that remains of their weights is the mean over the heads, and
    the read-out's rows. On a CPU they are of one picture, and stay in the cache.
    """

    def __init__(self, layers: int, readout_tokens: slice):
        self.layers, self.readout_tokens = layers, readout_tokens
        self.layer = 0
        self.queries = self.keys = torch.empty(0)  # (B, L, h, N, d), made with the first layer
        self.mean_attention = torch.empty(0)  # (B, L - 1, N, N)
        self.readout_attention = torch.empty(0)  # (B, L, h, N)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the tokens see (B, h, N, d); in the last layer those up to the read-out's."""
        if self.layer == 0:
            self.make_room(q)
        B, h, N, _ = q.shape
        first, end, _ = self.readout_tokens.indices(N)
        last = self.layer == self.layers - 1
        readout_attention = self.readout_attention[:, self.layer]  # (B, h, N)
        on_cpu = q.device.type == "cpu"
        pictures = 1 if on_cpu else B
        few = max(1, (AT_ONCE if on_cpu else AT_ONCE_ON_GPU) // (pictures * h * N))
        seen = []
        for some in slices(B, pictures):
            seen_by_rows = []
            for rows in slices(end if last else N, few):
                A = weights_of(q[some, :, rows], k[some])  # (B, h, few, N)
                seen_by_rows.append(A @ v[some])
                if not last:
                    torch.mean(A, dim=1, out=self.mean_attention[some, self.layer, rows])
                of_readout = A[:, :, max(0, first - rows.start) : max(0, end - rows.start)]
                if of_readout.shape[2]:
                    readout_attention[some] += of_readout.sum(dim=2)
            seen.append(joined(seen_by_rows, dim=2))
        readout_attention /= end - first
        self.keep(q, k)
        self.layer += 1
        return joined(seen, dim=0)

    def make_room(self, q: Tensor) -> None:
        """For all layers at once: what is written to its place needs no copy."""
        B, h, N, _ = q.shape
        self.mean_attention = q.new_empty(B, self.layers - 1, N, N)
        self.readout_attention = q.new_zeros(B, self.layers, h, N)

    def keep(self, q: Tensor, k: Tensor) -> None:
        """The queries and keys of a layer: a copy, or the values would be kept with them."""
        B, *shape = q.shape
        if self.layer == 0:
            self.queries, self.keys = (q.new_empty(B, self.layers, *shape) for _ in range(2))
        self.queries[:, self.layer], self.keys[:, self.layer] = q, k

    @property
    def recordings(self) -> list[Recording]:
        """One a picture, on the CPU. Each has its own tensors: pictures that went through together are
        forgotten one by one."""
        kept = self.queries, self.keys, self.mean_attention, self.readout_attention
        alone = len(self.queries) == 1
        each = zip(*(tensor.cpu() for tensor in kept), strict=True)
        return [Recording(*(t if alone else t.clone() for t in of_picture)) for of_picture in each]


class RolloutRecorder(Recorder):
    """Keeps what rollouts of the answer need, and nothing else: no queries, no keys."""

    def keep(self, q: Tensor, k: Tensor) -> None:
        pass


def weights_of(q: Tensor, k: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(d)) (B, h, N, N), as `attention_weights` has it, with less memory."""
    nothing = q.new_empty(1, 1, 1)
    asked = q.flatten(0, 1), k.transpose(-2, -1).flatten(0, 1)
    A = torch.baddbmm(nothing, *asked, beta=0, alpha=q.shape[-1] ** -0.5)
    return torch.softmax(A, dim=-1, out=A).unflatten(0, q.shape[:2])


def mean_attention(q: Tensor, k: Tensor) -> Tensor:
    """The mean over the heads (N, N) of one layer's attention, from its queries and keys (h, N, d)."""
    h, N, _ = q.shape
    few = max(1, AT_ONCE // (h * N))
    return joined(
        [weights_of(q[None, :, rows], k[None])[0].mean(dim=0) for rows in slices(N, few)], dim=0
    )


def joined(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)
