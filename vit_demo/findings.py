"""What can be seen in an embedded model: views worth opening, each with a number that makes it true.

The words of a finding are `finding_<name>` of the explorer's texts. They may be shown only while `measure`,
computed for the model and the example that the finding opens, is at least `least`: a test does that.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vit_demo.attention import attention_distance
from vit_demo.explain import Explanation
from vit_demo.map_settings import MapSettings
from vit_demo.trust import spearman


@dataclass(frozen=True)
class Finding:
    name: str
    example: str
    settings: dict  # of the view, as in `MapSettings`
    measure: Callable[[Explanation, MapSettings], float]
    least: float


def nearness(e: Explanation, settings: MapSettings) -> float:
    """How many times nearer the patches look than if they looked everywhere alike: one head, or the
    mean over the heads of the layer."""
    A = e.layer_attention(e.layer_index(settings.layer))
    places = {"grid": e.grid, "patch_size": e.view.patch_size, "prefix": e.config.prefix_tokens}
    found = attention_distance(A, **places)
    if not isinstance(settings.head, str):
        found = found[settings.head]
    everywhere = attention_distance(torch.full_like(A[:1], 1 / e.N), **places)
    return float(everywhere / found.mean())


def edge_correlation(e: Explanation, settings: MapSettings) -> float:
    """Rank correlation between a head's raw attention and the edges in each patch of the picture."""
    heat = e.attention(settings.layer, settings.head, settings.query)
    return spearman(heat, edges(e))


def edges(e: Explanation) -> Tensor:
    """The mean slope of the brightness in each patch (rows, cols), in the pixels the model saw."""
    brightness = e.pixels[0].mean(dim=0).cpu()
    slopes = [brightness.diff(dim=axis).abs() for axis in (0, 1)]
    slope = slopes[0][:, 1:] + slopes[1][1:]
    slope = torch.nn.functional.pad(slope, (1, 0, 1, 0))
    return torch.nn.functional.avg_pool2d(slope[None], e.view.patch_size)[0]


def halves(e: Explanation, settings: MapSettings) -> float:
    """Of what speaks for `label` rather than `minus`, the share in one half of the picture; of what
    speaks the other way, the share in the other half. The lesser of the two: 0.5 is chance."""
    heat = e.contribution(settings.label, settings.minus)
    sides = heat.tensor_split(2, dim=1)  # left, right
    more = torch.stack([side.clamp(min=0).sum() for side in sides])
    less = torch.stack([(-side).clamp(min=0).sum() for side in sides])
    more, less = more / more.sum(), less / less.sum()
    return float(max(min(more[0], less[1]), min(more[1], less[0])))


FINDINGS: dict[str, tuple[Finding, ...]] = {}  # of each model that has some
