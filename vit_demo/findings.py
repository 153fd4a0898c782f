"""What can be seen in an embedded model: views worth opening, each with a number that makes it true.

The words of a finding are `finding_<name>` of the explorer's texts. They may be shown only while `measure`,
computed for the model and the example that the finding opens, is at least `least`: a test does that. Heads
have other numbers after another training; then the settings change, or the finding goes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from vit_demo.attention import patch_shares
from vit_demo.explain import Explanation
from vit_demo.map_settings import MapSettings
from vit_demo.trust import spearman


@dataclass(frozen=True)
class Finding:
    name: str
    example: str
    settings: dict  # of the view, as `MapSettings` has them
    measure: Callable[[Explanation, MapSettings], float]
    least: float


def neighbour_share(e: Explanation, settings: MapSettings) -> float:
    """What the patches of a layer pay to themselves and the patches around them, mean over the heads;
    1 is what attention to all patches alike would pay."""
    shares = patch_shares(e.layer_attention(e.layer_index(settings.layer)), e.config.prefix_tokens)
    rows, cols = e.grid
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(cols))
    near = (places[:, None] - places).abs().amax(dim=-1) <= 1  # (n, n)
    return float((shares * near).sum(dim=-1).mean() / near.float().mean())


def edge_correlation(e: Explanation, settings: MapSettings) -> float:
    """Rank correlation between one head's attention and the edges in each patch."""
    return float(spearman(e.attention(settings.layer, settings.head, settings.query), edges(e)))


def smoothness(e: Explanation, settings: MapSettings) -> float:
    """The same with the patches that have no edges."""
    return -edge_correlation(e, settings)


def edges(e: Explanation) -> Tensor:
    """The mean slope of the brightness in each patch (rows, cols), in the pixels the model saw."""
    brightness = e.pixels[0].mean(dim=0).cpu()
    down = brightness.diff(dim=0, append=brightness[-1:]).abs()
    right = brightness.diff(dim=1, append=brightness[:, -1:]).abs()
    return avg_pool2d((down + right)[None], e.view.patch_size)[0]


def sides(e: Explanation, settings: MapSettings) -> float:
    """Of what speaks for `label` rather than `minus`, the share in the left half of the picture; of what
    speaks for `minus`, the share in the right half. The lesser of the two: 0.5 is chance."""
    left, right = e.contribution(settings.label, settings.minus).tensor_split(2, dim=1)
    more, less = (torch.stack([s * left, s * right]).clamp(min=0).sum(dim=(1, 2)) for s in (1, -1))
    return float(torch.minimum(more[0] / more.sum(), less[1] / less.sum()))


CAMEL, SHEPHERD = 3, 6  # labels of vit-photos

FINDINGS: dict[str, tuple[Finding, ...]] = {  # of each model that has some
    "vit-photos": (
        Finding(
            "edges", "camel", {"map": "attention", "layer": 5, "head": 0}, edge_correlation, 0.5
        ),
        Finding("smooth", "goldfish", {"map": "attention", "layer": 1, "head": 3}, smoothness, 0.5),
        Finding(
            "neighbours",
            "shepherd",
            {"map": "attention", "layer": 1, "head": "mean", "query": (5, 6)},
            neighbour_share,
            2,
        ),
        Finding(
            "sides",
            "camel-and-shepherd",
            {"map": "contribution", "label": CAMEL, "minus": SHEPHERD},
            sides,
            0.6,
        ),
    )
}
