"""The weights at moments of a run: which moments, what is kept of them, and that nothing disturbs them."""

import json
import os
import signal
import subprocess
import sys
from itertools import pairwise

import pytest
import torch
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

from vit_demo.training import loop
from vit_demo.training.data import Dataset
from vit_demo.training.snapshots import moments, spread_out

pytestmark = pytest.mark.usefixtures("one_thread")


def files_of(out) -> dict[str, object]:
    return {path.name: content(path) for path in (out / "snapshots").iterdir()}


def content(path) -> object:
    """What a file says, byte for byte; the order inside a safetensors header is left to chance."""
    data = path.read_bytes()
    if path.suffix != ".safetensors":
        return data
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def table_of(out) -> dict:
    return json.loads((out / "snapshots" / "snapshots.json").read_text())


# Which moments


@pytest.mark.parametrize("steps", [1, 2, 11, 60, 4680, 10**6])
@pytest.mark.parametrize("count", [2, 3, 12, 16, 61])
def test_moments_begin_before_the_first_step_and_end_after_the_last(count, steps):
    if count > steps + 1:
        with pytest.raises(ValueError, match=f"only {steps} steps; use up to {steps + 1}"):
            moments(count, steps)
        return
    chosen = moments(count, steps)
    assert len(chosen) == count and chosen[0] == 0 and chosen[-1] == steps
    assert all(a < b for a, b in pairwise(chosen))


def test_moments_are_close_together_at_the_start():
    gaps = [b - a for a, b in pairwise(moments(16, 4680))]
    assert gaps[0] <= 10 and gaps[-1] > 1000
    assert all(1.3 < b / a < 1.6 for a, b in pairwise(gaps))


def test_no_moments_unless_asked_for(trained):
    assert moments(0, 100) == []
    assert not (trained / "snapshots").exists()


def test_pictures_spread_over_a_sorted_set():
    labels = torch.arange(10).repeat_interleave(500)
    images = torch.arange(5000).to(torch.uint8)[:, None, None, None]
    dataset = Dataset("sorted", labels, list("abcdefghij"), (1, 1), 1, images)
    sample = spread_out(dataset, 1000)
    assert sample.labels.bincount().tolist() == [100] * 10
    assert torch.equal(sample.batch(torch.arange(1000)).flatten(), images.flatten()[::5])
    assert spread_out(dataset, 5000) is dataset


# What is kept


@pytest.fixture(scope="module")
def kept(colours, tmp_path_factory):
    """A run of 12 steps in 3 epochs, kept at 6 moments."""
    out = tmp_path_factory.mktemp("kept") / "run"
    flags = [*SHAPE, *FAST, *CALM, "--epochs", 3, "--snapshots", 6]
    loop.train(arguments(colours, "--out", out, *flags))
    return out


def test_each_moment_is_a_checkpoint_in_half_precision(kept, colours, tmp_path):
    table = table_of(kept)
    names = [moment["file"] for moment in table["moments"]]
    assert {*names, "snapshots.json"} == set(files_of(kept)) and len(names) == 6
    assert [moment["step"] for moment in table["moments"]] == moments(6, 12)
    first = fresh_run(colours, tmp_path, *CALM, "--epochs", 3).model.state_dict()
    for name, wanted in ((names[0], first), (names[-1], weights(kept / "last.safetensors"))):
        for key, value in weights(kept / "snapshots" / name).items():
            assert torch.equal(value, wanted[key].half().float()), (name, key)


def test_the_table_says_what_each_moment_could_do(kept, colours):
    table = table_of(kept)
    assert table["labels"] == ["blue", "green", "red"] and table["test_pictures"] == 33
    assert (table["steps"], table["epochs"], table["batch_size"]) == (12, 3, 16)
    for moment in table["moments"]:
        assert moment["epoch"] == moment["step"] / 4
        result = evaluation(kept / "snapshots" / moment["file"], colours)
        assert moment["accuracy"] == pytest.approx(result["top1"], abs=1 / 33)  # half precision
        assert moment["test_loss"] == pytest.approx(result["loss"], rel=1e-2)
        rows = torch.tensor(moment["confusion"])
        assert rows.sum(1).tolist() == [11, 11, 11]
        assert rows.diag().sum() / 33 == pytest.approx(moment["accuracy"])


