"""Attention drawn at random, for properties that must hold for all of it."""

import torch
from hypothesis import settings
from hypothesis import strategies as st

FAST = settings(max_examples=40, deadline=None)
shapes = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(2, 9))  # layers, heads, tokens
seeds = st.integers(0, 2**31 - 1)


def random_attention(shape: tuple[int, int, int], seed: int) -> torch.Tensor:
    """(layers, heads, N, N) in float64, rows sum to 1."""
    layers, heads, N = shape
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(layers, heads, N, N, generator=generator, dtype=torch.float64)
    return logits.softmax(dim=-1)
