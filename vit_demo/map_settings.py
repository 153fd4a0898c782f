"""What is looked at: which map, in which layer, head and patch, and in which colours.

These are the settings of the page's explorer, of its links and of the files one takes away. The
browser gets `SCHEMA` from here, and the command line its choices, so the names and defaults stand
once. No PyTorch needed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from vit_demo.validate import choice, pair, share, shown, whole

FITS = ("crop", "pad", "stretch", "native")  # how a picture meets the model: `view.py`
FUSIONS = ("mean", "max", "min")  # over heads
PLAIN_MAPS = ("head_rollout", "rollout", "attention")  # the same for every class
CLASS_MAPS = ("contribution", "relevance", "gradient_rollout", "grad_cam")  # why one class
SIGNED_MAPS = ("contribution",)  # for the class above zero, against it below
COMPARED_MAPS = (  # by `trust` and `faithfulness`, in this order
    "raw",
    "rollout",
    "gradient_rollout",
    "contribution",
    "relevance",
    "grad_cam",
    "random",
)
FILLS = ("black", "blur")  # what stands where a patch is painted over
REMOVALS = ("tokens", *FILLS)  # ways of taking patches away: `trust/removal.py`
COLOUR_MAPS = ("inferno", "viridis", "cividis", "magma")
DIFFERENCES = "RdBu_r"  # blue, white, red: for values on both sides of zero
CHOICES = {
    "map": (*PLAIN_MAPS, *CLASS_MAPS, "random"),
    "direction": ("from", "to"),
    "below": ("mean", "same"),
    "part": ("whole", "special"),
    "wall": ("special", "whole", "attention"),
    "picture": ("own", "seen"),
    "colours": COLOUR_MAPS,
    "scale": ("shared", "own"),
    "sort": ("layer", "focus"),
}


@dataclass(frozen=True)
class MapSettings:
    map: str = "rollout"
    layer: int = -1  # 0 is the first, -1 the last
    head: int | str = "mean"  # one head, or all of them, fused
    query: tuple[int, int] | None = None  # the patch that asks; None: the answer asks
    direction: str = "from"  # raw attention: from the query, or to it
    below: str = "mean"  # below a head: the mean of the heads, or the head of the same number
    part: str = "whole"  # head rollout: all of it, or what sets a head apart from the others
    wall: str = "special"  # the wall of heads: that part, the whole, or raw attention
    residual: float = 0.5
    discard: float = 0.0
    picture: str = "own"  # under the map: the visitor's own, or the one that the model saw
    opacity: float = 0.55
    smooth: bool = False
    colours: str = "inferno"
    scale: str = "own"  # of the wall's colours
    sort: str = "layer"  # of the wall's tiles
    label: int | str | None = None  # class maps: for this class, by number or name ...
    minus: int | str | None = None  # ... rather than this one

    def __post_init__(self):
        """Refuse what cannot be; numpy's numbers become Python's, which JSON knows."""
        for name, allowed in CHOICES.items():
            choice(name, getattr(self, name), allowed)
        plain = {"layer": whole("layer", self.layer)}
        is_fusion = isinstance(self.head, str)
        plain["head"] = (
            choice("head", self.head, FUSIONS) if is_fusion else whole("head", self.head)
        )
        if self.query is not None:
            row, col = pair("query", self.query, "(row, column)")
            plain["query"] = (whole("row", row), whole("column", col))
        for name in ("residual", "discard", "opacity"):
            plain[name] = share(name, getattr(self, name), one=name != "discard")
        for name in ("label", "minus"):
            label = getattr(self, name)
            if not (label is None or isinstance(label, str)):
                plain[name] = whole(name, label)
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @property
    def is_class_map(self) -> bool:
        return self.map in CLASS_MAPS

    @property
    def is_signed(self) -> bool:
        """Values on both sides of zero, which is the middle of the colours."""
        special = self.map == "head_rollout" and self.part == "special"
        difference = self.is_class_map and self.minus is not None
        return self.map in SIGNED_MAPS or special or difference

    @property
    def fusion(self) -> str:
        """How rollout fuses the heads: only there "max" and "min" stand for the whole way down."""
        fused = self.map == "rollout" and self.head in ("max", "min")
        return self.head if fused else "mean"

    @property
    def rollout_options(self) -> dict:
        """The arguments of `Explanation.rollout` and `Explanation.head_rollouts`."""
        return {
            "query": self.query,
            "fusion": self.fusion,
            "residual": self.residual,
            "discard": self.discard,
        }


NAMES = tuple(field.name for field in fields(MapSettings))
SCHEMA = {
    "defaults": asdict(MapSettings()),
    "choices": {name: list(allowed) for name, allowed in CHOICES.items()},
    "fusions": list(FUSIONS),
    "plain_maps": list(PLAIN_MAPS),
    "class_maps": [*CLASS_MAPS, "random"],  # in the order in which the server packs them
    "signed_maps": list(SIGNED_MAPS),
}


def settings_from(state: Mapping) -> MapSettings:
    """Settings as JSON has them, from the browser or a program; unknown names are left out."""
    known = {name: state[name] for name in NAMES if state.get(name) is not None}
    known["smooth"] = known.get("smooth") in (True, "true")
    return MapSettings(**known)


def settings_in_link(parameters: Mapping[str, str]) -> dict:
    """The settings in a link, as JSON has them; what is not understood is left out."""
    state = {}
    for name in NAMES:
        value = parameters.get(name)
        if not isinstance(value, str):
            continue
        if name == "query" and re.fullmatch(r"[0-9]{1,3},[0-9]{1,3}", value):
            state[name] = [int(number) for number in value.split(",")]
        elif re.fullmatch(r"-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,6})?|true|false", value):
            state[name] = json.loads(value)
        elif value in (FUSIONS if name == "head" else CHOICES.get(name, ())):
            state[name] = value
    return state


def unknown_colours(name: object) -> ValueError:
    return ValueError(f"colour map {shown(name)}: use one of {', '.join(COLOUR_MAPS)}.")
