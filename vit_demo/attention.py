"""The mathematics of attention maps: tensors in, tensors out. No model, no picture, no page.

`A` is the attention of one layer after the softmax, (h, N, N): A[h, i, j] is how much token i looks at
token j in head h; every row sums to 1. A layer also passes each token on unchanged (the residual
stream), so information moves through layer l by

    At[l] = (1 - residual) * A[l] + residual * I

and through the whole model by the product R = At[L-1] ... At[1] At[0] (Abnar and Zuidema 2020).
Nobody needs all of R: the map of one token is one row of it, vector-matrix products from the last
layer down, which cost L N^2 instead of L N^3.

The rule that keeps every map a share of 1: whatever is done to a matrix (fusing heads by max or min,
discarding small entries), its rows are normalised again before it enters the product.

The read-out is what the answer is taken from: the mean over the class token, over class and
distillation token, or over all patches (average pooling). `readout_tokens` is the slice of these
tokens; as a vector v of shares (N,) it is `token_mean(readout_tokens, N)`.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def token_mean(tokens: slice, N: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Tokens as a vector of shares (N,): equal weights on these tokens, zero elsewhere."""
    vector = torch.zeros(N, dtype=dtype)
    vector[tokens] = 1
    return vector / vector.sum()


def normalise_rows(A: Tensor) -> Tensor:
    """Rows that sum to 1. A row of zeros (nothing was left of it) stays where it is: identity."""
    total = A.sum(dim=-1, keepdim=True)
    identity = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    return torch.where(total > 0, A / total.clamp_min(torch.finfo(A.dtype).tiny), identity)


def over_heads(x: Tensor, fusion: str, dim: int = 0) -> Tensor:
    """The mean, maximum or minimum over the heads, which are this dimension of x."""
    ways = {"mean": x.mean, "max": x.amax, "min": x.amin}
    if fusion not in ways:
        raise ValueError(f"fusion is {fusion!r}; use one of {', '.join(ways)}.")
    return ways[fusion](dim=dim)


def fuse_heads(A: Tensor, fusion: str = "mean") -> Tensor:
    """One matrix (N, N) for a layer's heads (h, N, N); its rows sum to 1."""
    fused = over_heads(A, fusion)
    return fused if fusion == "mean" else normalise_rows(fused)


def discard_smallest(A: Tensor, ratio: float, readout_tokens: slice | None) -> Tensor:
    """Zero the smallest entries of each row, this share of them, and normalise the rows again.

    The read-out's columns and the diagonal are never discarded: without them a token could lose its
    way to the answer, or itself. (For average pooling there is no read-out column: give None.)
    """
    if not 0 <= ratio < 1:
        raise ValueError(f"discard is {ratio}; use a share from 0 up to, but below, 1.")
    N = A.shape[-1]
    protected = torch.eye(N, dtype=torch.bool, device=A.device)
    if readout_tokens is not None:
        protected[:, readout_tokens] = True
    free = (~protected).sum(dim=-1)  # (N,): how many entries of each row may go
    order = A.masked_fill(protected, torch.inf).argsort(dim=-1, stable=True)
    rank = torch.empty_like(order).scatter_(
        -1, order, torch.arange(N, device=A.device).expand_as(order)
    )
    gone = rank < (free * ratio).long().unsqueeze(-1)
    return normalise_rows(A.masked_fill(gone, 0))


def through_layers(v: Tensor, matrices: Sequence[Tensor], residual: float = 0.5) -> Tensor:
    """v At[L-1] ... At[0] for vectors v (..., N) and the layers' matrices (N, N), first layer first."""
    for A in reversed(matrices):
        v = through_layer(v, A, residual)
    return v


def through_layer(v: Tensor, A: Tensor, residual: float) -> Tensor:
    """v At: part of v goes back through the attention A (N, N), part through the residual stream. That is
    (1 - residual) * (v @ A) + residual * v, for vectors (..., N), or (B, M, N) with an A of each (B, N, N)."""
    if A.ndim == 3:
        return torch.baddbmm(v, v, A, beta=residual, alpha=1 - residual)
    flat = v.reshape(-1, v.shape[-1])
    return torch.addmm(flat, flat, A, beta=residual, alpha=1 - residual).view_as(v)


def head_rollouts(
    query_attention: Tensor, matrices: Sequence[Tensor], v: Tensor, residual: float = 0.5
) -> Tensor:
    """What each single head adds to the answer (L, h, N), traced back to the input.

    `query_attention` (L, h, N) is v A[l, h], v the token that asks (the read-out). Head h at layer l
    is followed by the head-mean of all layers below it. So the mean over the heads of layer l is the
    rollout up to layer l, exactly.
    """
    maps = (1 - residual) * query_attention + residual * v
    rows, h = maps.flatten(0, 1), maps.shape[1]  # the same numbers, as (L * h, N)
    for layer in range(len(maps) - 1, 0, -1):  # every map from `layer` or above passes layer - 1
        above = rows[layer * h :]
        above.copy_(through_layer(above, matrices[layer - 1], residual))
    return maps


