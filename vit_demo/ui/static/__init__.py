"""The page's JavaScript modules and style sheets, and how they reach the browser.

The modules are many and small, and a browser that asks for each of them waits longer for the asking than
for the answers. So they travel together, as one script (`bundle`): on the page under an address that
carries a hash of the contents, so that a browser may keep it for good, and inside of a file that works
from disk, where browsers refuse to import.
"""

import hashlib
import json
import posixpath
import re
from functools import cache
from pathlib import Path

from vit_demo.ui.texts import LANGUAGES, words

STATIC = Path(__file__).parent
IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)


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
    """A name for this very script."""
    return hashlib.sha256(page_script().encode()).hexdigest()[:12]


def address() -> str:
    """Where the script is, from the page: relative, because the page may be under a path."""
    return f"static/{version()}.js"


def mount_script(name: str, setup: str = "null") -> str:
    """For a component's `js_on_load`: call `mount` of a module. `setup` is JSON. If that fails, the
    component says so; of many that fail, one that is seen."""
    sentences = json.dumps({language: words(language)["script_failed"] for language in LANGUAGES})
    return f"""
import(new URL("{address()}", document.baseURI))
    .then(({{ modules }}) =>
        modules["{name}"].mount(element, {{ props, trigger, watch, server }}, {setup}))
    .catch((error) => {{
        console.error(error);
        const said = [...document.querySelectorAll(".script-failed")];
        if (said.some((note) => note.checkVisibility())) return;
        const sentences = {sentences}, note = document.createElement("p");
        note.textContent = sentences[document.documentElement.lang] ?? sentences.en;
        note.className = "script-failed";
        note.setAttribute("role", "alert");
        const show = () => element.append(note); // a new value takes it away
        show();
        watch("value", () => requestAnimationFrame(show));
    }});
"""


@cache
def page_script() -> str:
    """Every module, as one module of which the page's components take theirs."""
    return f"{bundle(*modules())}\nexport {{ modules }};\n"


@cache
def bundle(*entries: str) -> str:
    """Some modules and all that they import, each after what it needs, as one script: each is a function
    that runs once and leaves what it exports in `modules["its name"]`."""
    order: list[str] = []

    def visit(name: str) -> None:
        for _, found in IMPORT.findall(modules()[name]):
            needed = beside(name, found)
            if needed not in order:
                visit(needed)
        if name not in order:
            order.append(name)

    for entry in entries:
        visit(entry)
    return "\n".join(["const modules = {};", *map(as_function, order)])


def as_function(name: str) -> str:
    """A module as a part of a bundle."""
    text = IMPORT.sub(
        lambda found: f'const {found[1]} = modules["{beside(name, found[2])}"];', modules()[name]
    )
    exports = ", ".join(what for _, what in EXPORT.findall(text))
    body = EXPORT.sub(r"\1", text)
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();'


def beside(name: str, found: str) -> str:
    """The module that another one names in an import."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), found))
