"""What is kept of a forward pass: for each layer the queries, the keys, the head-mean attention and the
read-out's own attention, O(L N (N + D)) numbers. The whole L x h x N x N block never exists.

No map of any token goes through the whole matrix of the last layer: that token's row of it is where a
rollout begins. So the last layer's head-mean is left out, and of its attention only what the answer needs.
"""

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
    """What is kept of one picture's pass. Queries are divided by sqrt(d), and keys lie so that a row of
    attention is softmax(query @ keys)."""

    queries: tuple[Tensor, ...]  # of each layer (h, N, d)
    keys: tuple[Tensor, ...]  # of each layer (h, d, N)
    mean_attention: Tensor  # (L - 1, N, N), mean over the heads
    readout_attention: Tensor  # (L, h, N), from the read-out to every token

    def attention(self, layer: int, rows: slice = ALL) -> Tensor:
        """A layer's attention (h, rows, N), made anew from its queries and keys."""
        return (self.queries[layer][:, rows] @ self.keys[layer]).softmax(dim=-1)

    def mean_of(self, layer: int) -> Tensor:
        """A layer's attention (N, N), the mean over its heads; the last layer's is made anew."""
        if layer < len(self.mean_attention):
            return self.mean_attention[layer]
        h, N, _ = self.queries[layer].shape
        few = max(1, AT_ONCE // (h * N))
        return torch.cat([self.attention(layer, rows).mean(dim=0) for rows in slices(N, few)])

    @property
    def nbytes(self) -> int:
        tensors = *self.queries, *self.keys, self.mean_attention, self.readout_attention
        return sum(tensor.nbytes for tensor in tensors)


class Recorder:
    """An `attend` for the model that remembers, of each layer and picture, what later questions need.

    A few rows of all heads at a time: all that remains of their weights is the mean over the heads, and
    the read-out's rows. On a CPU they are of one picture, and stay in the cache.
    """

    def __init__(self, layers: int, readout_tokens: slice):
        self.layers, self.readout_tokens = layers, readout_tokens
        self.layer, self.few = 0, 0  # `few`: rows at a time
        self.scores = torch.empty(0)  # room for these rows of all heads
        self.queries: list[Tensor] = []  # of each layer (B, h, N, d), divided by sqrt(d)
        self.keys: list[Tensor] = []  # of each layer (B, h, d, N)
        self.mean_attention = torch.empty(0)  # (B, L - 1, N, N)
        self.readout_attention = torch.empty(0)  # (B, L, h, N)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the tokens see (B, h, N, d); in the last layer those up to the read-out's."""
        if self.layer == 0:
            self.make_room(q)
        B, h, N, d = q.shape
        first, end, _ = self.readout_tokens.indices(N)
        last = self.layer == self.layers - 1
        q, k = q * d**-0.5, k.transpose(-2, -1).contiguous()  # once for all rows, and to be kept
        pictures = 1 if q.device.type == "cpu" else B
        seen = []
        for some in slices(B, pictures):
            Q, K, V = (x[some].flatten(0, 1) for x in (q, k, v))  # the heads of all pictures
            seen_by_rows = []
            for rows in slices(end if last else N, self.few):
                A = self.scores[: len(Q) * len(Q[0, rows]) * N].view(len(Q), -1, N)
                torch.softmax(torch.bmm(Q[:, rows], K, out=A), dim=-1, out=A)
                seen_by_rows.append(torch.bmm(A, V))
                A = A.unflatten(0, (-1, h))  # (B, h, few, N)
                if not last:
                    torch.mean(A, dim=1, out=self.mean_attention[some, self.layer, rows])
                of_readout = A[:, :, max(0, first - rows.start) : max(0, end - rows.start)]
                if of_readout.shape[2]:
                    own = self.readout_attention[some, self.layer]
                    own.add_(of_readout.sum(dim=2), alpha=1 / (end - first))
            seen.append(joined(seen_by_rows, dim=1).unflatten(0, (-1, h)))
        self.keep(q, k)
        self.layer += 1
        return joined(seen, dim=0)

    def make_room(self, q: Tensor) -> None:
        """For all layers at once: what is written to its place needs no copy, and no new memory."""
        B, h, N, _ = q.shape
        on_cpu = q.device.type == "cpu"
        heads = h if on_cpu else B * h
        self.few = min(N, max(1, (AT_ONCE if on_cpu else AT_ONCE_ON_GPU) // (heads * N)))
        self.scores = q.new_empty(heads * self.few * N)
        self.mean_attention = q.new_empty(B, self.layers - 1, N, N)
        self.readout_attention = q.new_zeros(B, self.layers, h, N)

    def keep(self, q: Tensor, k: Tensor) -> None:
        self.queries.append(q)
        self.keys.append(k)

    @property
    def recordings(self) -> list[Recording]:
        """One a picture, on the CPU. Each has its own tensors: pictures that went through together are
        forgotten one by one."""
        alone = len(self.mean_attention) == 1

        def of(tensor: Tensor, picture: int) -> Tensor:
            return tensor[picture].cpu() if alone else tensor[picture].clone().cpu()

        return [
            Recording(
                tuple(of(tensor, picture) for tensor in self.queries),
                tuple(of(tensor, picture) for tensor in self.keys),
                of(self.mean_attention, picture),
                of(self.readout_attention, picture),
            )
            for picture in range(len(self.mean_attention))
        ]


class RolloutRecorder(Recorder):
    """Keeps what rollouts of the answer need, and nothing else: no queries, no keys."""

    def keep(self, q: Tensor, k: Tensor) -> None:
        pass


def joined(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)
