"""Why this class? The maps that need gradients, and the way from a label's name to its number.

Attention and rollout are the same whatever one asks for. These maps ask how the *logit of one class*
changes with each entry of each layer's attention: one forward pass with the attention in the graph,
and one pass back. Only the attention is differentiated, never the weights, and the graph begins at
the first layer's attention: what lies below it (patches, positions, queries, keys) costs nothing.
"""

import difflib
import operator
from collections.abc import Sequence

import torch
from torch import Tensor

from vit_demo import attention
from vit_demo.arguments import shown
from vit_demo.model import VisionTransformer, attention_weights

CLASS_MAPS = ("relevance", "gradient_rollout", "grad_cam")


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
    model: VisionTransformer, pixels: Tensor, classes: Tensor, readout: slice
) -> dict[str, Tensor]:
    """All maps of `classes` (k, B) for pictures (B, C, H, W): name -> (k, B, N) on the CPU.

    One forward pass for all, one pass back for each of the k questions. The pictures of a batch do
    not see each other, so the gradient of the sum of their logits is each one's own gradient.
    `torch.autograd.grad` returns gradients and leaves none behind. Works under `inference_mode`, too.
    """
    maps = {name: [] for name in CLASS_MAPS}
    prefix = model.config.prefix_tokens
    with torch.inference_mode(False), torch.enable_grad():
        pixels, classes = pixels.clone(), classes.to(pixels.device).clone()  # may enter the graph
        graph = AttentionGraph()
        logits = model(pixels, attend=graph)
        for i, wanted in enumerate(classes):
            chosen = logits.gather(1, wanted[:, None]).sum()
            more = i + 1 < len(classes)
            dA = torch.autograd.grad(chosen, graph.layers, retain_graph=more)
            with torch.no_grad():
                A = [layer.detach() for layer in graph.layers]
                v = attention.token_mean(readout, A[0].shape[-1])
                last = attention.grad_cam(A[-1], dA[-1], v, prefix)
                maps["relevance"].append(attention.relevance(A, dA, v))
                maps["gradient_rollout"].append(attention.gradient_rollout(A, dA, v))
                maps["grad_cam"].append(last)
    return {name: torch.stack(found).float().cpu() for name, found in maps.items()}


def find_label(labels: Sequence[str], label: int | str) -> int:
    """The number of a label: by number, by its text, or by one of its names in any case."""
    if not isinstance(label, str):
        try:
            index = operator.index(label)
        except TypeError:
            index = -1
        if not 0 <= index < len(labels):
            raise ValueError(
                f"There is no label {shown(label)}; use 0 to {len(labels) - 1}, or its name."
            )
        return index
    if label in labels:
        return labels.index(label)
    wanted = label.strip().casefold()
    names = [[name.strip() for name in [text, *text.split(",")]] for text in labels]
    found = [i for i, own in enumerate(names) if wanted in map(str.casefold, own)]
    if len(found) == 1:
        return found[0]
    if found:
        which = ", ".join(f"{i} ({labels[i]})" for i in found[:5])
        raise ValueError(
            f"Several labels are called {shown(label)}; use the number of one: {which}."
        )
    everyone = {name.casefold(): name for own in names for name in own}
    close = difflib.get_close_matches(wanted[:200], everyone, n=3, cutoff=0.5)
    close += [name for name in everyone if wanted and wanted in name and name not in close][:3]
    near = ", ".join(everyone[name] for name in close) or ", ".join(labels[:3]) + ", ..."
    raise ValueError(f"There is no label {shown(label)}. The closest: {near}.")
