"""What is kept of a forward pass: for each layer the head-mean attention, the read-out's own attention, and
either the queries and keys or what they can be made of again, O(L N (N + D)) numbers. The whole
L x h x N x N block never exists.

No map of any token goes through the whole matrix of the last layer: that token's row of it is where a
rollout begins. So the last layer's head-mean is left out, and of its attention only what the answer needs.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.model import ALL, Block, VisionTransformer, ViTConfig
from vit_demo.validate import index_of, is_whole, pair

Query = tuple[int, int] | int | None  # a patch (row, column), a token's number, or the read-out

AT_ONCE = 2**19  # weights that are worked on at a time, 2 MB: more would not stay in the cache
AT_ONCE_ON_GPU = 2**27
FEW = 64  # rows at a time, at the least: products of fewer are slow


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

    mean_attention: Tensor  # (L - 1, N, N), mean over the heads
    readout_attention: Tensor  # (L, h, N), from the read-out to every token
    queries: dict[int, Tensor]  # (h, N, d) of a layer
    keys: dict[int, Tensor]  # (h, N, d)
    inputs: dict[int, Tensor]  # (N, D): what entered a layer whose queries are not there yet

    def with_queries(self, layer: int, block: Block) -> "Recording":
        """This recording, once a layer's queries and keys have been made from what entered it. That is half
        their size, and of most layers nobody asks more than their mean."""
        x = self.inputs.get(layer)  # threads may ask at once: both make the same
        if x is not None:
            self.queries[layer], self.keys[layer] = queries_and_keys(block, x)
            self.inputs.pop(layer, None)
        return self

    def attention(self, layer: int, rows: slice = ALL) -> Tensor:
        """A layer's attention (h, rows, N), made anew from its queries and keys."""
        keys = self.keys[layer].transpose(-2, -1)
        return (self.queries[layer][:, rows] @ keys).softmax(dim=-1)

    def mean_of(self, layer: int) -> Tensor:
        """A layer's attention (N, N), the mean over its heads; the last layer's is made anew."""
        if layer < len(self.mean_attention):
            return self.mean_attention[layer]
        h, N, _ = self.queries[layer].shape
        few = max(FEW, AT_ONCE // (h * N))
        return torch.cat([self.attention(layer, rows).mean(dim=0) for rows in slices(N, few)])

    @property
    def tensors(self) -> list[Tensor]:
        by_layer = (self.queries, self.keys, self.inputs)
        return [*self[:2], *(tensor for of in by_layer for tensor in list(of.values()))]

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors)


@torch.inference_mode()
def queries_and_keys(block: Block, x: Tensor) -> tuple[Tensor, Tensor]:
    """Queries, divided by sqrt(d), and keys (h, N, d) of what entered a block (N, D), on the CPU."""
    qkv, D = block.attn.qkv, x.shape[-1]
    bias = None if qkv.bias is None else qkv.bias[: 2 * D]
    found = F.linear(block.norm1(x.to(qkv.weight.device)), qkv.weight[: 2 * D], bias)
    q, k = found.unflatten(-1, (2, block.attn.heads, -1)).permute(1, 2, 0, 3).cpu()
    return q * q.shape[-1] ** -0.5, k.contiguous()


class Recorder:
    """An `attend` for the model that remembers, of each layer and picture, what later questions need.

    A few rows of all heads at a time: all that remains of their weights is the mean over the heads, and
    the read-out's rows. On a CPU they are of one picture, and stay in the cache.
    """

    def __init__(self, layers: int, readout_tokens: slice):
        self.layers, self.readout_tokens = layers, readout_tokens
        self.layer, self.few = 0, 0  # `few`: rows at a time
        self.queries: list[Tensor] = []  # (B, h, N, d) of each layer, divided by sqrt(d)
        self.keys: list[Tensor] = []  # (B, h, N, d)
        self.inputs: list[Tensor] = []  # (B, N, D)
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
        self.few = min(N, max(FEW, (AT_ONCE if on_cpu else AT_ONCE_ON_GPU) // (heads * N)))
        self.mean_attention = q.new_empty(B, self.layers - 1, N, N)
        self.readout_attention = q.new_zeros(B, self.layers, h, N)

    def keep(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """This layer's queries, divided by sqrt(d), and keys: to work with, and for later."""
        self.queries.append(torch.mul(q, q.shape[-1] ** -0.5, out=q.new_empty(q.shape)))
        self.keys.append(k.contiguous())
        return self.queries[-1], self.keys[-1]

    def watch(self, model: VisionTransformer, images: Tensor) -> Tensor:
        """The model's answer to pictures (B, classes)."""
        return model(images, self)

    @property
    def recordings(self) -> list[Recording]:
        """One a picture, on the CPU. Each has its own tensors: pictures that went through together are
        forgotten one by one."""
        several = len(self.readout_attention) > 1

        def own(picture: int, x: Tensor) -> Tensor:
            return (x[picture].clone() if several else x[picture]).cpu()

        def recording(picture: int) -> Recording:
            by_layer = ({layer: own(picture, x) for layer, x in enumerate(of)}
                        for of in (self.queries, self.keys, self.inputs))  # fmt: skip
            whole = (own(picture, x) for x in (self.mean_attention, self.readout_attention))
            return Recording(*whole, *by_layer)

        return [recording(picture) for picture in range(len(self.readout_attention))]


class RolloutRecorder(Recorder):
    """Keeps what rollouts of the answer need, and nothing else: no queries, no keys."""

    def keep(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q * q.shape[-1] ** -0.5, k


class InputRecorder(RolloutRecorder):
    """Keeps what enters each layer in place of its queries and keys: half as much.

    Room for it is made before the first layer: tensors that stay, scattered among those that go, would
    leave holes in the memory."""

    def watch(self, model: VisionTransformer, images: Tensor) -> Tensor:
        x = model.embed(images)
        self.inputs = [torch.empty_like(x) for _ in range(self.layers)]
        for (block, wanted), own in zip(model.layers(), self.inputs, strict=True):
            x = block(own.copy_(x), self, wanted)
        return model.forward_head(x)


def head_mean(A: Tensor, out: Tensor) -> None:
    """The mean over the heads of (h, rows, N), or of several pictures (B, h, rows, N)."""
    if A.ndim == 4:
        torch.mean(A, dim=1, out=out)
    else:  # a product with (1/h ... 1/h) goes once over the numbers, `torch.mean` on a CPU twice
        shares = A.new_full((1, len(A)), 1 / len(A))
        torch.mm(shares, A.flatten(1), out=out.view(1, -1))
