"""What a caller hands in, looked at before it meets a tensor: words instead of a broadcasting error."""

import json
import operator
import unicodedata
from collections.abc import Collection


def shown(value: object) -> str:
    """A value for a message: short, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 (numbers of 5,000 digits refuse to be written)
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def printable(text: str) -> str:
    """Text that does nothing to a terminal and fits into UTF-8: control characters, marks that turn
    the direction of writing, and bytes of a file name that are no UTF-8, are written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if is_plain(c) else escaped(c) for c in text)


def cell(text: str, instead: str = "'") -> str:
    """A text that spreadsheets do not take for a formula. `instead` stands before one that looks so:
    "./" before a file's name, which then still names the file."""
    return instead + text if text.startswith(("=", "+", "-", "@")) else text


def is_plain(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"  # wide spaces


def escaped(character: str) -> str:
    """ "\\n", or "\\xe9" for a byte that was no UTF-8 (Python keeps those as U+DC80 to U+DCFF)."""
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else ascii(character)[1:-1]


def json_text(value: object) -> str:
    """JSON in lines that do nothing to a terminal and fit into UTF-8. What it holds can be read back
    from it, also the name of a file that is no UTF-8. NaN is no JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return "".join(c if c == "\n" or is_plain(c) else json.dumps(c)[1:-1] for c in text) + "\n"


def is_whole(value: object) -> bool:
    """Python's, numpy's or torch's integer; a list of them is none."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def whole(what: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """A whole number, between bounds if there are any."""
    try:
        number = operator.index(value)
        fine = (least is None or number >= least) and (most is None or number <= most)
    except TypeError:
        fine = False
    if not fine:
        bounds = " of at least {}" if most is None else " from {} to {}"
        bounds = "" if least is None else bounds.format(least, most)
        raise ValueError(f"{what} is {shown(value)}; use a whole number{bounds}.")
    return number


def share(what: str, value: object, one: bool = True) -> float:
    """A number from 0 to 1, with or without 1 itself. NaN is none."""
    try:
        number = -1.0 if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not (0 <= number < 1 or (one and number == 1)):
        bounds = "from 0 to 1" if one else "from 0 up to, but below, 1"
        raise ValueError(f"{what} is {shown(value)}; use a share {bounds}.")
    return number


def choice(what: str, value: object, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{what} is {shown(value)}; use one of {', '.join(allowed)}.")
    return value


def pair(what: str, value: object, of: str) -> tuple:
    """Two things, such as a row and a column."""
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {shown(value)}; give {of}.") from None
    return first, second


def index_of(what: str, index: int, count: int) -> int:
    """A Python index (negative from the end) as a plain one, or an error that gives the range."""
    index = whole(what, index)
    if not -count <= index < count:
        raise ValueError(
            f"There is no {what} {shown(index)}; use 0 to {count - 1} (or -1 for the last)."
        )
    return index % count
