"""Training on a set so small that a run takes a second: colours of noise, easy to tell apart."""

import csv
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from support.patience import wait_until
from support.runs import (
    CALM,
    EVERYTHING,
    FAST,
    SHAPE,
    arguments,
    environment,
    evaluation,
    fresh_run,
    weights,
)

import vit_demo
from vit_demo.distributed import ProcessGroup
from vit_demo.training import loop
from vit_demo.training.run import SEAL, read_state

pytestmark = pytest.mark.usefixtures("one_thread")


# A whole run


def test_it_learns_and_leaves_its_files(trained):
    rows = list(csv.DictReader((trained / "metrics.csv").open()))
    assert [int(row["epoch"]) for row in rows] == list(range(1, 13))
    assert float(rows[-1]["test_accuracy"]) > 0.9
    assert float(rows[-1]["train_loss"]) < float(rows[0]["train_loss"])
    assert {path.name for path in trained.iterdir()} == {
        "metrics.csv", "curves.png", "best.safetensors", "last.safetensors", "last.pt", ".lock"
    }  # fmt: skip
    assert Image.open(trained / "curves.png").size[0] > 800


def test_the_checkpoint_classifies_as_it_is(trained, colours):
    classifier = vit_demo.load(str(trained / "best.safetensors"), device="cpu")
    for name in ("blue", "green", "red"):
        answers = [
            classifier.explain(colours / "test" / name / f"{i:02}.png").top(1)[0].label
            for i in range(5)
        ]
        assert answers.count(name) >= 4


def test_the_best_checkpoint_is_the_best_of_the_tests(colours, tmp_path):
    out = tmp_path / "run"
    flags = [*SHAPE, *FAST, *CALM, "--epochs", 5, "--eval-every", 2]
    path = loop.train(arguments(colours, "--out", out, *flags))
    rows = list(csv.DictReader((out / "metrics.csv").open()))
    tested = {int(row["epoch"]): row["test_accuracy"] for row in rows if row["test_accuracy"]}
    assert list(tested) == [2, 4, 5]  # each second, and always the last
    result = evaluation(path, colours)
    assert result["top1"] == pytest.approx(max(float(share) for share in tested.values()))


def test_two_seeds_differ_and_one_repeats(colours, tmp_path):
    results = []
    for i, seed in enumerate((1, 1, 2)):
        flags = [*SHAPE, *FAST, *EVERYTHING, "--epochs", 2, "--seed", seed]
        loop.train(arguments(colours, "--out", tmp_path / str(i), *flags))
        results.append(weights(tmp_path / str(i) / "last.safetensors")["head.weight"])
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])


# Killed, and going on


