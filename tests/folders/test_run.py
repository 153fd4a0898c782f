"""A folder, explained: as one picture at a time; with bad files; killed and gone on with; shared out."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.folders import LABELS, contents, make_pictures, table
from support.memory import resident
from support.models import SHAPES, small_classifier
from support.paths import ROOT
from support.patience import wait_until

from vit_demo.checkpoints import save_checkpoint
from vit_demo.files import locked
from vit_demo.folders import MAPS, explain_folder
from vit_demo.folders import run as folder_run

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def pictures(tmp_path) -> Path:
    return make_pictures(tmp_path / "pictures")


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))


# The same as one picture at a time


@pytest.mark.parametrize("fit", ["crop", "native"])
@pytest.mark.parametrize("shape", SHAPES)
def test_answers_and_maps_are_those_of_explain(pictures, tmp_path, shape, fit):
    classifier = small_classifier(**SHAPES[shape])
    out = tmp_path / "out"
    summary = explain_folder(classifier, pictures, out, fit=fit, maps=True, batch_size=4)
    rows = table(out)
    assert [row["picture"] for row in rows] == names(pictures) and summary.pictures == 9
    for row in rows:
        explanation = classifier.explain(pictures / row["picture"], fit)
        expected = explanation.arrays()
        found = np.load(out / row["maps"])
        assert set(found) == set(expected)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, atol=1e-5, rtol=1e-5)
        assert float(row["prefix"]) == pytest.approx(explanation.prefix_mass, abs=1e-4)
        top = explanation.top(5) if classifier.labels else []
        for place, prediction in enumerate(top, start=1):
            assert row[f"label_{place}"] == prediction.label
            probability = float(row[f"probability_{place}"])
            assert probability == pytest.approx(prediction.probability, abs=2e-6)
        if not top:
            assert row["label_1"] == row["truth"] == ""


@pytest.mark.parametrize("name", MAPS)
def test_the_map_asked_for_is_written_and_shown(pictures, tmp_path, name):
    classifier = small_classifier(distilled=True)
    out = tmp_path / "out"
    label = None if name == "rollout" else "label 2"
    explain_folder(classifier, pictures, out, map=name, label=label, maps=True)
    (batch, *_) = (json.loads(line) for line in (out / "run" / "batches.jsonl").open())
    for number, record in enumerate(batch["pictures"]):
        explanation = classifier.explain(pictures / record["picture"])
        method = getattr(explanation, name)
        expected = (method() if name == "rollout" else method(2)).numpy()
        found = np.load(out / f"maps/000/{number:06}.npz")[name]
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-4)
        low, high = record["scale"]
        if name == "contribution":
            assert low == -high
        shown = np.frombuffer(base64.b64decode(record["heat"]), np.uint8)
        shown = low + shown.reshape(expected.shape) / 255 * (high - low)
        np.testing.assert_allclose(shown, expected, atol=(high - low) * 0.003)


def test_a_class_map_without_a_label_is_that_of_each_answer(pictures, tmp_path):
    classifier, out = small_classifier(), tmp_path / "out"
    explain_folder(classifier, pictures, out, map="contribution", maps=True)
    for row in table(out):
        expected = classifier.explain(pictures / row["picture"]).contribution()
        found = np.load(out / row["maps"])["contribution"]
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-4)


def test_real_weights_give_what_explain_gives(deit_tiny, imagenet_pictures, tmp_path):
    explain_folder(deit_tiny, imagenet_pictures[:6], tmp_path, maps=True, batch_size=4)
    for path, row in zip(imagenet_pictures, table(tmp_path), strict=False):
        explanation = deit_tiny.explain(path)
        (first,) = explanation.top(1)
        assert row["label_1"] == first.label
        assert float(row["probability_1"]) == pytest.approx(first.probability, abs=1e-5)
        rollout = np.load(tmp_path / row["maps"])["rollout"]
        np.testing.assert_allclose(rollout, explanation.rollout(), atol=1e-6)


def test_right_and_wrong_are_counted_where_folders_name_labels(pictures, tmp_path):
    classifier, out = small_classifier(), tmp_path / "out"
    (pictures / "elsewhere").mkdir()
    Image.new("RGB", (40, 40)).save(pictures / "elsewhere" / "x.png")
    summary = explain_folder(classifier, pictures, out)
    right = 0
    for row in table(out):
        folder = row["picture"].split("/")[0]
        (answer,) = classifier.classify(pictures / row["picture"], 1)
        if folder not in LABELS:
            assert row["truth"] == row["right"] == ""
            continue
        assert row["truth"] == folder
        assert row["right"] == str(int(answer.label == folder))
        right += answer.label == folder
    assert (summary.pictures, summary.judged, summary.right) == (10, 9, right)
    assert summary.right_in_5 == 9  # of five labels


# Bad files


def test_a_bad_file_is_a_line_and_the_others_go_on(pictures, tmp_path):
    (pictures / "label 1" / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\nno")
    (pictures / "empty.jpg").write_bytes(b"")
    os.mkfifo(pictures / "pipe.png")
    out = tmp_path / "out"
    summary = explain_folder(small_classifier(), pictures, out, batch_size=4)
    assert set(summary.errors) == {"empty.jpg", "label 1/bad.png", "pipe.png"}
    rows = {row["picture"]: row for row in table(out)}
    assert len(rows) == 12 and "damaged" in rows["label 1/bad.png"]["error"]
    assert "0 bytes" in rows["empty.jpg"]["error"] and rows["empty.jpg"]["label_1"] == ""
    good = small_classifier().classify(pictures / "label 1" / "1.png", 1)[0]
    assert rows["label 1/1.png"]["label_1"] == good.label
    assert "empty.jpg" in (out / "report.html").read_text(encoding="utf-8")


def test_a_bad_file_that_was_mended_is_read_when_the_run_goes_on(pictures, tmp_path):
    path, out = pictures / "bad.png", tmp_path / "out"
    path.write_bytes(b"no")
    assert explain_folder(small_classifier(), pictures, out, batch_size=4).errors
    Image.new("RGB", (40, 40), "red").save(path)
    assert explain_folder(small_classifier(), pictures, out, resume=True).errors == {}
    assert contents(out) == contents(fresh(pictures, tmp_path / "again"))


def test_an_answer_that_is_no_number_is_an_error_of_that_picture(pictures, tmp_path):
    classifier = overflowing()
    Image.new("RGB", (40, 40), (128, 128, 128)).save(pictures / "grey.png")
    summary = explain_folder(classifier, pictures, tmp_path / "out")
    assert summary.pictures == 1 and len(summary.errors) == 9
    assert all("NaN" in error for error in summary.errors.values())
    assert table(tmp_path / "out")[0]["error"] == ""  # grey: the pixels are zero


def overflowing():
    """A model whose finite weights overflow, except for a picture of the mean colour."""
    classifier = small_classifier()
    with torch.no_grad():
        classifier.model.patch_embed.proj.weight.fill_(3e38)
    classifier.preprocess = replace(classifier.preprocess, mean=(128 / 255,) * 3)
    return classifier


# Stopped, and gone on with


def fresh(pictures: Path, out: Path, **options) -> Path:
    explain_folder(small_classifier(), pictures, out, batch_size=4, **options)
    return out


def test_a_second_run_needs_resume_and_the_same_settings(pictures, tmp_path):
    out = fresh(pictures, tmp_path / "out")
    before = contents(out)
    with pytest.raises(ValueError, match="--resume"):
        fresh(pictures, out)
    with pytest.raises(ValueError, match="another fit"):
        fresh(pictures, out, resume=True, fit="pad")
    with pytest.raises(ValueError, match="another batch size"):
        explain_folder(small_classifier(), pictures, out, resume=True, batch_size=3)
    with pytest.raises(ValueError, match="another weights"):
        explain_folder(small_classifier(seed=1), pictures, out, resume=True)
    fresh(pictures, out, resume=True)
    assert contents(out) == before
    (out / "run" / "settings.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        fresh(pictures, out, resume=True)


def test_going_on_does_what_is_missing_and_nothing_else(pictures, tmp_path, monkeypatch):
    out = fresh(pictures, tmp_path / "out", maps=True)
    before = contents(out)
    done = out / "run" / "batches.jsonl"
    lines = done.read_text().splitlines(keepends=True)
    done.write_text(lines[0] + lines[2][:50])  # a batch lost, and a line cut short
    (out / "report" / "000" / "000002.png").write_bytes(b"half")  # the first batch is not whole
    (out / "report.html").unlink()
    asked = []
    see = folder_run.see
    monkeypatch.setattr(folder_run, "see", lambda q, path: asked.append(path) or see(q, path))
    fresh(pictures, out, resume=True, maps=True)
    assert contents(out) == before and len(asked) == 9
    (out / "maps" / "000" / "000005.npz").unlink()
    asked.clear()
    fresh(pictures, out, resume=True, maps=True)
    assert contents(out) == before and len(asked) == 4  # its batch


def test_new_and_changed_pictures_are_seen_when_the_run_goes_on(pictures, tmp_path):
    out = fresh(pictures, tmp_path / "out")
    Image.new("RGB", (40, 40), "green").save(pictures / "label 0" / "00.png")
    Image.new("RGB", (40, 40), "blue").save(pictures / "label 2" / "5.png")
    fresh(pictures, out, resume=True)
    assert contents(out) == contents(fresh(pictures, tmp_path / "again"))


SLOW = """
import sys, time
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, "tests")
from support.models import small_classifier
from vit_demo.folders import explain_folder, run
import torch
torch.set_num_threads(1)
see = run.see
def slowly(question, path):
    time.sleep(0.05)
    return see(question, path)
