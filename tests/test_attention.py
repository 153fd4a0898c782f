"""The maths of attention maps against plain full-matrix formulas in float64."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.attention import FAST, random_attention, seeds, shapes

from vit_demo import attention
from vit_demo.map_settings import FUSIONS

shares = st.floats(0, 1)


def full_rollout(matrices, residual: float) -> torch.Tensor:
    """R = At[L-1] ... At[0], written as the paper has it."""
    R = torch.eye(matrices[0].shape[-1], dtype=torch.float64)
    for A in matrices:
        R = ((1 - residual) * A + residual * torch.eye(len(A), dtype=torch.float64)) @ R
    return R


def is_stochastic(A: torch.Tensor) -> bool:
    return bool((A >= 0).all()) and torch.allclose(
        A.sum(-1), torch.ones((), dtype=A.dtype), atol=1e-6
    )


@FAST
@given(shapes, seeds, shares)
def test_vectors_through_all_layers_equal_the_product_of_matrices(shape, seed, residual):
    matrices = random_attention(shape, seed).mean(dim=1)
    R = full_rollout(matrices, residual)
    for token in range(shape[2]):
        v = attention.token_mean(slice(token, token + 1), shape[2], torch.float64)
        torch.testing.assert_close(attention.through_layers(v, matrices, residual), R[token])
    everyone = attention.through_layers(
        torch.eye(shape[2], dtype=torch.float64), matrices, residual
    )
    torch.testing.assert_close(everyone, R)


@FAST
@given(shapes, seeds, shares, st.sampled_from(FUSIONS), st.floats(0, 0.99))
def test_every_row_sums_to_one_whatever_is_done(shape, seed, residual, fusion, discard):
    for A in random_attention(shape, seed):
        fused = attention.fuse_heads(A, fusion)
        assert is_stochastic(fused)
        kept = attention.discard_smallest(fused, discard, slice(0, 1))
        assert is_stochastic(kept)
        augmented = (1 - residual) * kept + residual * torch.eye(shape[2], dtype=torch.float64)
        assert is_stochastic(augmented)
        assert is_stochastic(attention.discard_smallest(A, discard, slice(0, 1)))


def test_a_row_with_nothing_left_keeps_its_token():
    A = torch.zeros(2, 3, 3)
    A[0, :, 0] = A[1, :, 1] = 1  # the heads agree on nothing, so their minimum is zero
    torch.testing.assert_close(attention.fuse_heads(A, "min"), torch.eye(3))


@FAST
@given(shapes, seeds, st.floats(0, 0.99))
def test_discard_takes_the_smallest_but_never_the_readout_or_the_diagonal(shape, seed, ratio):
    A = random_attention(shape, seed)[0, 0]
    N = shape[2]
    kept = attention.discard_smallest(A, ratio, slice(0, 1))
    for i in range(N):
        free = [j for j in range(N) if j not in (0, i)]
        gone = sorted(free, key=lambda j: A[i, j].item())[: int(len(free) * ratio)]
        row = A[i].clone()
        row[gone] = 0
        torch.testing.assert_close(kept[i], row / row.sum())


@FAST
@given(shapes, seeds, shares, st.booleans())
def test_head_rollouts_equal_the_full_formula_and_their_mean_is_rollout(
    shape, seed, residual, pool
):
    layers, heads, N = shape
    A = random_attention(shape, seed)
    readout = attention.token_mean(slice(1, None) if pool else slice(0, 1), N, torch.float64)
    matrices = A.mean(dim=1)
    rows = torch.einsum("n,lhnm->lhm", readout, A)
    maps = attention.head_rollouts(rows, matrices, readout, residual)
    eye = torch.eye(N, dtype=torch.float64)
    for layer in range(layers):
        below = full_rollout(matrices[:layer], residual) if layer else eye
        for head in range(heads):
            expected = readout @ ((1 - residual) * A[layer, head] + residual * eye) @ below
            torch.testing.assert_close(maps[layer, head], expected)
        upto = readout @ full_rollout(matrices[: layer + 1], residual)
        torch.testing.assert_close(maps[layer].mean(dim=0), upto)
    torch.testing.assert_close(maps.sum(-1), torch.ones(layers, heads, dtype=torch.float64))


@FAST
@given(shapes, seeds, shares)
def test_same_head_rollouts_equal_the_full_product(shape, seed, residual):
    layers, heads, N = shape
    A = random_attention(shape, seed)
    readout = attention.token_mean(slice(0, 1), N, torch.float64)
    maps = attention.same_head_rollouts(lambda layer: A[layer], layers, readout, residual)
    for layer in range(layers):
        for head in range(heads):
            expected = readout @ full_rollout(A[: layer + 1, head], residual)
            torch.testing.assert_close(maps[layer, head], expected)


def test_uniform_attention_gives_a_uniform_map():
    N, matrices = 10, [torch.full((10, 10), 0.1)] * 4
    v = attention.token_mean(slice(0, 1), N)
    rolled = attention.through_layers(v, matrices, residual=0.0)
    torch.testing.assert_close(rolled, torch.full((N,), 0.1))
    half = attention.through_layers(v, matrices, residual=0.5)
    torch.testing.assert_close(half[1:], half[1:2].expand(N - 1))  # all but the asker alike


def test_identity_attention_leaves_all_mass_on_the_asker():
    v = attention.token_mean(slice(3, 4), 6)
    for residual in (0.0, 0.5, 1.0):
        torch.testing.assert_close(attention.through_layers(v, [torch.eye(6)] * 5, residual), v)


grids = st.tuples(st.integers(1, 3), st.integers(1, 4))


@FAST
@given(grids, st.integers(1, 3), st.integers(0, 2), seeds)
def test_distance_and_entropy_equal_plain_loops(grid, heads, prefix, seed):
    (rows, cols), (height, width) = grid, (8, 4)
    n = rows * cols
    A = random_attention((1, heads, prefix + n), seed)[0]
    points = [(height * r, width * c) for r in range(rows) for c in range(cols)]
    distance, entropy = torch.zeros(2, heads, dtype=torch.float64)
    for head in range(heads):
        for q in range(n):
            look = A[head, prefix + q, prefix:]
            for k in range(n):
                share = float(look[k] / look.sum())
                distance[head] += share * math.dist(points[q], points[k]) / n
                entropy[head] -= share * math.log2(share) / n
    found = attention.attention_distance(A, grid, (height, width), prefix)
    torch.testing.assert_close(found, distance, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(attention.attention_entropy(A, prefix), entropy)


def test_distance_and_entropy_of_heads_one_knows():
    A = torch.zeros(3, 7, 7)  # a class token and 2 x 3 patches
    A[0] = torch.eye(7)  # each patch looks at itself
    A[1] = 1 / 7  # evenly at everything
    A[2, :, 0] = 1  # at the class token alone: no patch is seen at all
    even = [math.hypot(8 * r, 4 * c) for r in (0, 0, 1, -1) for c in (-2, -1, -1, 0, 0, 0, 1, 1, 2)]
    distance = attention.attention_distance(A, (2, 3), (8, 4), 1)
    torch.testing.assert_close(distance, torch.tensor([0, sum(even) / 36, 0]))
    entropy = attention.attention_entropy(A, 1)
    torch.testing.assert_close(entropy, torch.tensor([0, math.log2(6), 0]))


def test_readout_vectors():
    torch.testing.assert_close(attention.token_mean(slice(0, 2), 4), torch.tensor([0.5, 0.5, 0, 0]))
    torch.testing.assert_close(
        attention.token_mean(slice(2, None), 4), torch.tensor([0, 0, 0.5, 0.5])
    )


def test_wrong_settings_say_what_is_allowed():
    A = torch.eye(3).expand(2, 3, 3)
    with pytest.raises(ValueError, match="mean, max, min"):
        attention.fuse_heads(A, "median")
    with pytest.raises(ValueError, match="below, 1"):
        attention.discard_smallest(A[0], 1.0, None)
