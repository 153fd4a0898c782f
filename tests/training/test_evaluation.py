"""Accuracy, for each class and over all, of a model trained here and of the embedded ones."""

import json
import re
import tarfile

import pytest
import torch
from PIL import Image
from support.commands import run
from support.runs import ROOT, evaluation

from vit_demo.checkpoints import load_checkpoint, save_checkpoint
from vit_demo.embedded import embedded
from vit_demo.model import VisionTransformer, ViTConfig
from vit_demo.training.data import DataError
from vit_demo.view import Preprocess

pytestmark = pytest.mark.usefixtures("one_thread")


def test_evaluate_prints_and_draws(trained, colours, tmp_path, capsys):
    picture = tmp_path / "new" / "confusion.png"
    model = trained / "best.safetensors"
    result = evaluation(model, colours)
    flags = [colours, "--model", model, "--device", "cpu"]
    code, printed, _ = run(capsys, "evaluate", *flags, "--out", picture)
    assert code == 0
    assert f"top-1 {result['top1']:.2%}" in printed and "top-5" not in printed
    assert all(name in printed for name in ("blue", "green", "red", str(picture)))
    shares = result["per_class"].values()
    assert result["top1"] == pytest.approx(sum(shares) / 3) and result["pictures"] == 33
    assert Image.open(picture).size[0] > 500

    _, printed, _ = run(capsys, "evaluate", *flags, "--json")
    assert json.loads(printed) == result | {"confusion": None}


def test_every_picture_of_a_folder_is_counted_if_wanted(trained, colours):
    model = trained / "best.safetensors"
    assert evaluation(model, colours)["pictures"] == 3 * 11
    assert evaluation(model, colours, every_picture=True)["pictures"] == 3 * (24 + 11)


def test_evaluate_draws_only_where_out_says(trained, colours, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evaluation(trained / "best.safetensors", colours)
    assert list(tmp_path.iterdir()) == []


def test_evaluate_finds_classes_by_name_not_by_place(colours, tmp_path):
    """A model with more labels, in another order: the answer is right if the name is."""
    labels = [f"other {i}" for i in range(9)] + ["red", "blue", "green"]
    model = VisionTransformer(ViTConfig(16, 16, 3, 8, 1, 1, num_classes=12))
    torch.nn.init.zeros_(model.head.weight)
    model.head.bias.data = torch.arange(12.0)  # always says green, then blue, then red
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, model, labels, Preprocess((16, 16)))
    result = evaluation(path, colours)
    assert result["per_class"] == {"blue": 0, "green": 1, "red": 0}
    assert result["top1"] == pytest.approx(1 / 3) and result["top5"] == 1
    save_checkpoint(path, model, labels[:-1] + ["gruen"], Preprocess((16, 16)))
    with pytest.raises(DataError, match="no label 'green'; name the class folders"):
        evaluation(path, colours)


def test_evaluate_without_a_set(trained, capsys):
    code, _, error = run(capsys, "evaluate", "--model", trained / "best.safetensors")
    assert code == 2 and "Say on what" in error


def stated(name: str) -> tuple[float, ...]:
    """The accuracies in assets/README.md: top-1, and top-5 where it stands there."""
    page = (ROOT / "assets" / "README.md").read_text(encoding="utf-8")
    section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
    return tuple(float(number) for number in re.findall(r"\*\*([\d.]+) %\*\*", section))


@pytest.mark.slow
def test_the_digits_model_is_as_good_as_stated(shared):
    result = evaluation("vit-mnist", "mnist", data=str(shared / "data"))
    assert result["pictures"] == 10_000
    assert (100 * result["top1"],) == pytest.approx(stated("vit-mnist"), abs=0.1)
    assert stated("vit-mnist") >= (99.0,)


@pytest.mark.slow
def test_the_photo_model_is_as_good_as_stated(shared, tmp_path):
    taken = set()  # of the training pictures one of each class is enough

    def wanted(member: tarfile.TarInfo) -> bool:
        folder = member.name.rpartition("/")[0]
        new = folder not in taken
        taken.add(folder)
        return "/val/" in member.name or (member.isfile() and new)

    with tarfile.open(shared / "data" / "photos100.tar.xz", "r|xz") as archive:  # forwards only
        archive.extractall(tmp_path, filter(wanted, archive), filter="data")
    result = evaluation("vit-photos", str(tmp_path / "photos100"))
    assert result["pictures"] == 5_000
    found = (100 * result["top1"], 100 * result["top5"])
    assert found == pytest.approx(stated("vit-photos"), abs=0.1)
    model = load_checkpoint("vit-photos").model
    assert min(model.config.grid) >= 12
    assert sum(p.numel() for p in model.parameters()) <= 4_500_000
    assert embedded()["vit-photos"].stat().st_size < 10_000_000
