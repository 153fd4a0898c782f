"""Why this class? The maps that need gradients, so a forward pass and a pass back of their own.

Attention and rollout are the same whatever one asks for. These maps ask about one class, in two ways:

    attention_gradient_maps   how the logit changes with each entry of each layer's attention:
                              relevance, gradient rollout, Grad-CAM (their formulas: `attention.py`)
    contributions             what each token adds to log p, or takes from it, when the pass is written
                              as a sum: contribution (Libra FullGrad+, Mehri et al., CVPR 2025)

Both answer k questions about B pictures at once: one forward pass, and one pass back a question. The
pictures of a batch do not see each other, so the gradient of the sum of their logits is each one's own.
The weights are never differentiated, and the graph begins as high as it can: what lies below costs
nothing. `torch.autograd.grad` leaves no gradients behind. Works under `inference_mode`, too.
"""

import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo import attention
from vit_demo.model import MLP, Attention, Block, VisionTransformer, attention_weights

ATTENTION_GRADIENT_MAPS = ("relevance", "gradient_rollout", "grad_cam")


def gradients_of(
    logits: Tensor, inputs: Sequence[Tensor], slopes: Sequence[Tensor]
) -> Iterator[tuple[Tensor, ...]]:
    """For each question the gradients of the inputs; a question is its slopes d / d logits (B, classes)."""
    for i, slope in enumerate(slopes):
        more = i + 1 < len(slopes)
        yield torch.autograd.grad(logits, inputs, slope.to(logits), retain_graph=more)


# Gradients of the attention


class AttentionGraph:
    """Keeps every layer's attention in the graph; the first layer's is where the graph begins."""

    def __init__(self):
        self.attentions: list[Tensor] = []  # each (B, h, N, N)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        A = attention_weights(q, k)
        if not self.attentions:
            A = A.detach().requires_grad_()
        self.attentions.append(A)
        return A @ v


def attention_gradient_maps(
    model: VisionTransformer, pixels: Tensor, classes: Tensor, readout_tokens: slice
) -> dict[str, Tensor]:
    """All maps of `classes` (k, B) for pictures (B, C, H, W): name -> (k, B, N) on the CPU."""
    maps = {name: [] for name in ATTENTION_GRADIENT_MAPS}
    with torch.inference_mode(False), torch.enable_grad():
        graph = AttentionGraph()
        logits = model(pixels.clone(), attend=graph)  # a clone may enter the graph
        attentions = [A.detach() for A in graph.attentions]
        v = attention.token_mean(readout_tokens, attentions[0].shape[-1])
        slopes = F.one_hot(classes, logits.shape[1])  # of the class's own logit
        for gradients in gradients_of(logits, graph.attentions, slopes):
            with torch.no_grad():
                found = (
                    attention.relevance(attentions, gradients, v),
                    attention.gradient_rollout(attentions, gradients, v),
                    attention.grad_cam(
                        attentions[-1], gradients[-1], v, model.config.prefix_tokens
                    ),
                )
            for name, vectors in zip(ATTENTION_GRADIENT_MAPS, found, strict=True):
                maps[name].append(vectors)  # (B, N)
    return {name: torch.stack(found).float().cpu() for name, found in maps.items()}


# Contribution
#
# A gradient says what a small change would do, not what a token did. It says both where the model is
# linear. So the forward pass is the model's own, and in the backward pass the three factors that are
# not linear are constants: the attention weights, LayerNorm's deviation, and GELU's gate. The logit is
# then a sum, exactly, at the input x_l of every block l:
#
#     logit = sum over tokens i, channels d of x_l[i, d] * d logit / d x_l[i, d]
#             + sum over the biases b above x_l of b * d logit / d b
#
# Token i's share of that sum, added up over the blocks, is its contribution. It has a sign: for the
# class, or against it. No N x N matrix is kept: fused attention needs none for constant weights.


