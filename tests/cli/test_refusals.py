"""What cannot work is refused with one sentence and exit code 2, whatever the command."""

import os
import resource
import shutil
import subprocess
import sys
import threading

import pytest
import torch
from support.commands import run
from support.models import noise, small_classifier
from support.paths import ROOT

from vit_demo.checkpoints import save_checkpoint
from vit_demo.files import locked


@pytest.fixture
def folder(tmp_path):
    """Two classes of a few pictures each, once to learn from and once to test with."""
    for part in ("train", "val"):
        for label in ("one", "two"):
            place = tmp_path / "set" / part / label
            place.mkdir(parents=True)
            for i in range(4):
                noise().resize((20, 20)).save(place / f"{i}.png")
    return tmp_path / "set"


@pytest.fixture
def commands(model, folder):
    """Each command that writes files, up to its --out."""
    picture = folder / "val" / "one" / "0.png"
    only = ["--methods", "rollout"]
    small = ["--config", "notes", "--image-size", "20", "--patch-size", "10", "--epochs", "1"]
    return {
        "explain": ["explain", picture, "--model", model],
        "explain a folder": ["explain", folder / "val", "--model", model],
        "trust": ["trust", picture, "--model", model, *only],
        "compare": ["compare", picture, "--model", model, "--with", model],
        "faithfulness": ["faithfulness", "--images", picture.parent, "--model", model, *only],
        "train": ["train", folder, *small, "--batch-size", "8", "--device", "cpu"],
    }


NAMES = ("explain", "explain a folder", "trust", "compare", "faithfulness", "train")


def refused(capsys, *words) -> str:
    code, _, said = run(capsys, *words)
    assert code == 2, said
    assert said.count("\n") == 1 and "unexpected" not in said and "Errno" not in said, said
    return said


@pytest.mark.parametrize("name", NAMES)
def test_out_that_is_a_file(capsys, commands, name, tmp_path):
    out = tmp_path / "file"
    out.write_text("something of value")
    assert "file" in refused(capsys, *commands[name], "--out", out)
    assert out.read_text() == "something of value"