def test_a_killed_run_goes_on_as_if_nothing_had_happened(colours, tmp_path):
    flags = [colours, *SHAPE, *FAST, *EVERYTHING, "--optimizer", "muon", "--epochs", "14"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-m", "vit_demo", "train", *flags, "--out", killed, "--resume"]
    process = subprocess.Popen(
        [str(word) for word in command], env=environment(), cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    wait_until((killed / "last.pt").exists, "the first epoch")
    assert process.poll() is None, "the run ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = len(torch.load(killed / "last.pt", weights_only=True)["history"])
    assert 1 <= done < 14, "the run was not killed in its middle"
    (killed / "tmpabc.part.pt").write_bytes(b"half a file")  # what such a death can leave

    loop.train(arguments(*flags, "--out", killed, "--resume"))
    loop.train(arguments(*flags, "--out", whole))
    a, b = (torch.load(out / "last.pt", weights_only=True) for out in (killed, whole))
    for name in ("model", "average"):
        for key, value in b[name].items():
            assert torch.equal(a[name][key], value), (name, key)
    for row, other in zip(a["history"], b["history"], strict=True):
        assert all(row[k] == other[k] for k in ("lr", "train_loss", "test_loss", "test_accuracy"))
    assert not list(killed.glob("*.part*"))


def test_resume_refuses_other_settings_and_damaged_files(trained, colours, tmp_path):
    flags = [colours, "--out", trained, *SHAPE, *FAST, *CALM]
    with pytest.raises(ValueError, match="holds a run; go on with --resume"):
        loop.train(arguments(*flags, "--epochs", 12))
    with pytest.raises(ValueError, match="began with --epochs 12; resume it with the same"):
        loop.train(arguments(*flags, "--epochs", 13, "--resume"))
    (tmp_path / "last.pt").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="last.pt is damaged; remove it"):
        loop.train(arguments(colours, "--out", tmp_path, *SHAPE, *FAST, "--resume"))


def test_any_flipped_bit_of_a_saved_state_is_found(trained, tmp_path):
    data, damaged = (trained / "last.pt").read_bytes(), tmp_path / "last.pt"
    for share in range(1, 20):
        flipped = bytearray(data)
        flipped[len(data) * share // 20] ^= 1 << share % 8
        damaged.write_bytes(flipped)
        with pytest.raises(ValueError, match="last.pt is damaged; remove it"):
            read_state(damaged)
    damaged.write_bytes(data.rpartition(SEAL)[0])  # of an earlier version, without a checksum
    assert read_state(damaged)["history"] == read_state(trained / "last.pt")["history"]


def test_resuming_a_finished_run_changes_nothing(trained, colours):
    before = (trained / "last.pt").read_bytes()
    flags = [*SHAPE, *FAST, *CALM, "--epochs", 12, "--resume"]
    path = loop.train(arguments(colours, "--out", trained, *flags))
    assert path == trained / "best.safetensors" and (trained / "last.pt").read_bytes() == before


# Many processes


def test_two_processes_compute_what_one_computes(colours, tmp_path):
    flags = [*SHAPE, *FAST, *EVERYTHING, "--epochs", "3", "--batch-size", "32"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node", "2", "-m", "vit_demo", "train", colours, *flags]
    command = [str(word) for word in [*command, "--out", tmp_path / "two"]]
    how = {"env": environment(), "cwd": tmp_path, "capture_output": True, "text": True}
    try:
        done = subprocess.run(command, timeout=90, check=False, **how)
    except subprocess.TimeoutExpired:  # seen once in many: the processes had not found each other
        shutil.rmtree(tmp_path / "two", ignore_errors=True)
        done = subprocess.run(command, timeout=200, check=False, **how)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 3/3") == 1  # one of them speaks
    loop.train(arguments(colours, *flags, "--out", tmp_path / "one"))
    one, two = (
        torch.load(tmp_path / name / "last.pt", weights_only=True) for name in ("one", "two")
    )
    for name in ("model", "average"):
        for key, value in one[name].items():
            torch.testing.assert_close(two[name][key], value, atol=1e-4, rtol=0)
    for row, other in zip(one["history"], two["history"], strict=True):
        for name in ("train_loss", "test_loss"):
            assert row[name] == pytest.approx(other[name], abs=1e-4)
        for name in ("train_accuracy", "test_accuracy"):  # counted over the whole set
            assert row[name] == pytest.approx(other[name], abs=1e-6)


def test_the_parts_of_a_batch_are_the_batch(colours, tmp_path):
    """Whoever gets a group of pictures augments it in the same way."""
    flags = [*EVERYTHING, "--epochs", 3, "--batch-size", 32]
    device = torch.device("cpu")
    runs = [
        fresh_run(colours, tmp_path, *flags, group=ProcessGroup(rank, world, device))
        for rank, world in ((0, 1), (0, 2), (1, 2))
    ]
    order = torch.randperm(72)
    whole, *parts = [loop.make_batch(run, order, 1, 1) for run in runs]
    for a, b, c in list(zip(whole, *parts, strict=True))[:3]:  # the fourth are a teacher's
        assert len(b) == len(c) == 16
        torch.testing.assert_close(torch.cat([b, c]), a)


def test_a_batch_that_cannot_be_shared(colours, tmp_path):
    group = ProcessGroup(0, 3, torch.device("cpu"))
    with pytest.raises(ValueError, match="multiple of 24 up to 72"):
        fresh_run(colours, tmp_path, "--batch-size", 32, group=group)


# The recipe


def test_gradients_are_clipped(colours, tmp_path):
    """With an almost closed clip a step of plain descent can hardly move the weights."""
    moved = {}
    for clip in (1e-6, 1.0):
        run = fresh_run(colours, tmp_path, "--clip", clip, "--epochs", 1)
        run.optimizers = [torch.optim.SGD(run.model.parameters())]
        before = run.model.head.weight.detach().clone()
        loop.train_epoch(run, run.model, 0)
        moved[clip] = (run.model.head.weight - before).abs().max().item()
    assert moved[1e-6] < 1e-6
    assert moved[1.0] > 1e-4


def test_patches_are_dropped_until_the_last_epochs(colours, tmp_path):
    run = fresh_run(colours, tmp_path, *EVERYTHING, "--epochs", 3)
    order = torch.arange(72)
    kept = [loop.make_batch(run, order, epoch, 0).kept_patches for epoch in range(3)]
    assert kept[0].shape == kept[1].shape == (16, 8) and kept[2] is None  # of 16 patches
    assert not torch.equal(kept[0], kept[1])
    assert all(len(set(row.tolist())) == 8 for row in kept[0])


def test_pictures_grow_until_the_last_epochs(colours, tmp_path):
    flags = ["--start-size", 8, "--drop-patches", 0.4, "--whole-epochs", 1, "--epochs", 7]
    run = fresh_run(colours, tmp_path, *CALM, *flags)
    order, seen = torch.arange(len(run.train_set)), []
    for epoch in range(7):
        images, _, kept, _ = loop.make_batch(run, order, epoch, 0)
        patches = (images.shape[2] // 4) * (images.shape[3] // 4)
        seen.append((images.shape[2], patches if kept is None else kept.shape[1]))
        assert kept is None or int(kept.max()) < patches
        assert run.model(images, kept_patches=kept).isfinite().all()
    # At most 0.6 of the 16 patches of a full picture; a small one keeps all it has.
    assert seen == [(8, 4), (8, 4), (12, 9), (12, 9), (16, 10), (16, 10), (16, 16)]


def test_a_small_picture_is_the_large_one_made_smaller(colours, tmp_path):
    run = fresh_run(colours, tmp_path, *CALM, "--start-size", 8, "--whole-epochs", 1, "--epochs", 2)
    order = torch.arange(len(run.train_set))
    small = loop.make_batch(run, order, 0, 0).images
    run.config = replace(run.config, start_size=0)
    large = loop.make_batch(run, order, 0, 0).images
    assert small.shape[2:] == (8, 8) and large.shape[2:] == (16, 16)
    by_pillow = Image.fromarray(large[0, 0].numpy()).resize((8, 8), Image.Resampling.BILINEAR)
    torch.testing.assert_close(small[0, 0], torch.tensor(np.asarray(by_pillow)))


@pytest.mark.parametrize("kind", ["mixup", "cutmix"])
def test_nothing_is_mixed_in_the_last_epochs(colours, tmp_path, kind):
    flags = [f"--{kind}", 1, "--mix-share", 1, "--whole-epochs", 1, "--epochs", 2]
    run = fresh_run(colours, tmp_path, *CALM, *flags, "--label-smoothing", 0)
    order = torch.arange(len(run.train_set)).roll(5)  # so that the first batch has two classes
    order = order.reshape(2, -1).T.flatten()
    mixed, pure = (loop.make_batch(run, order, epoch, 0).targets for epoch in (0, 1))
    assert mixed.amax(dim=1).min() < 1 and (pure.amax(dim=1) == 1).all()


def test_a_loss_that_explodes_is_reported(colours, tmp_path):
    run = fresh_run(colours, tmp_path)
    torch.nn.init.constant_(run.model.head.bias, float("nan"))
    with pytest.raises(ValueError, match="loss is nan in epoch 1; try a smaller --lr"):
        loop.train_epoch(run, run.model, 0)


def test_without_a_compiler_training_goes_on(monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", broken)
    model = torch.nn.Linear(1, 1)
    assert loop.wrap(model, True, ProcessGroup(0, 1, torch.device("cpu"))) is model
    assert "going on without (no C++ compiler)" in capsys.readouterr().err
