"""How the weights move: AdamW or Muon, the learning rate over time, and the average that is kept of them.

Weight decay is on the matrices only. What is tested and saved is an average of the weights over time
(EMA), which is calmer than the weights themselves.
"""

import math

import torch
from torch import Tensor, nn

from vit_demo.model import VisionTransformer
from vit_demo.training.config import TrainConfig


def make_optimizers(model: VisionTransformer, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """AdamW for everything; or Muon for the matrices of the blocks, and AdamW for the rest."""
    groups = {"decay": [], "no decay": [], "muon": []}
    for name, p in model.named_parameters():
        if p.ndim == 1 or name in ("pos_embed", *model.config.prefix):
            groups["no decay"].append(p)
        elif config.optimizer == "muon" and name.startswith("blocks."):
            groups["muon"].append(p)
        else:
            groups["decay"].append(p)
    adamw = [
        {"params": groups["decay"], "weight_decay": config.weight_decay},
        {"params": groups["no decay"], "weight_decay": 0.0},
    ]
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    optimizers = [torch.optim.AdamW(adamw, lr=config.lr, betas=(0.9, 0.98), fused=fused)]
    if groups["muon"]:
        dtype = getattr(torch, config.precision)
        optimizers.append(Muon(groups["muon"], config.lr, config.weight_decay, dtype=dtype))
    return optimizers


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal: every direction of a matrix moves equally far (Jordan 2024).

    Steps are scaled to the usual size of AdamW's, so that one learning rate and one weight decay
    serve both (Liu et al. 2025). torch's own Muon works in bfloat16, which many CPUs only emulate;
    here `dtype` says in what the directions are made orthogonal.
    """

    def __init__(
        self,
        params: list[Tensor],
        lr: float,
        weight_decay: float,
        momentum: float = 0.95,
        dtype: torch.dtype = torch.float32,
    ):
        self.dtype = dtype
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            lr, momentum = group["lr"], group["momentum"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                state["momentum"].lerp_(p.grad, 1 - momentum)
                direction = p.grad.lerp(state["momentum"], momentum)
                direction = orthogonal(direction.to(self.dtype)).to(p.dtype)
                p.mul_(1 - lr * group["weight_decay"])
                p.add_(direction, alpha=-0.2 * max(p.shape) ** 0.5 * lr)


def orthogonal(G: Tensor) -> Tensor:
    """About U V^T, where G = U S V^T: five Newton-Schulz steps bring all of S near 1."""
    tall = G.shape[0] > G.shape[1]
    X = G.T if tall else G
    X = X / (X.norm() + 1e-7)
    for _ in range(5):
        S = X @ X.T
        X = 3.4445 * X + (-4.7750 * S + 2.0315 * S @ S) @ X
    return X.T if tall else X


def learning_rate(step: int, steps_in_epoch: int, config: TrainConfig) -> float:
    """Up a straight line while it warms, then down half a cosine to zero."""
    warm, total = config.warmup * steps_in_epoch, config.epochs * steps_in_epoch
    if step < warm:
        return config.lr * (step + 1) / (warm + 1)
    return config.lr * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))


@torch.no_grad()
def update_average(average: nn.Module, model: nn.Module, step: int, decay: float) -> None:
    """Move the averaged weights towards the model's; quickly at first, while those are bad."""
    decay = min(decay, (1 + step) / (10 + step))
    torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)
