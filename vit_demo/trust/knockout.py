"""What happens without it? Heads, whole layers of attention, or patches, switched off.

A head that is off looks nowhere: its attention weights are zero, so it adds nothing to any token.
All heads of a layer off: the layer's attention adds only the bias of its projection.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from vit_demo.explain import Explanation, Label
from vit_demo.model import Attend
from vit_demo.trust.progress import Progress, report
from vit_demo.trust.removal import fill_of, paint
from vit_demo.validate import index_of, pair, shown, whole


@dataclass(frozen=True)
class Change:
    label: str
    index: int
    before: float  # probability in the untouched model
    after: float


@dataclass(frozen=True)
class KnockOut:
    before: list[Change]  # the top labels of the untouched answer
    after: list[Change]  # the top labels now


def heads_off(off: Tensor) -> Attend:
    """Attention of a layer with heads switched off: `off` (h,), or (B, h) for each picture."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        seen = scaled_dot_product_attention(q, k, v)
        return seen.masked_fill(off.to(seen.device)[..., None, None], 0)

    return attend


def listed(what: str, values: Iterable) -> list:
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{what} is {shown(values)}; give a list.") from None


@torch.inference_mode()
def without(
    explanation: Explanation,
    *,
    heads: Iterable[tuple[int, int]] = (),
    layers: Iterable[int] = (),
    patches: Iterable[tuple[int, int]] = (),
    fill: str = "black",
    top: int = 10,
) -> KnockOut:
    """The answer without these heads (layer, head), layers' attention and patches (row, col).

    Patches are painted over, `fill` "black" or "blur". One forward pass.
    """
    explanation.require_labels()
    top = whole("top", top, 1)
    off = torch.zeros(explanation.layers, explanation.heads, dtype=torch.bool)
    for one in listed("heads", heads):
        layer, head = pair("One of heads", one, "(layer, head)")
        off[explanation.layer_index(layer), explanation.head_index(head)] = True
    for layer in listed("layers", layers):
        off[explanation.layer_index(layer)] = True
    left = torch.ones(1, *explanation.grid, dtype=torch.bool)
    for one in listed("patches", patches):
        row, col = pair("One of patches", one, "(row, column)")
        rows, cols = explanation.grid
        left[0, index_of("row", row, rows), index_of("column", col, cols)] = False
    model, pixels = explanation.classifier.model, explanation.pixels
    if not left.all():
        left = left.to(pixels.device)
        pixels = paint(pixels, fill_of(explanation, fill), left, explanation.config.patch_size)
    x = model.embed(pixels)
    for block, gone in zip(model.blocks, off, strict=True):
        x = block(x, heads_off(gone) if gone.any() else None)
    now = model.forward_head(x)[0].float().cpu().softmax(dim=-1)
    was = explanation.logits.softmax(dim=-1)

    def changes(by: Tensor) -> list[Change]:
        best = by.topk(min(top, len(by))).indices.tolist()
        return [Change(explanation.labels[i], i, float(was[i]), float(now[i])) for i in best]

    return KnockOut(changes(was), changes(now))


def knockout_wall(
    explanation: Explanation, label: Label = None, *, progress: Progress | None = None
) -> Tensor:
    """How the probability of the label changes without each single head: (layers, heads).

    Negative: the head speaks for the label. All heads of a layer go through in one batch, from
    that layer on: below it nothing differs, so it is computed once. Half the cost of layers x heads
    forward passes. `progress(layers done, layers)` may answer False: `Cancelled` is raised then.
    """
    index = explanation.label_index(label)
    model, L, h = explanation.classifier.model, explanation.layers, explanation.heads
    each = heads_off(torch.eye(h, dtype=torch.bool))  # picture i of the batch lacks head i
    changes = torch.empty(L, h)
    with torch.inference_mode():
        x = model.embed(explanation.pixels)
    layers = list(model.layers())
    for layer, (block, wanted) in enumerate(layers):
        with torch.inference_mode():
            y = block(x.expand(h, -1, -1), each, wanted)  # (h, N, D)
            for above, wanted in layers[layer + 1 :]:
                y = above(y, wanted=wanted)
            changes[layer] = model.forward_head(y).float().softmax(dim=-1)[:, index].cpu()
            x = block(x)
        report(progress, layer + 1, L)
    return changes - explanation.logits.softmax(dim=-1)[index]
