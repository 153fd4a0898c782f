"""The page's JavaScript modules and style sheets, and how they reach the browser.

On the page, each component imports its module, and the browser loads every module once. Their address
carries a hash of their contents, so a browser may keep them for good. In a file that works from disk,
where browsers refuse to import, the modules are joined into one script.
"""

import hashlib
import json
import posixpath
import re
from functools import cache
from pathlib import Path

from vit_demo.ui.texts import LANGUAGES, words

STATIC = Path(__file__).parent
IMPORT = re.compile(r'^import\s[^;]*?"(\.[^"]+)";\n', re.MULTILINE)


def read_static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


@cache
def modules() -> dict[str, str]:
    """Every module: its path below this folder, and its text."""
    paths = sorted(STATIC.rglob("*.js"))
    names = [path.relative_to(STATIC).as_posix() for path in paths]
    return {name: read_static(name) for name in names}


@cache
def version() -> str:
    """A name for these very contents."""
    return hashlib.sha256(json.dumps(modules()).encode()).hexdigest()[:12]


def address(name: str) -> str:
    """Where a module is, from the page: relative, because the page may be under a path."""
    return f"static/{version()}/{name}"


def mount_script(name: str, setup: str = "null") -> str:
    """For a component's `js_on_load`: import a module and call its `mount`. `setup` is JSON. If that
    fails, the component says so."""
    sentences = json.dumps({language: words(language)["script_failed"] for language in LANGUAGES})
    return f"""
import(new URL("{address(name)}", document.baseURI))
    .then((module) => module.mount(element, {{ props, trigger, watch, server }}, {setup}))
    .catch((error) => {{
        const sentences = {sentences}, note = document.createElement("p");
        note.textContent = sentences[document.documentElement.lang] ?? sentences.en;
        note.className = "script-failed";
        note.setAttribute("role", "alert");
        const show = () => element.append(note); // a new value takes it away
        show();
        watch("value", () => requestAnimationFrame(show));
        console.error(error);
    }});
"""


@cache
def joined(entry: str) -> str:
    """A module and all that it imports, each after what it needs, as one function's body: without
    `import` and `export`, their names are the function's own."""
    order: list[str] = []

    def visit(name: str) -> None:
        for found in IMPORT.findall(modules()[name]):
            needed = posixpath.normpath(posixpath.join(posixpath.dirname(name), found))
            if needed not in order:
                visit(needed)
        if name not in order:
            order.append(name)

    visit(entry)
    texts = (IMPORT.sub("", modules()[name]) for name in order)
    return "\n".join(re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in texts)
