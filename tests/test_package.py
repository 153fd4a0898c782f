"""The package as others get it: a real wheel, in an environment of its own, from any folder."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import urlopen

import pytest
from support.paths import ROOT

from vit_demo.cli import COMMANDS


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, so that nothing is left behind in the checkout."""
    out, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source")
    for name in ("vit_demo", "assets"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out]
    subprocess.run([*command, source], check=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The bin folder of an environment with the wheel in it. What it depends on is this one's."""
    folder = tmp_path_factory.mktemp("environment")
    command = [sys.executable, "-m", "venv", "--without-pip", folder]
    subprocess.run(command, check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    own = next(path for path in map(Path, sys.path) if (path / "torch").is_dir())
    (packages / "dependencies.pth").write_text(f"{own}\n")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    subprocess.run([*pip, "install", "--no-deps", "--quiet", wheel], check=True)
    return folder / "bin"


def run(*command, folder: Path, **environment) -> subprocess.CompletedProcess:
    """A process that does not see the checkout, unless it is told to."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        list(map(str, command)), cwd=folder, env=clean | environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


def test_the_wheel_holds_every_file_that_the_code_opens(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, inside in (("vit_demo", "vit_demo"), ("assets", "vit_demo/assets")):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix not in {".pyc", ".ts"}:  # .ts: types, for us
                assert f"{inside}/{path.relative_to(ROOT / folder).as_posix()}" in names
    entry = next(name for name in names if name.endswith("entry_points.txt"))
    assert "vit-demo = vit_demo.__main__:main" in zipfile.ZipFile(wheel).read(entry).decode()


def test_the_installed_command_classifies_with_the_embedded_model(installed, tmp_path):
    picture = next((ROOT / "assets" / "examples").glob("*.jpg"))
    flags = ["--json", "--device", "cpu"]
    done = run(installed / "vit-demo", "classify", picture, *flags, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)
    assert len(answer["labels"]) == 10
    code = "import vit_demo.embedded as e; print(e.ASSETS)"
    where = run(installed / "python", "-c", code, folder=tmp_path).stdout
    assert str(ROOT) not in where and "site-packages/vit_demo/assets" in where


def test_the_installed_app_opens_the_page(installed, tmp_path):
    process = subprocess.Popen(
        [installed / "vit-demo", "app", "--device", "cpu"], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Ready: "):
                break
        assert lines and lines[-1].startswith("Ready: http://127.0.0.1:"), "".join(lines)
        address = lines[-1].split()[1]
        page = urlopen(address).read().decode()
        module = re.search(r"static/[0-9a-f]{12}\.js", page)[0]
        assert "ViT Demo" in page and urlopen(urljoin(address, module)).read()
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)])
def test_help_needs_no_torch(tmp_path, words):
    code = f"""
import sys
from vit_demo.cli import main
try:
    main([*{words}, "--help"])
except SystemExit:
    print("torch" in sys.modules, "gradio" in sys.modules)
"""
    done = run(sys.executable, "-c", code, folder=tmp_path, PYTHONPATH=str(ROOT))
    assert done.stdout.startswith("usage: vit-demo"), done.stderr
    assert done.stdout.splitlines()[-1] == "False False"


def test_the_pinned_versions_lie_in_the_ranges():
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = dict(
        re.findall(r"^([\w-]+)==(.+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    )
    ranges = [Requirement(line) for line in project["dependencies"]]
    assert {requirement.name for requirement in ranges} == set(pinned)
    for requirement in ranges:
        assert pinned[requirement.name] in requirement.specifier, requirement
