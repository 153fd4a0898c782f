"""Imports go one way, read from the source: `python tests/test_imports.py` prints who imports whom."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "vit_demo"
TABLE = ROOT / "docs" / "architecture.md"  # the layers stand there, for people
NEVER = {  # besides: whom a module, or any module of a folder, must not reach, even through others
    "model": [PACKAGE],
    "attention": [PACKAGE],
    "recorder": ["checkpoints"],
    "class_maps": ["checkpoints"],
    "training": ["class_maps", "explain", "recorder", "trust", "ui"],
    "trust": ["ui", "cli"],
    "ui.texts": ["model", "attention", "checkpoints", "explain"],
    "ui.static": ["model", "attention", "checkpoints", "explain"],
    "ui.html": ["model", "attention", "checkpoints", "explain"],
}
LIGHT = ["vit_demo", "vit_demo.cli", "vit_demo.training.config", "vit_demo.map_settings"]
LIGHT += ["vit_demo.embedded", "vit_demo.ui.texts"]


@cache
def sources() -> dict[str, ast.Module]:
    """The modules of the package without its name in front, parsed; the package itself keeps it."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__") or PACKAGE
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(tree: ast.AST) -> Iterator[str]:
    """Every name that is imported, wherever the statement stands: a.b for `from a import b`. What is
    there for annotations alone (`if TYPE_CHECKING`) is never imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        yield from imported(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the import with its full name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def graph() -> dict[str, set[str]]:
    """For each of our modules, those of ours that it imports."""
    edges = {}
    for module, tree in sources().items():
        edges[module] = set()
        for name in imported(tree):
            inside = name.removeprefix(f"{PACKAGE}.")
            if inside == name:
                continue  # not ours
            while inside and inside not in sources():  # a name in a module
                inside = inside.rpartition(".")[0]
            edges[module].add(inside or PACKAGE)
    return edges


def belongs(module: str, group: str) -> bool:
    return module == group or module.startswith(f"{group}.") or group == PACKAGE


@cache
def layers() -> dict[str, int]:
    """Module or folder of the package -> its row in the table; the two ways in come last."""
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    found = {name: int(row) for row, names in rows for name in re.findall(r"`(\w+)`", names)}
    return found | {"__main__": len(rows) + 1, PACKAGE: len(rows) + 1}


def layer_of(module: str) -> int:
    name = module.partition(".")[0]
    assert name in layers(), f"{module} has no layer; add it to the table in {TABLE.name}"
    return layers()[name]


def reached(module: str) -> set[str]:
    """All that is imported in the end."""
    seen, waiting = set(), [module]
    while waiting:
        new = graph()[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def test_the_source_is_read():
    """Or the other tests would find nothing wrong for the wrong reason."""
    assert {"attention", "checkpoints", "class_maps", "recorder"} <= graph()["explain"]
    assert "explain" in graph()["cli.flags"]  # inside a function
    assert "trust" in graph()["ui.questions"]  # from vit_demo import trust as ...
    assert "checkpoints.weights" in reached("ui.page")


def test_the_table_has_every_module_once():
    names = {module.partition(".")[0] for module in graph()}
    assert set(layers()) == names


@pytest.mark.parametrize("module", graph())
def test_a_module_imports_from_its_own_folder_and_from_layers_before_it(module):
    own = module.partition(".")[0]
    others = {other for other in graph()[module] if other.partition(".")[0] != own}
    wrong = {other for other in others if layer_of(other) >= layer_of(module)}
    assert wrong == set(), f"{module} imports what stands beside it or after it in the table"


def test_there_is_no_circle():
    tuple(TopologicalSorter(graph()).static_order())  # raises CycleError, which names the circle


@pytest.mark.parametrize("group", NEVER)
def test_what_must_stay_apart(group):
    modules = [module for module in graph() if belongs(module, group)]
    assert modules
    for module in modules:
        wrong = {other for other in reached(module) for no in NEVER[group] if belongs(other, no)}
        assert wrong == set(), f"{module} must not import these, directly or through others"


def test_only_the_command_line_parses_arguments():
    using = {name for name, tree in sources().items() if "argparse" in set(imported(tree))}
    using = {name for name in using if not belongs(name, "cli")}
    assert using == {"checkpoints.weights"}  # old checkpoints hold an argparse.Namespace


@pytest.mark.parametrize("module", LIGHT)
def test_import_without_torch(module):
    code = f"import sys, {module}; print(sorted({{'torch', 'timm', 'gradio'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def print_layers() -> None:
    """Who imports whom, from the lowest layer to the highest."""
    for number in sorted(set(layers().values())):
        print(f"{number}: {', '.join(name for name, row in layers().items() if row == number)}")
        for module, imports in graph().items():
            if layer_of(module) == number and imports:
                print(f"     {module:26} <- {', '.join(sorted(imports))}")


if __name__ == "__main__":
    print_layers()