def same_head_rollouts(
    layer_attention: Callable[[int], Tensor], depth: int, v: Tensor, residual: float = 0.5
) -> Tensor:
    """The product of the *same head number* in every layer (L, h, N).

    Others mean this by per-head rollout. Heads are numbered arbitrarily, so head 3 of one layer has
    nothing to do with head 3 of the next: offered for comparison, not as the default.
    `layer_attention(l)` gives (h, N, N); the layers are asked for once each, from the last down.
    """
    maps = None
    for layer in range(depth - 1, -1, -1):
        A = layer_attention(layer)  # (h, N, N)
        if maps is None:
            maps = v.to(A).repeat(depth, len(A), 1)  # (L, h, N)
        of_heads = maps[layer:].transpose(0, 1)  # (h, layers, N): one batch of vectors a head
        maps[layer:] = through_layer(of_heads, A, residual).transpose(0, 1)
    return maps


def special_part(maps: Tensor) -> Tensor:
    """What sets each head apart: maps (..., h, N) minus their mean over the heads; sums to 0 over h."""
    return maps - maps.mean(dim=-2, keepdim=True)


# What a head is like: where the patches look, when only patches count


def patch_shares(A: Tensor, prefix: int) -> Tensor:
    """The patches' look at patches (h, n, n), rows shares of 1 again; zero where nothing was left."""
    patches = A[..., prefix:, prefix:]
    return patches / patches.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(A.dtype).tiny)


def attention_distance(
    A: Tensor, grid: tuple[int, int], patch_size: tuple[int, int], prefix: int
) -> Tensor:
    """How far each head (h, N, N) looks, in pixels: (h,). From patch to patch, mean over patches."""
    (rows, cols), (height, width) = grid, patch_size
    y, x = torch.arange(rows) * height, torch.arange(cols) * width
    positions = torch.cartesian_prod(y, x).to(A)  # (n, 2), row by row
    distance = torch.cdist(positions, positions)
    return (patch_shares(A, prefix) * distance).sum(dim=-1).mean(dim=-1)


def attention_entropy(A: Tensor, prefix: int) -> Tensor:
    """How widely each head (h, N, N) spreads its look over the patches, in bits: (h,)."""
    nats = torch.special.entr(patch_shares(A, prefix)).sum(dim=-1)
    return nats.mean(dim=-1) / math.log(2)


# Why this class. `attentions` are the layers' A and `gradients` the gradients of the class's logit with
# respect to them, both (..., h, N, N), first layer first; v (N,) is the read-out. Maps come out as (..., N).


def times_matrix(v: Tensor, A: Tensor) -> Tensor:
    """v @ A for one vector v (..., N) a matrix A (..., N, N)."""
    return (v.unsqueeze(-2) @ A).squeeze(-2)


def relevance(attentions: Sequence[Tensor], gradients: Sequence[Tensor], v: Tensor) -> Tensor:
    """Class relevance (Chefer et al. 2021, ICCV): attention counts where it speaks for the class.

    R = R + Abar @ R from the first layer up is R = (I + Abar[L-1]) ... (I + Abar[0]). The read-out's
    row of it, from the last layer down, is v = v + v @ Abar: the N x N matrix R is never needed.
    """
    v = v.to(attentions[0])
    for A, dA in zip(reversed(attentions), reversed(gradients), strict=True):
        Abar = (A * dA).clamp(min=0).mean(dim=-3)  # clamp first: heads do not cancel
        v = v + times_matrix(v, Abar)
    return v


def gradient_rollout(
    attentions: Sequence[Tensor], gradients: Sequence[Tensor], v: Tensor, residual: float = 0.5
) -> Tensor:
    """Rollout in which a layer's matrix is not the mean of A, but of A * dA where that is positive.

    Rows are normalised, as in every rollout; a row on which no gradient falls passes its token on.
    """
    v = v.to(attentions[0])
    for A, dA in zip(reversed(attentions), reversed(gradients), strict=True):
        Abar = normalise_rows((A * dA).mean(dim=-3).clamp(min=0))
        v = (1 - residual) * times_matrix(v, Abar) + residual * v
    return v


def grad_cam(A: Tensor, dA: Tensor, v: Tensor, prefix: int) -> Tensor:
    """Grad-CAM on attention: the read-out's attention in one layer (the last), heads by gradient.

    A head weighs as much as its mean gradient over the patches, without the `prefix` tokens.
    """
    v = v.to(A)
    attended, gradients = v @ A, v @ dA  # (..., h, N)
    weights = gradients[..., prefix:].mean(dim=-1, keepdim=True)  # (..., h, 1)
    return (weights * attended).mean(dim=-2).clamp(min=0)
