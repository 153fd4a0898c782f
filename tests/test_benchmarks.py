"""The benchmarks still fit what they measure. How long anything takes is not tested."""

import importlib
import re

import pytest
from support.runs import ROOT

NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_each_benchmark_can_be_started(name):
    module = importlib.import_module(f"benchmarks.{name}")
    shown = re.findall(r"python (-m benchmarks\.\w+|\S+\.py)", module.__doc__)
    assert all(command == f"-m benchmarks.{name}" for command in shown)


def test_of_the_training_loop(monkeypatch, capsys):
    small = ["--config", "notes", "--batch-size", "8", "--steps", "1", "--rounds", "1"]
    monkeypatch.setattr("sys.argv", ["train", *small])
    importlib.import_module("benchmarks.train").main()
    assert re.search(r"ratio: \d", capsys.readouterr().out)


def test_of_folders(monkeypatch, capsys):
    small = ["--model", "vit_tiny_patch16_224", "--pictures", "2", "--rounds", "1"]
    monkeypatch.setattr("sys.argv", ["folders", *small])
    importlib.import_module("benchmarks.folders").main()
    assert "pictures a second" in capsys.readouterr().out


def test_of_explanations(capsys):
    explain = importlib.import_module("benchmarks.explain")
    theirs, classifier = explain.twins("deit_tiny_patch16_224")
    maps = explain.explain_all(classifier, explain.noise_view(classifier))
    assert maps.shape[:2] == (12, 3) and theirs.num_classes == 1000