@pytest.mark.parametrize("name", NAMES)
def test_out_that_is_too_long(capsys, commands, name, tmp_path):
    assert "too long" in refused(capsys, *commands[name], "--out", tmp_path / ("x" * 300))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_out_without_room(commands, name, tmp_path):
    """A process that may write no byte into a file meets what a full disk is like."""
    done = subprocess.run(
        [sys.executable, "-m", "vit_demo", *map(str, commands[name]), "--out", tmp_path / "out"],
        cwd=ROOT, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "disk is full; make room" in last and "Traceback" not in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_out_that_is_read_only(commands, name, tmp_path):
    """A folder of somebody else's, and one below it that is not there yet."""
    mine = tmp_path / "read-only"
    mine.mkdir()
    mine.chmod(0o555)
    # Root may write everywhere; without these capabilities root is as bound as everybody else.
    bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    command = [*(bound if os.geteuid() == 0 else []), sys.executable, "-m", "vit_demo"]
    for out in (mine, mine / "new"):
        done = subprocess.run(
            [*command, *map(str, commands[name]), "--out", out],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        last = done.stderr.strip().splitlines()[-1]
        assert "may not be written to; choose a folder that you may change." in last, done.stderr
        assert "Traceback" not in done.stderr
    assert list(mine.iterdir()) == []


@pytest.mark.parametrize("name", ["explain a folder", "faithfulness", "train"])
def test_out_where_another_run_is_at_work(capsys, commands, name, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with locked(out):
        assert "another" in refused(capsys, *commands[name], "--out", out)


@pytest.mark.parametrize("name", ["explain", "train"])
def test_a_device_on_which_nothing_is_computed(capsys, commands, name, tmp_path):
    words = [word for word in commands[name] if word not in ("--device", "cpu")]
    said = refused(capsys, *words, "--out", tmp_path / "out", "--device", "meta")
    assert "cpu" in said and "meta" in said


@pytest.mark.parametrize(
    "words",
    [
        ["train", "{folder}", "--out", "{out}", "--batch-size", "0"],
        ["evaluate", "--model", "{model}", "--data", "{folder}", "--batch-size", "0"],
        ["faithfulness", "--images", "{folder}/val/one", "--model", "{model}", "--out", "{out}", "--batch-size", "0"],
        ["explain", "{folder}/val", "--model", "{model}", "--out", "{out}", "--batch-size", "0"],
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_batches_of_nothing(capsys, words, folder, model, tmp_path):
    given = {"folder": folder, "model": model, "out": tmp_path / "out"}
    assert "batch" in refused(capsys, *(word.format(**given) for word in words))


@pytest.mark.parametrize("what", ["pipe", "device", "folder"])
def test_labels_that_are_no_file(capsys, commands, what, tmp_path):
    """Nobody writes into the pipe, and the device never ends: to read them would take for ever."""
    os.mkfifo(tmp_path / "pipe")
    labels = {"pipe": tmp_path / "pipe", "device": "/dev/zero", "folder": tmp_path}[what]
    found = []

    def ask() -> None:
        words = [*commands["explain"], "--labels", labels, "--out", tmp_path / "out"]
        found.append(refused(capsys, *words))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(60)
    assert found and "file" in found[0]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_control_characters_do_not_reach_the_terminal(capsys, model, tmp_path, options):
    """Labels and names of files come from anywhere."""
    title = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\b"
    labels = tmp_path / "labels.txt"
    labels.write_text("".join(f"{title}label {i}\n" for i in range(5)), encoding="utf-8")
    good, bad = tmp_path / f"{title}good.png", tmp_path / f"{title}bad.png"
    noise().save(good)
    bad.write_text("no picture")
    code, said, warned = run(
        capsys, "classify", good, bad, "--model", model, "--labels", labels, *options
    )
    assert code == 2 and "label 0" in said and "good.png" in said and "bad.png" in warned
    for text in (said, warned):
        assert all(c == "\n" or c.isprintable() for c in text), text
    code, said, warned = run(
        capsys, "explain", bad, "--model", model, "--labels", labels, "--out", tmp_path / "out"
    )
    assert code == 2 and "bad.png" in warned
    assert all(c == "\n" or c.isprintable() for c in said + warned)


@pytest.mark.parametrize("command", ["classify", "explain"])
def test_an_answer_that_is_no_number(capsys, command, tmp_path):
    """Finite weights, as a training that diverged leaves them; one picture."""
    classifier = small_classifier()
    with torch.no_grad():
        classifier.model.head.weight.fill_(3e38)
    model, picture = tmp_path / "diverged.safetensors", tmp_path / "0.png"
    save_checkpoint(model, classifier.model, classifier.labels, classifier.preprocess)
    noise().save(picture)
    with pytest.raises(
        ValueError, match=r"its answer is no number \(NaN\).*Use another checkpoint\."
    ):
        getattr(classifier, command)(picture)
    out = ["--out", tmp_path / "out"] if command == "explain" else []
    said = refused(capsys, command, picture, "--model", model, *out)
    assert "its answer is no number (NaN)" in said and "Use another checkpoint." in said
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_names_that_are_not_utf_8(capsys, model, tmp_path):
    """On Linux a name is any bytes; the explanation of such a picture has a name that can be printed."""
    name = os.fsdecode(b"caf\xe9.png")
    noise().save(tmp_path / "a.png")
    shutil.move(tmp_path / "a.png", tmp_path / name)
    code, out, said = run(
        capsys, "explain", tmp_path / name, "--model", model, "--out", tmp_path / "out", "--json"
    )
    assert code == 0, said
    assert out.encode("utf-8")
    code, out, said = run(capsys, "classify", tmp_path / name, "--model", model)
    assert code == 0, said
    refused(capsys, "classify", tmp_path / (name + "x"), "--model", model)
    code, _, said = run(capsys, "explain", tmp_path, "--model", model, "--out", tmp_path / "all")
    assert code == 0, said


def test_damaged_settings_of_a_run_that_shall_go_on(capsys, commands, tmp_path):
    out = tmp_path / "out"
    for name in ("explain a folder", "faithfulness"):
        shutil.rmtree(out, ignore_errors=True)
        code, _, said = run(capsys, *commands[name], "--out", out)
        assert code == 0, said
        for settings in out.rglob("settings.json"):
            settings.write_text('{"model": ')
        assert "settings" in refused(capsys, *commands[name], "--out", out, "--resume")
