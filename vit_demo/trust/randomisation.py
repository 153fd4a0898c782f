"""Does a map look the same when the model has unlearnt everything? The blocks become random from the
top down (Adebayo et al. 2018); a map that stays the same does not show what was learnt.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vit_demo.explain import Explanation, Label
from vit_demo.random_weights import randomise
from vit_demo.trust.methods import METHODS
from vit_demo.trust.progress import Progress, report
from vit_demo.validate import choice, whole

SAME = 0.5  # a rank correlation above this: the map has not noticed that the weights are random


@dataclass(frozen=True)
class RandomWeights:
    """Maps while the blocks become random from the top down; entry 0 is the real model."""

    heats: Tensor  # (L + 1, rows, cols)
    correlations: Tensor  # (L + 1,) rank correlation with the real map

    @property
    def passed(self) -> bool:
        """With all blocks random, the map must be another one."""
        return float(self.correlations[-1]) <= SAME

    @property
    def sentence(self) -> str:
        rest = f"rank correlation {float(self.correlations[-1]):.2f}"
        if self.passed:
            return f"With random weights the map is another one ({rest}): it depends on the model."
        return (
            f"With random weights the map stays much the same ({rest}): it fails the check, "
            "because it does not show what the model has learnt."
        )


def random_weights(
    explanation: Explanation,
    method: str | Callable[[Explanation, int], Tensor] = "contribution",
    label: Label = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> RandomWeights:
    """Cascading randomisation in a copy of the model; the loaded one is not touched.

    Each tensor of a block is drawn anew with its own mean and spread, so the signals keep their
    size and only what was learnt is gone.
    """
    index, seed = explanation.label_index(label), whole("seed", seed, 0, 2**63 - 1)
    if not callable(method):
        method = METHODS[choice("method", method, METHODS)]
    classifier = copy.copy(explanation.classifier)
    classifier.model = copy.deepcopy(classifier.model)
    generator = torch.Generator().manual_seed(seed)
    real = method(explanation, index)
    heats, blocks = [real], list(reversed(classifier.model.blocks))
    for done, block in enumerate(blocks, start=1):
        randomise(block, generator)
        heats.append(method(classifier.explain_views([explanation.view])[0], index))
        report(progress, done, len(blocks))
    correlations = torch.tensor([spearman(real, heat) for heat in heats])
    return RandomWeights(torch.stack(heats), correlations)


def ranks(values: Tensor) -> Tensor:
    """The place of each value in the order; equal values share the mean of their places."""
    _, place, counts = values.flatten().unique(return_inverse=True, return_counts=True)
    return (counts.cumsum(0) - (counts - 1) / 2).double()[place]


def spearman(a: Tensor, b: Tensor) -> float:
    """Rank correlation: 1 the same order, 0 unrelated, -1 reversed. A flat map is related to none
    but another flat one."""
    a, b = (r - r.mean() for r in (ranks(a), ranks(b)))
    size = float(a.norm() * b.norm())
    return float(a @ b) / size if size else float(a.norm() == b.norm())
