"""Why this class? The maps that need gradients of the attention (`contribution.py` needs none).

Attention and rollout are the same whatever one asks for. These maps ask how the *logit of one class*
changes with each entry of each layer's attention: one forward pass with the attention in the graph,
and one pass back. Only the attention is differentiated, never the weights, and the graph begins at
the first layer's attention: what lies below it (patches, positions, queries, keys) costs nothing.
"""

import torch
from torch import Tensor

from vit_demo import attention
from vit_demo.model import VisionTransformer, attention_weights

ATTENTION_GRADIENT_MAPS = ("relevance", "gradient_rollout", "grad_cam")


class AttentionGraph:
    """Keeps every layer's attention in the graph; the first layer's is where the graph begins."""

    def __init__(self):
        self.layers: list[Tensor] = []  # each (B, h, N, N)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        A = attention_weights(q, k)
        if not self.layers:
            A = A.detach().requires_grad_()
        self.layers.append(A)
        return A @ v


def class_maps(
    model: VisionTransformer, pixels: Tensor, classes: Tensor, readout_tokens: slice
) -> dict[str, Tensor]:
    """All maps of `classes` (k, B) for pictures (B, C, H, W): name -> (k, B, N) on the CPU.

    One forward pass for all, one pass back for each of the k questions. The pictures of a batch do
    not see each other, so the gradient of the sum of their logits is each one's own gradient.
    `torch.autograd.grad` returns gradients and leaves none behind. Works under `inference_mode`, too.
    """
    maps = {name: [] for name in ATTENTION_GRADIENT_MAPS}
    prefix = model.config.prefix_tokens
    with torch.inference_mode(False), torch.enable_grad():
        pixels, classes = pixels.clone(), classes.to(pixels.device).clone()  # may enter the graph
        graph = AttentionGraph()
        logits = model(pixels, attend=graph)
        for i, wanted in enumerate(classes):
            chosen = logits.gather(1, wanted[:, None]).sum()
            more = i + 1 < len(classes)
            gradients = torch.autograd.grad(chosen, graph.layers, retain_graph=more)
            with torch.no_grad():
                attentions = [A.detach() for A in graph.layers]
                v = attention.token_mean(readout_tokens, attentions[0].shape[-1])
                last = attention.grad_cam(attentions[-1], gradients[-1], v, prefix)
                maps["relevance"].append(attention.relevance(attentions, gradients, v))
                maps["gradient_rollout"].append(
                    attention.gradient_rollout(attentions, gradients, v)
                )
                maps["grad_cam"].append(last)
    return {name: torch.stack(found).float().cpu() for name, found in maps.items()}