run.see = slowly
explain_folder(small_classifier(), sys.argv[1], sys.argv[2], batch_size=4, maps=True)
"""


def test_a_run_that_is_killed_goes_on_and_ends_with_the_same_files(tmp_path):
    pictures, out = make_pictures(tmp_path / "pictures", 40), tmp_path / "out"
    command = [sys.executable, "-c", SLOW, str(pictures), str(out)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    lines = out / "run" / "batches-0.jsonl"
    try:
        wait_until(lambda: lines.exists() and lines.read_bytes().count(b"\n") >= 3, "a batch")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (out / "report.html").exists()
    done = lines.read_bytes().count(b"\n")
    assert 3 <= done < 10
    fresh(pictures, out, resume=True, maps=True)
    assert contents(out) == contents(fresh(pictures, tmp_path / "whole", maps=True))


def test_two_runs_in_one_folder(pictures, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with locked(out), pytest.raises(ValueError, match="Another run"):
        fresh(pictures, out)
    fresh(pictures, out)


def test_an_error_in_one_thread_stops_all_and_is_told(pictures, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_run, "write", full)
    with pytest.raises(OSError, match="No space"):
        fresh(pictures, tmp_path / "out", workers=2)
    assert not [t for t in threading.enumerate() if t.name.startswith("ThreadPool")]


# Shared out


def test_two_processes_give_the_files_of_one(model, tmp_path):
    pictures = make_pictures(tmp_path / "pictures", 21)
    (pictures / "bad.png").write_bytes(b"no")
    given = ["-m", "vit_demo", "explain", str(pictures), "--model", model, "--device", "cpu"]
    given += ["--maps", "--batch-size", "4"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    alone = [sys.executable, *given, "--out", tmp_path / "one"]
    options = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(alone, check=False, **options)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--nproc-per-node", "2", *given, "--out", tmp_path / "two"]
    shared = subprocess.run(torchrun, check=False, **options)
    told = shared.stdout.replace(str(tmp_path / "two"), str(tmp_path / "one"))
    assert told == done.stdout, shared.stderr
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


# Memory and threads


def test_memory_does_not_grow_with_the_pictures(tmp_path):
    """Ten times as many pictures, no more memory: what is kept of one would show."""
    pictures = make_pictures(tmp_path / "pictures", 30)
    classifier = small_classifier(image_size=96, depth=6)  # 600 kB of attention a picture
    explain_folder(classifier, pictures, tmp_path / "warm")
    many = [pictures] + [make_pictures(tmp_path / f"more{i}", 30) for i in range(9)]
    before = resident()
    explain_folder(classifier, many, tmp_path / "out")
    assert resident() - before < 40_000_000


def test_the_number_of_torchs_threads_is_as_it_was(pictures, tmp_path):
    torch.set_num_threads(2)
    fresh(pictures, tmp_path / "out")
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)


# Arguments


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"workers": -1}, "workers is -1"),
        ({"map": "saliency"}, "map is 'saliency'"),
        ({"fit": "squeeze"}, "fit is 'squeeze'"),
        ({"label": "label 1"}, "same for every label"),
        ({"label": "lable 1", "map": "relevance"}, "closest"),
        ({"colours": "jet"}, "inferno"),
    ],
)
def test_wrong_arguments_are_sentences(pictures, tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        explain_folder(small_classifier(), pictures, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_class_map_needs_labels(pictures, tmp_path):
    with pytest.raises(ValueError, match="no label head"):
        explain_folder(small_classifier(num_classes=0), pictures, tmp_path / "o", map="relevance")


def test_it_is_there_under_its_name(pictures, tmp_path):
    import vit_demo

    classifier = small_classifier()
    path = tmp_path / "small.safetensors"
    save_checkpoint(path, classifier.model, classifier.labels, classifier.preprocess)
    loaded = vit_demo.load(str(path), device="cpu")
    assert vit_demo.explain_folder(loaded, str(pictures), str(tmp_path / "out")).pictures == 9