def test_training_losses_are_means_since_the_moment_before(kept, colours, tmp_path, monkeypatch):
    """The same run again, with the loss of each step written down."""
    losses, plain = [], torch.nn.functional.cross_entropy

    def remember(*given, **options):
        loss = plain(*given, **options)
        if loss.requires_grad:
            losses.append(loss.item())
        return loss

    monkeypatch.setattr(loop.F, "cross_entropy", remember)
    loop.train(arguments(colours, "--out", tmp_path, *SHAPE, *FAST, *CALM, "--epochs", 3))
    assert len(losses) == 12
    table = table_of(kept)["moments"]
    assert table[0]["train_loss"] is None
    for before, moment in pairwise(table):
        steps = losses[before["step"] : moment["step"]]
        assert moment["train_loss"] == pytest.approx(sum(steps) / len(steps), rel=1e-5)


def test_snapshots_do_not_change_the_run(kept, colours, tmp_path):
    loop.train(arguments(colours, "--out", tmp_path, *SHAPE, *FAST, *CALM, "--epochs", 3))
    without = weights(tmp_path / "last.safetensors")
    for key, value in weights(kept / "last.safetensors").items():
        assert torch.equal(value, without[key])


def test_more_moments_than_steps(colours, tmp_path):
    with pytest.raises(ValueError, match="only 4 steps; use up to 5"):
        fresh_run(colours, tmp_path, "--epochs", 1, "--snapshots", 6)


# Killed, and many processes


def test_a_killed_run_ends_with_the_same_files(colours, tmp_path):
    flags = [colours, *SHAPE, *FAST, *EVERYTHING, "--epochs", "14", "--snapshots", "20"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-m", "vit_demo", "train", *flags, "--out", killed, "--resume"]
    process = subprocess.Popen(
        [str(word) for word in command], env=environment(), cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    wait_until((killed / "last.pt").exists, "the first epoch")
    assert process.poll() is None, "the run ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    state = torch.load(killed / "last.pt", weights_only=True)
    assert len(state["history"]) < 14 and 1 < len(state["snapshots"]) < 20
    (killed / "snapshots" / "tmpabc.part.safetensors").write_bytes(b"half a file")

    loop.train(arguments(*flags, "--out", killed, "--resume"))
    loop.train(arguments(*flags, "--out", whole))
    assert files_of(killed) == files_of(whole)
    with pytest.raises(ValueError, match="began with --snapshots 20"):
        loop.train(arguments(*flags[:-1], "12", "--out", killed, "--resume"))


def test_a_new_run_removes_moments_of_one_that_never_finished_an_epoch(colours, tmp_path):
    left = tmp_path / "snapshots" / "step-000007.safetensors"
    left.parent.mkdir()
    left.write_bytes(b"a moment of another run")
    flags = [*SHAPE, *FAST, *CALM, "--epochs", 1, "--snapshots", 2]
    loop.train(arguments(colours, "--out", tmp_path, *flags))
    assert {m["file"] for m in table_of(tmp_path)["moments"]} | {"snapshots.json"} == set(
        files_of(tmp_path)
    )
    assert not left.exists()


def test_two_processes_keep_what_one_keeps(colours, tmp_path):
    flags = [*SHAPE, *FAST, *EVERYTHING, "--epochs", "3", "--batch-size", "32", "--snapshots", "4"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node", "2", "-m", "vit_demo", "train", colours, *flags]
    done = subprocess.run(
        [str(word) for word in [*command, "--out", tmp_path / "two"]],
        env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loop.train(arguments(colours, *flags, "--out", tmp_path / "one"))
    one, two = table_of(tmp_path / "one"), table_of(tmp_path / "two")
    assert set(files_of(tmp_path / "one")) == set(files_of(tmp_path / "two"))
    for moment, other in zip(one["moments"], two["moments"], strict=True):
        assert moment["step"] == other["step"]
        for name in ("train_loss", "test_loss"):
            assert moment[name] == pytest.approx(other[name], abs=1e-4)
        assert moment["confusion"] == other["confusion"]
        name = f"snapshots/{moment['file']}"
        theirs = weights(tmp_path / "two" / name)
        for key, value in weights(tmp_path / "one" / name).items():
            torch.testing.assert_close(theirs[key], value, atol=1e-3, rtol=1e-3)
