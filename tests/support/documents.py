"""The documentation as data: what a page links to, and what stands in its code blocks."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt
from support.paths import ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "assets" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
HUB_MODEL = re.compile(r"\b(?:deit|vit)\w*_\w+\.\w+_in1k\b")
SERVER = "http://127.0.0.1:7860"


@dataclass
class Document:
    links: list[str] = field(default_factory=list)  # of pictures, too
    anchors: set[str] = field(default_factory=set)
    blocks: list[tuple[str, str]] = field(default_factory=list)  # (language, code)

    def code(self, language: str) -> list[str]:
        return [code for found, code in self.blocks if found == language]

    def commands(self) -> list[str]:
        """The lines that run this project, in blocks without a language."""
        lines = "\n".join(self.code("")).replace("\\\n", " ").splitlines()
        return [line for line in lines if words_of(line)]


def read(path: Path) -> Document:
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)  # a Space's configuration
    document = Document()
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "fence":
            document.blocks.append((token.info.strip(), token.content))
        elif token.type == "heading_open":
            document.anchors.add(anchor(after.content))
        for child in token.children or []:
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                document.links.append(target)
    return document


def anchor(heading: str) -> str:
    """The name that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def words_of(line: str) -> list[str]:
    """What a line hands to `vit_demo.cli.main`; nothing if it runs something else."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["vit-demo"]:
        return words[1:]
    if words[:2] == ["python", "app.py"]:
        return ["app", *words[2:]]
    if words[:1] in (["python"], ["torchrun"]) and "vit_demo" in words:
        return words[words.index("vit_demo") + 1 :]
    return []
