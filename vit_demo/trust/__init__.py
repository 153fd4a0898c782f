"""Is a map true? Curves against chance, random weights, knock-outs, the papers' perturbation test.

`from vit_demo import faithful` is this package.
"""

from vit_demo.trust.check import Check, check
from vit_demo.trust.curves import Best, Trust, best_method, trust, trust_all, trust_thoroughly
from vit_demo.trust.methods import METHODS, check_method, method_maps, random_map
from vit_demo.trust.progress import Cancelled, Progress
from vit_demo.trust.randomisation import RandomWeights, random_weights, spearman
from vit_demo.trust.removal import FILLS, REMOVALS

__all__ = [
    "FILLS",
    "METHODS",
    "REMOVALS",
    "Best",
    "Cancelled",
    "Check",
    "Progress",
    "RandomWeights",
    "Trust",
    "best_method",
    "check",
    "check_method",
    "method_maps",
    "random_map",
    "random_weights",
    "spearman",
    "trust",
    "trust_all",
    "trust_thoroughly",
]
