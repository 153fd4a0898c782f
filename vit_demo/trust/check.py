"""Several maps of one label put to the test together: the quick check, or the thorough one.

Command line, page and programs ask here, so that the same question gets the same numbers everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from vit_demo.explain import Explanation, Label
from vit_demo.trust.curves import Best, Trust, best_method, trust_all, trust_thoroughly
from vit_demo.trust.methods import METHODS, check_method
from vit_demo.trust.progress import Progress
from vit_demo.trust.removal import REMOVALS
from vit_demo.validate import choice


@dataclass(frozen=True)
class Check:
    explanation: Explanation
    label: int
    maps: dict[str, Tensor]
    remove: str  # the way of removing that was asked for
    ways: dict[str, dict[str, Trust]]  # way of removing -> map -> trust; thorough: two ways

    @property
    def trusts(self) -> dict[str, Trust]:
        return self.ways[self.remove]

    @property
    def also(self) -> dict[str, dict[str, Trust]]:
        """The other way of removing, if there is one."""
        return {way: trusts for way, trusts in self.ways.items() if way != self.remove}

    @property
    def best(self) -> Best | None:
        """Which method did best by this test, on this picture; None if there was none to choose."""
        known = [name for name in self.maps if name in METHODS and name != "random"]
        if not known:
            return None
        return best_method(*({name: of[name] for name in known} for of in self.ways.values()))

    def describe(self) -> dict:
        """All numbers, in words that JSON knows."""
        e = self.explanation
        about = {
            "model": e.model_name,
            "label": {
                "label": e.labels[self.label],
                "index": self.label,
                "probability": float(e.logits.softmax(dim=-1)[self.label]),
            },
            "remove": self.remove,
            "methods": {name: of.describe() for name, of in self.trusts.items()},
        }
        for way, trusts in self.also.items():
            of = {name: trust.describe() for name, trust in trusts.items()}
            about["also"] = {"remove": way, "methods": of}
        return about | ({"best": self.best.describe()} if self.best else {})


def check(
    explanation: Explanation,
    methods: Sequence[str] | dict[str, Tensor] = tuple(METHODS),
    label: Label = None,
    *,
    remove: str = "tokens",
    thorough: bool = False,
    progress: Progress | None = None,
) -> Check:
    """Put methods, or maps (rows, cols) by name, to the test.

    `thorough`: more steps and random orders, and patches both dropped and painted over; if `remove` is
    "tokens", black. `progress(done, total)` may answer False to stop: `Cancelled` is raised then.
    """
    index, remove = explanation.label_index(label), choice("remove", remove, REMOVALS)
    if not isinstance(methods, dict):
        for name in methods:
            check_method(name)
        methods = {name: METHODS[name](explanation, index) for name in methods}
    if not methods:
        raise ValueError(f"There is no map to test; use some of {', '.join(METHODS)}.")
    if thorough:
        paint = "black" if remove == "tokens" else remove
        ways = trust_thoroughly(explanation, methods, index, paint=paint, progress=progress)
    else:
        ways = {remove: trust_all(explanation, methods, index, remove=remove, progress=progress)}
    return Check(explanation, index, methods, remove, ways)
