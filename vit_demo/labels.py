"""The names of classes: several names to a label, and the way from a name to its class."""

import difflib
import operator
from collections.abc import Callable, Sequence

from vit_demo.validate import shown


def names_of(label: str) -> list[str]:
    """ "tabby, tabby cat" is called that, "tabby" and "tabby cat"."""
    return list(dict.fromkeys(name.strip() for name in [label, *label.split(",")]))


def short(label: str, most: int = 28) -> str:
    """The first of a label's names, cut to fit beside a bar."""
    first = label.split(",")[0]
    return first if len(first) <= most else first[: most - 1] + "\u2026"


def read_label(text: str) -> int | str | None:
    """A label as somebody typed it: its number, its name, or nothing."""
    text = text.strip()
    if text.isdecimal() and len(text) < 10:
        return int(text)
    return text or None


def same_labels(first: Sequence[str], second: Sequence[str]) -> dict[int, int]:
    """Which class of the second set is called as one of the first: by the whole label, else by one of its
    names, in any case. Where a name fits several labels of a set, it decides nothing."""
    matches: dict[int, int] = {}
    taken: set[int] = set()
    for names in (lambda label: [label], names_of):
        there = owners(second, names)
        for name, index in owners(first, names).items():
            other = there.get(name)
            if index is None or other is None or index in matches or other in taken:
                continue
            matches[index] = other
            taken.add(other)
    return matches


def owners(labels: Sequence[str], names: Callable[[str], Sequence[str]]) -> dict[str, int | None]:
    """Name -> the one class that is called so; None if there are several."""
    found: dict[str, int | None] = {}
    for index, label in enumerate(labels):
        for name in {name.strip().casefold() for name in names(label)}:
            found[name] = None if name in found else index
    return found


def find_label(labels: Sequence[str], label: int | str) -> int:
    """The class of a label: by number, by its text, or by one of its names in any case."""
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
    names = [names_of(text) for text in labels]
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