def contributions(
    model: VisionTransformer, pixels: Tensor, classes: Tensor, minus: Tensor | None = None
) -> Tensor:
    """Each token's contribution to log p of `classes` (k, B), or to how far it lies above that of
    `minus` (k, B), for pictures (B, C, H, W): (k, B, N) on the CPU."""
    with torch.inference_mode(False), torch.enable_grad():
        logits, inputs = linear_pass(model, pixels.clone())  # a clone may enter the graph
        if minus is None:
            slopes = [slope_of_log_p(logits.detach(), wanted) for wanted in classes]
        else:  # log p_a - log p_b = z_a - z_b
            slopes = F.one_hot(classes, logits.shape[1]) - F.one_hot(minus, logits.shape[1])
        maps = []
        for gradients in gradients_of(logits, inputs, slopes):
            with torch.no_grad():
                shares = zip(inputs, gradients, strict=True)
                maps.append(sum((x * dx).sum(dim=-1) for x, dx in shares))  # (B, N)
    return torch.stack(maps).float().cpu()


def slope_of_log_p(logits: Tensor, classes: Tensor) -> Tensor:
    """d log p / d logits (B, classes). The class's own, 1 - p, is the sum of the others': where p is
    all but 1, the difference would be rounded to nothing."""
    own = classes[:, None].to(logits.device)
    others = -logits.softmax(dim=-1).scatter(1, own, 0.0)
    return others.scatter(1, own, -others.sum(dim=-1, keepdim=True))


def linear_pass(model: VisionTransformer, pixels: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The model's logits (B, classes), and the input (B, N, D) of every block. Forward, the numbers
    are those of `model(pixels)`; backward, the graph is linear. It begins at the first block."""
    x, inputs = model.embed(pixels).detach().requires_grad_(), []
    for block, wanted in model.layers():
        inputs.append(x)
        x = linear_block(block, x, wanted, model.config.activation)
    return linear_head(model, x), inputs


def linear_block(block: Block, x: Tensor, wanted: slice, activation: str) -> Tensor:
    x = x[:, wanted] + block.ls1(linear_attention(block.attn, linear_norm(block.norm1, x), wanted))
    return x + block.ls2(linear_mlp(block.mlp, linear_norm(block.norm2, x), activation))


def linear_head(model: VisionTransformer, x: Tensor) -> Tensor:
    x = linear_norm(model.norm, x)
    if model.config.distilled:
        return (model.head(x[:, 0]) + model.head_dist(x[:, 1])) / 2
    P = model.config.prefix_tokens
    x = x[:, P:].mean(dim=1) if model.config.pool == "avg" else x[:, 0]
    return model.head(linear_norm(model.fc_norm, x))


def linear_attention(layer: Attention, x: Tensor, wanted: slice) -> Tensor:
    """Whom a token looks at is given (no gradient for q and k); what it sees there counts."""
    weights = layer.qkv.weight.chunk(3)
    biases = (None,) * 3 if layer.qkv.bias is None else layer.qkv.bias.chunk(3)

    def projected(part: int) -> Tensor:
        z = F.linear(x, weights[part], biases[part])  # (B, N, D)
        return z.unflatten(-1, (layer.heads, -1)).transpose(1, 2)  # (B, h, N, d)

    with torch.no_grad():
        q, k = projected(0)[:, :, wanted], projected(1)
    seen = F.scaled_dot_product_attention(q, k, projected(2))
    return layer.proj(seen.transpose(1, 2).flatten(2))


def linear_norm(norm: nn.LayerNorm | nn.Identity, x: Tensor) -> Tensor:
    if isinstance(norm, nn.Identity):
        return x
    x = x - x.mean(dim=-1, keepdim=True)
    deviation = (x.detach().square().mean(dim=-1, keepdim=True) + norm.eps).sqrt()
    return x / deviation * norm.weight + norm.bias


def linear_mlp(layer: MLP, x: Tensor, activation: str) -> Tensor:
    x = layer.fc1(x)
    return layer.fc2(x * GATES[activation](x.detach()))


# The activations of the model are x * gate(x).
GATES = {
    "gelu": torch.special.ndtr,  # the normal distribution's, by erf
    "gelu_tanh": lambda x: torch.sigmoid((8 / math.pi) ** 0.5 * (x + 0.044715 * x**3)),
    "quick_gelu": lambda x: torch.sigmoid(1.702 * x),
}
