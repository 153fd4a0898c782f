"""The page's JavaScript and style sheets."""

from pathlib import Path

STATIC = Path(__file__).parent


def read_static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
