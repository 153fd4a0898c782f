"""What is kept of a forward pass: for each layer the queries, the keys, the head-mean attention and the
read-out's own attention, O(L N (N + D)) numbers. The whole L x h x N x N block never exists.

No map of any token goes through the whole matrix of the last layer: that token's row of it is where a
rollout begins. So the last layer's head-mean is left out, and of its attention only what the answer needs.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from vit_demo.model import ALL, ViTConfig
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
    """What is kept of one picture's pass. Queries are divided by sqrt(d): attention is
    softmax(query @ key)."""

    queries: Tensor  # (L, h, N, d)
    keys: Tensor  # (L, h, N, d)
    mean_attention: Tensor  # (L - 1, N, N), mean over the heads
    readout_attention: Tensor  # (L, h, N), from the read-out to every token

    def attention(self, layer: int, rows: slice = ALL) -> Tensor:
        """A layer's attention (h, rows, N), made anew from its queries and keys."""
        keys = self.keys[layer].transpose(-2, -1)
        return (self.queries[layer][:, rows] @ keys).softmax(dim=-1)

    def mean_of(self, layer: int) -> Tensor:
        """A layer's attention (N, N), the mean over its heads; the last layer's is made anew."""
        if layer < len(self.mean_attention):
            return self.mean_attention[layer]
        h, N, _ = self.queries[layer].shape
        few = max(1, AT_ONCE // (h * N))
        return torch.cat([self.attention(layer, rows).mean(dim=0) for rows in slices(N, few)])

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
        self.layer, self.few = 0, 0  # `few`: rows at a time
        self.queries = torch.empty(0)  # (B, L, h, N, d), divided by sqrt(d)
        self.keys = torch.empty(0)  # (B, L, h, N, d)
        self.mean_attention = torch.empty(0)  # (B, L - 1, N, N)
        self.readout_attention = torch.empty(0)  # (B, L, h, N)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the tokens see (B, h, N, d); in the last layer those up to the read-out's."""
        if self.layer == 0:
            self.make_room(q)
        q, k = self.keep(q, k)
        if q.device.type == "cpu":
            each = [self.see(i, q[i], k[i], v[i]) for i in range(len(q))]
            seen = each[0][None] if len(each) == 1 else torch.stack(each)
        else:
            seen = self.see(ALL, q, k, v)
        self.layer += 1
        return seen

    def see(self, picture: int | slice, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the tokens of one picture see (h, N, d), or of all pictures (B, h, N, d)."""
        *heads, N, _ = q.shape
        count = self.readout_tokens.indices(N)[1] if self.is_last else N
        if count <= self.few:
            return self.see_rows(picture, slice(0, count), q, k, v)
        seen, room = [], q.new_empty(math.prod(heads) * self.few * N)  # the same for all rows
        for rows in slices(count, self.few):
            size = *heads, min(rows.stop, count) - rows.start, N
            A = room[: math.prod(size)].view(size)
            seen.append(self.see_rows(picture, rows, q, k, v, A))
        return torch.cat(seen, dim=-2)

    def see_rows(
        self,
        picture: int | slice,
        rows: slice,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        room: Tensor | None = None,
    ) -> Tensor:
        """What these rows' tokens see; their attention is made in `room`, if there is one."""
        first, end, _ = self.readout_tokens.indices(k.shape[-2])
        A = torch.matmul(q[..., rows, :], k.transpose(-2, -1), out=room)  # (h, rows, N)
        torch.softmax(A, dim=-1, out=A)
        if not self.is_last:
            head_mean(A, out=self.mean_attention[picture, self.layer, rows])
        if rows.start < end and rows.stop > first:
            own = self.readout_attention[picture, self.layer]
            if end == first + 1:
                own.copy_(A[..., first - rows.start, :])
            else:
                asking = A[..., max(0, first - rows.start) : end - rows.start, :]
                own.add_(asking.sum(dim=-2), alpha=1 / (end - first))
        return A @ v

    @property
    def is_last(self) -> bool:
        return self.layer == self.layers - 1

    def make_room(self, q: Tensor) -> None:
        """For all layers at once: what is written to its place needs no copy, and no new memory."""
        B, h, N, _ = q.shape
        on_cpu = q.device.type == "cpu"
        heads = h if on_cpu else B * h
        self.few = min(N, max(1, (AT_ONCE if on_cpu else AT_ONCE_ON_GPU) // (heads * N)))
        self.mean_attention = q.new_empty(B, self.layers - 1, N, N)
        self.readout_attention = q.new_zeros(B, self.layers, h, N)

    def keep(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """This layer's queries, divided by sqrt(d), and keys, in their places."""
        if self.layer == 0:
            B, *own = q.shape
            self.queries, self.keys = (q.new_empty(B, self.layers, *own) for _ in range(2))
        queries, keys = self.queries[:, self.layer], self.keys[:, self.layer]
        return torch.mul(q, q.shape[-1] ** -0.5, out=queries), keys.copy_(k)

    @property
    def recordings(self) -> list[Recording]:
        """One a picture, on the CPU. Each has its own tensors: pictures that went through together are
        forgotten one by one."""
        kept = Recording(self.queries, self.keys, self.mean_attention, self.readout_attention)
        if len(kept.keys) > 1:
            return [Recording(*(x[i].clone().cpu() for x in kept)) for i in range(len(kept.keys))]
        return [Recording(*(x[0].cpu() for x in kept))]


class RolloutRecorder(Recorder):
    """Keeps what rollouts of the answer need, and nothing else: no queries, no keys."""

    def keep(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q * q.shape[-1] ** -0.5, k


def head_mean(A: Tensor, out: Tensor) -> None:
    """The mean over the heads of (h, rows, N), or of several pictures (B, h, rows, N)."""
    if A.ndim == 4:
        torch.mean(A, dim=1, out=out)
    else:  # a product with (1/h ... 1/h) goes once over the numbers, `torch.mean` on a CPU twice
        shares = A.new_full((1, len(A)), 1 / len(A))
        torch.mm(shares, A.flatten(1), out=out.view(1, -1))
