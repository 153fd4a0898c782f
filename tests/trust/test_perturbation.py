"""The perturbation test of the papers on the command line: alone, stopped and resumed, by two."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.commands import run
from support.models import small_classifier
from support.paths import ROOT

from vit_demo.trust import perturbation

METHODS = "rollout,relevance,random"


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(5):
        noise = np.random.default_rng(i).integers(0, 255, (40, 50, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{i}.png")
    return folder


def faithfulness(capsys, folder, model, out, *more):
    given = ["--images", folder, "--model", model, "--out", out, "--device", "cpu"]
    return run(capsys, "faithfulness", *given, "--methods", METHODS, *more)


def test_the_area_is_the_published_one():
    assert perturbation.area([1] * 10) == pytest.approx(90)
    assert perturbation.area([1] + [0] * 9) == pytest.approx(5)
    assert perturbation.area([0.5, 1] * 5) == pytest.approx(67.5)


def test_pixels_go_in_the_order_of_the_map_before_normalisation():
    """What the model is shown: so many pixels black, none of them marked less than one that stays."""
    classifier = small_classifier()
    noise = np.random.default_rng(3).integers(1, 255, (32, 32, 3), dtype=np.uint8)
    explanation = classifier.explain(Image.fromarray(noise))
    heat = torch.rand(4, 4, generator=torch.Generator().manual_seed(0))
    shown, answers = [], []

    def watch(module, args, out):
        shown.append(args[0])
        answers.append(out)

    classifier.model.register_forward_hook(watch)
    right = perturbation.perturb(explanation, {"some": heat}, 3, batch=5)["some"]
    shown, answers = torch.cat(shown), torch.cat(answers).argmax(-1)
    assert len(shown) == 18
    fine = torch.nn.functional.interpolate(heat[None, None], scale_factor=8, mode="bilinear")[0, 0]
    first = int(explanation.label_index() == 3)
    for way, sign in (("positive", 1), ("negative", -1)):
        half = slice(0, 9) if sign == 1 else slice(9, 18)
        assert right[way] == [first, *(answers[half] == 3).int().tolist()]
        for step, pixels in enumerate(shown[half], start=1):
            bytes = ((pixels * 0.5 + 0.5) * 255).round().byte().permute(1, 2, 0).numpy()
            black = (bytes == 0).all(axis=-1)
            assert black.sum() == int(1024 * step / 10)
            assert (bytes[~black] == noise[~black]).all()
            marked = sign * fine.numpy()
            assert marked[black].min() >= marked[~black].max()


def test_pictures_are_squeezed_as_in_the_papers_code_unless_asked_otherwise(folder):
    """No part is cut away: the published numbers are for the whole picture in a square."""
    classifier, path = small_classifier(), folder / "0.png"
    seen = []
    look = classifier.model.patch_embed.register_forward_pre_hook
    look(lambda module, args: seen.append(args[0][0]))
    perturbation.test_picture(classifier, path, None, ["rollout"], 18)
    perturbation.test_picture(classifier, path, None, ["rollout"], 18, "crop")
    with Image.open(path) as picture:
        squeezed = np.asarray(picture.resize((32, 32), Image.Resampling.BICUBIC))
    first, cropped = ((seen[i] * 0.5 + 0.5) * 255 for i in (0, 2))
    np.testing.assert_allclose(first.permute(1, 2, 0), squeezed, atol=0.01)
    assert (cropped - first).abs().max() > 50


def test_a_folder_gives_a_table_rows_and_a_picture(capsys, folder, model, tmp_path):
    out = tmp_path / "out"
    code, text, _ = faithfulness(capsys, folder, model, out)
    assert code == 0
    assert "relevance" in text and "5 pictures" in text
    rows = list(csv.DictReader((out / "results.csv").open()))
    assert len(rows) == 5 * 3 * 2
    summary = {row["method"]: row for row in csv.DictReader((out / "summary.csv").open())}
    for method in METHODS.split(","):
        for way in ("positive", "negative"):
            of = [row for row in rows if row["method"] == method and row["direction"] == way]
            assert [row["picture"] for row in of] == [f"{i}.png" for i in range(5)]
            mean = np.mean([float(row["area"]) for row in of])
            assert float(summary[method][way]) == pytest.approx(mean, abs=0.01)
            assert all(row["0.0"] == "1" for row in of)  # the model agrees with itself
            baseline = float(summary["relevance"][way])
            apart = float(summary[method][f"{way} minus relevance"])
            assert apart == pytest.approx(float(summary[method][way]) - baseline, abs=0.02)
    assert "minus relevance" in text
    assert Image.open(out / "perturbation.png").size[0] > 600


def test_methods_are_compared_with_relevance_picture_by_picture():
    """Three pictures, differences of 5, 15 and 25: the mean is 15, its error 10 / sqrt(3)."""
    most, none = [1] * 10, [0] * 10
    one, two, three = [1, *none[1:]], [1, 1, *none[2:]], [1, 1, 1, *none[3:]]
    others = {"positive": [one, two, three], "negative": [none] * 3}
    records = [
        {
            "right": {
                "relevance": {"positive": none, "negative": most},
                "other": {way: lists[i] for way, lists in others.items()},
            }
        }
        for i in range(3)
    ]
    found = perturbation.paired_differences(records, ["relevance", "other"])
    assert found["other"]["positive"] == pytest.approx((15, 10 / 3**0.5))
    assert found["other"]["negative"] == pytest.approx((-90, 0))
    assert found["relevance"] == {"positive": (0, 0), "negative": (0, 0)}
    assert perturbation.paired_differences(records, ["other"]) == {}
    assert perturbation.paired_differences(records[:1], ["relevance", "other"]) == {}


def test_a_stopped_run_goes_on_and_gives_the_same(capsys, folder, model, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "out"
    faithfulness(capsys, folder, model, whole)
    faithfulness(capsys, folder, model, out, "--limit", 2)
    done = (out / "rows-0.jsonl").read_bytes()
    assert done.count(b"\n") == 2
    (out / "rows-0.jsonl").write_bytes(done[:-30])  # killed while writing the second line
    code, _, err = faithfulness(capsys, folder, model, out)
    assert code == 2 and "--resume" in err
    code, _, _ = faithfulness(capsys, folder, model, out, "--resume")
    assert code == 0
    kept = (out / "rows-0.jsonl").read_bytes()
    assert kept.startswith(done[:-30] + b"\n") and kept.count(b"\n") == 6
    for name in ("results.csv", "summary.csv"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    code, _, err = run(capsys, "faithfulness", "--images", folder, "--model", model, "--out", out,
                       "--resume", "--methods", "raw")  # fmt: skip
    assert code == 2 and "another methods" in err
    code, _, err = faithfulness(capsys, folder, model, out, "--resume", "--fit", "crop")
    assert code == 2 and "another fit (stretch)" in err


def test_a_bad_picture_is_named_and_the_rest_counted(capsys, folder, model, tmp_path):
    (folder / "bad.png").write_text("not a picture")
    out = tmp_path / "out"
    code, text, err = faithfulness(capsys, folder, model, out)
    assert code == 2 and "bad.png" in err and "5 pictures" in text
    Image.new("RGB", (40, 40), "red").save(folder / "bad.png")
    code, text, err = faithfulness(capsys, folder, model, out, "--resume")
    assert code == 0 and "6 pictures" in text and err == ""


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--methods", "raw,magic"], "no method 'magic'"),
        (["--limit", "0"], "1 or more"),
        (["--labels-from-name"], "ImageNet"),
        (["--images", "nowhere"], "no folder nowhere"),
    ],
)
def test_wrong_arguments_are_one_line(capsys, folder, model, tmp_path, more, words):
    code, out, err = faithfulness(capsys, folder, model, tmp_path / "out", *more)
    assert code == 2 and out == "" and err.count("\n") == 1 and words in err


def test_truth_from_the_names(capsys, shared, tmp_path, deit_tiny):
    from vit_demo.trust.perturbation import pictures_in, synset_classes

    pictures = pictures_in(shared / "images" / "imagenet", None)
    truths = synset_classes(pictures, deit_tiny)
    assert len(truths) == 20 and truths["n02123045_tabby.JPEG"] == 281
    with pytest.raises(ValueError, match="begin with a synset"):
        synset_classes([Path("tabby.png")], deit_tiny)


@pytest.mark.slow
def test_the_ranking_of_the_literature(deit_tiny, imagenet_pictures, monkeypatch):
    """Real weights, 20 pictures, four of the ten steps (all of them: the command line)."""
    monkeypatch.setattr(perturbation, "SHARES", (0.0, 0.2, 0.4, 0.6))
    truths = perturbation.synset_classes(imagenet_pictures, deit_tiny)
    methods = METHODS.split(",")
    rows = [
        perturbation.test_picture(deit_tiny, path, truths[path.name], methods, 6)
        for path in imagenet_pictures
    ]
    accuracies = perturbation.summarise(rows, methods)
    positive, negative = (
        {name: perturbation.area(accuracies[name][way]) for name in methods}
        for way in perturbation.DIRECTIONS
    )
    assert positive["relevance"] < positive["rollout"] < positive["random"]
    assert negative["relevance"] > negative["random"]


@pytest.mark.slow
def test_two_processes_share_the_pictures_and_agree(capsys, folder, model, tmp_path):
    alone, out = tmp_path / "alone", tmp_path / "out"
    faithfulness(capsys, folder, model, alone)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
               "-m", "vit_demo", "faithfulness", "--images", folder, "--model", model, "--out", out,
               "--methods", METHODS, "--device", "cpu"]  # fmt: skip
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("5 pictures") == 1
    shares = [(out / f"rows-{rank}.jsonl").read_text().splitlines() for rank in (0, 1)]
    assert [len(share) for share in shares] == [3, 2]
    assert {json.loads(line)["picture"] for line in shares[1]} == {"1.png", "3.png"}
    for name in ("results.csv", "summary.csv"):
        assert (out / name).read_bytes() == (alone / name).read_bytes()
