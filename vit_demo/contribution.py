"""Why this class? What each token contributes to log p (Libra FullGrad+, Mehri et al., CVPR 2025).

A gradient says what a small change would do, not what a token did. It says both where the model is
linear. So the forward pass is the model's own, and in the backward pass the three factors that are
not linear are constants: the attention weights, LayerNorm's deviation, and GELU's gate. The logit is
then a sum, exactly, at the input x_l of every block l:

    logit = sum over tokens i, channels d of x_l[i, d] * d logit / d x_l[i, d]
            + sum over the biases b above x_l of b * d logit / d b

Token i's share of that sum, added up over the blocks, is its contribution. It has a sign: for the
class, or against it. No N x N matrix is kept, because fused attention needs none for constant weights.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model import MLP, Attention, Block, VisionTransformer

# GELU and its relatives are x * gate(x).
GATES = {
    "gelu": torch.special.ndtr,  # the normal distribution's, by erf
    "gelu_tanh": lambda x: torch.sigmoid((8 / math.pi) ** 0.5 * (x + 0.044715 * x**3)),
    "quick_gelu": lambda x: torch.sigmoid(1.702 * x),
}


def contributions(
    model: VisionTransformer, pixels: Tensor, classes: Tensor, minus: Tensor | None = None
) -> Tensor:
    """Each token's contribution to log p of `classes` (k, B), or to how far it lies above that of
    `minus` (k, B), for pictures (B, C, H, W): (k, B, N) on the CPU.

    One forward pass for all, one pass back for each of the k questions. No gradients are left behind.
    """
    with torch.inference_mode(False), torch.enable_grad():
        pixels, classes = pixels.clone(), classes.to(pixels.device)  # may enter the graph
        logits, inputs = linear_pass(model, pixels)
        maps = []
        for i, wanted in enumerate(classes):
            if minus is None:
                slopes = slope_of_log_p(logits.detach(), wanted)
            else:  # log p_a - log p_b = z_a - z_b
                pair = (F.one_hot(c, logits.shape[1]) for c in (wanted, minus[i].to(wanted.device)))
                slopes = torch.sub(*pair).to(logits.dtype)
            more = i + 1 < len(classes)
            gradients = torch.autograd.grad(logits, inputs, slopes, retain_graph=more)
            with torch.no_grad():
                shares = zip(inputs, gradients, strict=True)
                maps.append(sum((x * dx).sum(dim=-1) for x, dx in shares))  # (B, N)
    return torch.stack(maps).float().cpu()


def slope_of_log_p(logits: Tensor, classes: Tensor) -> Tensor:
    """d log p / d logits (B, classes). The class's own, 1 - p, is the sum of the others': where p is
    all but 1, the difference would be rounded to nothing."""
    others = -logits.softmax(dim=-1).scatter(1, classes[:, None], 0.0)
    return others.scatter(1, classes[:, None], -others.sum(dim=-1, keepdim=True))


def linear_pass(model: VisionTransformer, pixels: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The model's logits (B, classes), and the input (B, N, D) of every block. Forward, the numbers
    are those of `model(pixels)`; backward, the graph is linear. It begins at the first block."""
    x, inputs = model.embed(pixels).detach().requires_grad_(), []
    for block in model.blocks:
        inputs.append(x)
        x = linear_block(block, x, model.config.activation)
    return linear_head(model, x), inputs


def linear_block(block: Block, x: Tensor, activation: str) -> Tensor:
    x = x + block.ls1(attention(block.attn, layer_norm(block.norm1, x)))
    return x + block.ls2(mlp(block.mlp, layer_norm(block.norm2, x), activation))


def linear_head(model: VisionTransformer, x: Tensor) -> Tensor:
    x = layer_norm(model.norm, x)
    if model.config.distilled:
        return (model.head(x[:, 0]) + model.head_dist(x[:, 1])) / 2
    P = model.config.prefix_tokens
    x = x[:, P:].mean(dim=1) if model.config.pool == "avg" else x[:, 0]
    return model.head(layer_norm(model.fc_norm, x))


def attention(layer: Attention, x: Tensor) -> Tensor:
    """Whom a token looks at is given (no gradient for q and k); what it sees there counts."""
    B, N, D = x.shape
    weights = layer.qkv.weight.chunk(3)
    biases = (None,) * 3 if layer.qkv.bias is None else layer.qkv.bias.chunk(3)

    def heads(part: int) -> Tensor:
        x_part = F.linear(x, weights[part], biases[part])  # (B, N, D)
        return x_part.unflatten(-1, (layer.heads, -1)).transpose(1, 2)  # (B, h, N, d)

    with torch.no_grad():
        q, k = heads(0), heads(1)
    seen = F.scaled_dot_product_attention(q, k, heads(2))
    return layer.proj(seen.transpose(1, 2).reshape(B, N, D))


def layer_norm(norm: nn.LayerNorm | nn.Identity, x: Tensor) -> Tensor:
    if isinstance(norm, nn.Identity):
        return x
    x = x - x.mean(dim=-1, keepdim=True)
    deviation = (x.detach().square().mean(dim=-1, keepdim=True) + norm.eps).sqrt()
    return x / deviation * norm.weight + norm.bias


def mlp(layer: MLP, x: Tensor, activation: str) -> Tensor:
    x = layer.fc1(x)
    return layer.fc2(x * GATES[activation](x.detach()))
