"""A module that has unlearnt everything: what learning is compared with."""

import torch
from torch import nn


@torch.no_grad()
def randomise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw each tensor anew with its own mean and spread: the signals keep their size, and only what
    was learnt is gone."""
    for p in module.parameters():
        noise = torch.randn(p.shape, generator=generator).to(p)
        p.copy_(p.mean() + p.std(correction=0) * noise)
