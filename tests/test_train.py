"""Training on a set so small that a run takes a second: colours of noise, easy to tell apart."""

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import vit_demo
from vit_demo import train as training
from vit_demo.checkpoints import load_checkpoint, save_checkpoint
from vit_demo.data import DataError
from vit_demo.image import Preprocess
from vit_demo.model import VisionTransformer, ViTConfig

ROOT = Path(__file__).parents[1]


def words(line: str) -> list[str]:
    return line.split()


SHAPE = words("--image-size 16 --patch-size 4 --embed-dim 32 --depth 2 --heads 2")
FAST = words("--batch-size 16 --warmup 1 --lr 2e-3 --ema 0.9 --device cpu")
CALM = words("--augment photos --randaugment 0 --mixup 0 --cutmix 0")
EVERYTHING = words(  # all that draws from chance
    "--augment zoom --randaugment 1 --mixup 0.8 --cutmix 1 --mix-share 0.7 "
    "--drop-patches 0.5 --whole-epochs 1"
)


@pytest.fixture(autouse=True)
def one_thread():
    """As in the processes that the tests start, so that sums are taken in the same order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root, chance = tmp_path_factory.mktemp("colours"), np.random.default_rng(0)
    for part, count in (("train", 24), ("test", 11)):
        for label, name in enumerate(("blue", "green", "red")):
            (root / part / name).mkdir(parents=True)
            for i in range(count):
                pixels = chance.integers(0, 160, (16, 16, 3), dtype=np.uint8)
                pixels[:, :, 2 - label] += 95
                Image.fromarray(pixels).save(root / part / name / f"{i:02}.png")
    return root


def arguments(*words) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    training.add_train_arguments(parser)
    return parser.parse_args([str(word) for word in words])


def evaluation(*words) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    training.add_evaluate_arguments(parser)
    return parser.parse_args([str(word) for word in words])


def fresh_run(folder, tmp_path, *words, team=None) -> training.Run:
    args = arguments(folder, "--out", tmp_path / "run", *SHAPE, *FAST, *words)
    training.settle(args)
    return training.prepare(args, team or training.Team(0, 1, torch.device("cpu")))


def environment() -> dict:
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def weights(path) -> dict:
    return load_checkpoint(str(path)).model.state_dict()


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory) -> Path:
    """A finished run."""
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("trained")
    training.train(arguments(folder, "--out", out, *SHAPE, *FAST, *CALM, "--epochs", 12))
    return out


# A whole run


def test_it_learns_and_leaves_its_files(trained):
    rows = list(csv.DictReader((trained / "metrics.csv").open()))
    assert [int(row["epoch"]) for row in rows] == list(range(1, 13))
    assert float(rows[-1]["test_accuracy"]) > 0.9
    assert float(rows[-1]["train_loss"]) < float(rows[0]["train_loss"])
    assert {path.name for path in trained.iterdir()} == {
        "metrics.csv", "curves.png", "best.safetensors", "last.safetensors", "last.pt"
    }  # fmt: skip
    assert Image.open(trained / "curves.png").size[0] > 800


def test_the_checkpoint_classifies_as_it_is(trained, folder):
    classifier = vit_demo.load(str(trained / "best.safetensors"), device="cpu")
    for name in ("blue", "green", "red"):
        answers = [
            classifier.explain(folder / "test" / name / f"{i:02}.png").top(1)[0].label
            for i in range(5)
        ]
        assert answers.count(name) >= 4


def test_the_best_checkpoint_is_the_best_of_the_tests(folder, tmp_path):
    out = tmp_path / "run"
    flags = [*SHAPE, *FAST, *CALM, "--epochs", 5, "--eval-every", 2]
    path = training.train(arguments(folder, "--out", out, *flags))
    rows = list(csv.DictReader((out / "metrics.csv").open()))
    tested = {int(row["epoch"]): row["test_accuracy"] for row in rows if row["test_accuracy"]}
    assert list(tested) == [2, 4, 5]  # each second, and always the last
    result = training.evaluate(
        evaluation(folder, "--model", path, "--json", "--out", tmp_path / "c.png")
    )
    assert result["top1"] == pytest.approx(max(float(share) for share in tested.values()))


def test_two_seeds_differ_and_one_repeats(folder, tmp_path):
    results = []
    for i, seed in enumerate((1, 1, 2)):
        flags = [*SHAPE, *FAST, *EVERYTHING, "--epochs", 2, "--seed", seed]
        training.train(arguments(folder, "--out", tmp_path / str(i), *flags))
        results.append(weights(tmp_path / str(i) / "last.safetensors")["head.weight"])
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])


# Killed, and going on


def test_a_killed_run_goes_on_as_if_nothing_had_happened(folder, tmp_path):
    flags = [folder, *SHAPE, *FAST, *EVERYTHING, "--optimizer", "muon", "--epochs", "14"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-m", "vit_demo", "train", *flags, "--out", killed, "--resume"]
    process = subprocess.Popen(
        [str(word) for word in command], env=environment(), cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    while not (killed / "last.pt").exists():
        assert process.poll() is None, "the run ended before it had written anything"
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = len(torch.load(killed / "last.pt", weights_only=True)["history"])
    assert 1 <= done < 14, "the run was not killed in its middle"
    (killed / "tmpabc.part.pt").write_bytes(b"half a file")  # what such a death can leave

    training.train(arguments(*flags, "--out", killed, "--resume"))
    training.train(arguments(*flags, "--out", whole))
    a, b = (torch.load(out / "last.pt", weights_only=True) for out in (killed, whole))
    for name in ("model", "average"):
        for key, value in b[name].items():
            assert torch.equal(a[name][key], value), (name, key)
    for row, other in zip(a["history"], b["history"], strict=True):
        assert all(row[k] == other[k] for k in ("lr", "train_loss", "test_loss", "test_accuracy"))
    assert not list(killed.glob("*.part*"))


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), training.whole_file(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]
    with training.whole_file(path) as part:
        part.write_text("new")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["new"]


def test_resume_refuses_other_settings_and_damaged_files(trained, folder, tmp_path):
    flags = [folder, "--out", trained, *SHAPE, *FAST, *CALM]
    with pytest.raises(ValueError, match="holds a run; go on with --resume"):
        training.train(arguments(*flags, "--epochs", 12))
    with pytest.raises(ValueError, match="began with --epochs 12; resume it with the same"):
        training.train(arguments(*flags, "--epochs", 13, "--resume"))
    (tmp_path / "last.pt").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="last.pt is damaged; remove it"):
        training.train(arguments(folder, "--out", tmp_path, *SHAPE, *FAST, "--resume"))


def test_resuming_a_finished_run_changes_nothing(trained, folder):
    before = (trained / "last.pt").read_bytes()
    flags = [*SHAPE, *FAST, *CALM, "--epochs", 12, "--resume"]
    path = training.train(arguments(folder, "--out", trained, *flags))
    assert path == trained / "best.safetensors" and (trained / "last.pt").read_bytes() == before


# Many processes


def test_two_processes_compute_what_one_computes(folder, tmp_path):
    flags = [*SHAPE, *FAST, *EVERYTHING, "--epochs", "3", "--batch-size", "32"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node", "2", "-m", "vit_demo", "train", folder, *flags]
    done = subprocess.run(
        [str(word) for word in [*command, "--out", tmp_path / "two"]],
        env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 3/3") == 1  # one of them speaks
    training.train(arguments(folder, *flags, "--out", tmp_path / "one"))
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


def test_the_parts_of_a_batch_are_the_batch(folder, tmp_path):
    """Whoever gets a group of pictures augments it in the same way."""
    flags = [*EVERYTHING, "--epochs", 3, "--batch-size", 32]
    device = torch.device("cpu")
    runs = [
        fresh_run(folder, tmp_path, *flags, team=training.Team(rank, world, device))
        for rank, world in ((0, 1), (0, 2), (1, 2))
    ]
    order = torch.randperm(72)
    whole, *parts = [training.make_batch(run, order, 1, 1) for run in runs]
    for a, b, c in zip(whole, *parts, strict=True):
        assert len(b) == len(c) == 16
        torch.testing.assert_close(torch.cat([b, c]), a)


def test_a_batch_that_cannot_be_shared(folder, tmp_path):
    team = training.Team(0, 3, torch.device("cpu"))
    with pytest.raises(ValueError, match="multiple of 24 up to 72"):
        fresh_run(folder, tmp_path, "--batch-size", 32, team=team)


# The recipe


def test_only_matrices_decay(folder, tmp_path):
    for optimizer in ("adamw", "muon"):
        run = fresh_run(folder, tmp_path, "--optimizer", optimizer)
        names = {id(p): name for name, p in run.model.named_parameters()}
        groups = [g for o in run.optimizers for g in o.param_groups]
        found = [names[id(p)] for g in groups for p in g["params"]]
        assert sorted(found) == sorted(names.values())  # each parameter, once
        decayed = {names[id(p)] for g in groups if g["weight_decay"] for p in g["params"]}
        assert decayed == {n for n in names.values() if n.endswith("weight") and "norm" not in n}


def test_the_learning_rate_warms_up_and_falls_to_zero():
    args = argparse.Namespace(lr=0.5, warmup=2.0, epochs=10)
    rates = [training.learning_rate(step, 10, args) for step in range(100)]
    assert rates[0] == pytest.approx(0.5 / 21)
    assert all(a < b for a, b in pairwise(rates[:21]))
    assert rates[20] == 0.5  # the highest, after two epochs
    assert rates[60] == pytest.approx(0.25)  # half of the way down
    assert all(a > b for a, b in pairwise(rates[20:])) and rates[-1] < 1e-3


def test_the_average_follows_the_weights():
    model, average = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(model.weight, 1.0)
    torch.nn.init.constant_(average.weight, 0.0)
    training.follow(average, model, 10**6, 0.75)
    assert average.weight.item() == pytest.approx(0.25)
    training.follow(average, model, 0, 0.999)  # in the first steps it hurries
    assert average.weight.item() == pytest.approx(0.25 + 0.9 * 0.75)
    training.follow(average, model, 10**6, 0.0)  # no average: the weights themselves
    assert average.weight.item() == 1.0


def test_gradients_are_clipped(folder, tmp_path):
    """With an almost closed clip a step of plain descent can hardly move the weights."""
    moved = {}
    for clip in (1e-6, 1.0):
        run = fresh_run(folder, tmp_path, "--clip", clip, "--epochs", 1)
        run.optimizers = [torch.optim.SGD(run.model.parameters())]
        before = run.model.head.weight.detach().clone()
        training.train_epoch(run, run.model, 0)
        moved[clip] = (run.model.head.weight - before).abs().max().item()
    assert moved[1e-6] < 1e-6
    assert moved[1.0] > 1e-4


def test_patches_are_dropped_until_the_last_epochs(folder, tmp_path):
    run = fresh_run(folder, tmp_path, *EVERYTHING, "--epochs", 3)
    order = torch.arange(72)
    kept = [training.make_batch(run, order, epoch, 0)[2] for epoch in range(3)]
    assert kept[0].shape == kept[1].shape == (16, 8) and kept[2] is None  # of 16 patches
    assert not torch.equal(kept[0], kept[1])
    assert all(len(set(row.tolist())) == 8 for row in kept[0])


def test_a_loss_that_explodes_is_reported(folder, tmp_path):
    run = fresh_run(folder, tmp_path)
    torch.nn.init.constant_(run.model.head.bias, float("nan"))
    with pytest.raises(ValueError, match="loss is nan in epoch 1; try a smaller --lr"):
        training.train_epoch(run, run.model, 0)


def test_orthogonal_steps_move_all_directions_alike():
    for shape in ((20, 60), (60, 20)):
        G = torch.randn(shape, generator=torch.Generator().manual_seed(0)) @ torch.diag(
            torch.linspace(0.1, 3, shape[1])
        )
        U, _, V = torch.linalg.svd(G, full_matrices=False)
        X = training.orthogonal(G)
        values = torch.linalg.svdvals(X)
        assert values.min() > 0.6 and values.max() < 1.3
        cosine = (X * (U @ V)).sum() / (X.norm() * (U @ V).norm())
        assert cosine > 0.97


def test_mimetic_first_weights():
    model = VisionTransformer(ViTConfig(16, 4, 3, 64, 2, 2, num_classes=3))
    torch.manual_seed(0)
    training.make_mimetic(model)
    q, k, v = model.blocks[1].attn.qkv.weight.chunk(3)
    undo = model.blocks[1].attn.proj.weight @ v
    assert undo.diag().mean().item() == pytest.approx(-0.4, abs=0.05)
    assert (undo - undo.diag().diag()).mean().abs() < 0.01
    like = q[:32].T @ k[:32]  # of the first head
    assert like.diag().mean() > 0.25 > 20 * (like - like.diag().diag()).mean().abs()
    near, far = model.pos_embed[0, 1] @ model.pos_embed[0, 2:4].T
    assert near > far
    assert torch.isfinite(model(torch.randn(2, 3, 16, 16))).all()


def test_the_recipe_fits_the_set_and_flags_come_first():
    args = arguments("mnist", "--out", "x")
    training.settle(args)
    notes = {"image_size": 28, "patch_size": 7, "embed_dim": 128, "depth": 3, "heads": 4}
    notes |= {"channels": 1, "epochs": 10, "optimizer": "adamw", "augment": "digits"}
    assert notes.items() <= vars(args).items()
    args = arguments("cifar10", "--out", "x", "--config", "tiny", "--heads", 6, "--mixup", 0)
    training.settle(args)
    assert (args.embed_dim, args.depth, args.heads, args.augment) == (192, 12, 6, "photos")


def test_without_a_compiler_training_goes_on(monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", broken)
    model = torch.nn.Linear(1, 1)
    assert training.wrap(model, True, training.Team(0, 1, torch.device("cpu"))) is model
    assert "going on without (no C++ compiler)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--epochs", "0"], "--epochs is 0; use 1 or more"),
        (["--lr", "0"], "--lr is 0.0; use more than 0"),
        (["--lr", "nan"], "--lr is nan"),
        (["--drop-patches", "1"], "--drop-patches is 1.0; use from 0 to below 1"),
        (["--channels", "2"], "--channels is 2; use 1"),
        (["--patch-size", "5"], "16x16 pixels cannot be cut into patches of 5x5"),
        (["--heads", "3"], "use a width that the heads divide"),
        (["--init", "x.safetensors"], "does not go with --init"),
        (["--device", "abacus"], "'abacus' cannot be used"),
    ],
)
def test_what_cannot_work_is_said_before_training(folder, tmp_path, flags, message):
    with pytest.raises(ValueError, match=message):
        training.train(arguments(folder, "--out", tmp_path / "run", *SHAPE, *flags))
    assert not (tmp_path / "run").exists()


# Fine-tuning


def test_a_trained_model_gets_a_new_head_and_more_positions():
    torch.manual_seed(0)
    old = VisionTransformer(ViTConfig(16, 4, 3, 32, 2, 2, num_classes=7, registers=2))
    new = training.with_new_head(old, classes=3, image_size=24)
    x = torch.randn(2, 3, 24, 24)
    assert new(x).shape == (2, 3)
    old.head = new.head  # all else is the same: the old model resamples positions as it runs
    torch.testing.assert_close(new(x), old(x), atol=1e-5, rtol=1e-5)


def test_fine_tuning_starts_from_the_trained_weights(trained, folder, tmp_path):
    flags = ["--init", trained / "best.safetensors", "--epochs", 2, "--lr", 1e-4, *CALM]
    flags += ["--batch-size", 16, "--ema", 0.5, "--image-size", 20, "--device", "cpu"]
    path = training.train(arguments(folder, "--out", tmp_path, *flags))
    before, after = weights(trained / "best.safetensors"), weights(path)
    assert after["pos_embed"].shape == (1, 26, 32)
    moved = (after["blocks.0.mlp.fc1.weight"] - before["blocks.0.mlp.fc1.weight"]).abs().max()
    assert 0 < moved < 5e-3  # a few small steps away, not a new start
    assert load_checkpoint(str(path)).preprocess.size == (20, 20)


# Evaluation


def test_evaluate_prints_and_draws(trained, folder, tmp_path, capsys):
    picture = tmp_path / "new" / "confusion.png"
    args = evaluation(folder, "--model", trained / "best.safetensors", "--out", picture)
    result = training.evaluate(args)
    printed = capsys.readouterr().out
    assert f"top-1 {result['top1']:.2%}" in printed and "top-5" not in printed
    assert all(name in printed for name in ("blue", "green", "red", str(picture)))
    shares = result["per_class"].values()
    assert result["top1"] == pytest.approx(sum(shares) / 3) and result["pictures"] == 33
    assert Image.open(picture).size[0] > 500

    args.json = True
    training.evaluate(args)
    assert json.loads(capsys.readouterr().out)["per_class"] == result["per_class"]


def test_evaluate_finds_classes_by_name_not_by_place(folder, tmp_path):
    """A model with more labels, in another order: the answer is right if the name is."""
    labels = [f"other {i}" for i in range(9)] + ["red", "blue", "green"]
    model = VisionTransformer(ViTConfig(16, 16, 3, 8, 1, 1, num_classes=12))
    torch.nn.init.zeros_(model.head.weight)
    model.head.bias.data = torch.arange(12.0)  # always says green, then blue, then red
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, model, labels, Preprocess((16, 16)))
    result = training.evaluate(evaluation("--data", folder, "--model", path, "--json",
                                          "--out", tmp_path / "c.png"))  # fmt: skip
    assert result["per_class"] == {"blue": 0, "green": 1, "red": 0}
    assert result["top1"] == pytest.approx(1 / 3) and result["top5"] == 1
    save_checkpoint(path, model, labels[:-1] + ["gruen"], Preprocess((16, 16)))
    with pytest.raises(DataError, match="no label 'green'; name the class folders"):
        training.evaluate(evaluation(folder, "--model", path))


def test_evaluate_without_a_set(trained):
    with pytest.raises(DataError, match="Say on what"):
        training.evaluate(evaluation("--model", trained / "best.safetensors"))


# The embedded models


@pytest.mark.parametrize(("name", "dataset", "least"), [("vit-mnist", "mnist", 98.5),
                                                        ("vit-cifar10", "cifar10", 75)])  # fmt: skip
def test_the_embedded_models_are_as_good_as_stated(shared, tmp_path, name, dataset, least):
    torch.set_num_threads(os.cpu_count())
    page = (ROOT / "assets" / "README.md").read_text(encoding="utf-8")
    section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
    stated = float(re.search(r"Test accuracy: \*\*([\d.]+) %\*\*", section)[1])
    assert stated >= least
    assert (ROOT / "assets" / f"{name}.safetensors").stat().st_size <= 8_000_000
    result = training.evaluate(evaluation(dataset, "--model", name, "--data", shared / "data",
                                          "--json", "--out", tmp_path / "c.png"))  # fmt: skip
    assert result["pictures"] == 10_000
    assert 100 * result["top1"] == pytest.approx(stated, abs=0.1)
