"""A teacher: its answers to the very views that the student is shown."""

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from support.runs import FAST, SHAPE, arguments, fresh_run, weights

from vit_demo.checkpoints import Checkpoint, load_checkpoint
from vit_demo.distributed import ProcessGroup
from vit_demo.model import VisionTransformer, ViTConfig
from vit_demo.training import loop
from vit_demo.training.augment import WARPS, warp
from vit_demo.training.config import complete
from vit_demo.training.data import DataError, normalise
from vit_demo.training.run import read_state
from vit_demo.training.teacher import columns_of
from vit_demo.view import Preprocess

pytestmark = pytest.mark.usefixtures("one_thread")


def taught(trained, *more) -> list:
    return ["--teacher", trained / "best.safetensors", "--views", 2, "--epochs", 3, *more]


def test_the_answers_are_the_teachers_own_for_the_view_that_the_student_sees(
    colours, trained, tmp_path
):
    flags = taught(trained, "--teacher-weight", 1.0, "--augment", "digits")  # nothing is mirrored
    run = fresh_run(colours, tmp_path, *flags)
    order = torch.arange(len(run.train_set))
    teacher = load_checkpoint(str(trained / "best.safetensors")).model.eval()
    for epoch in (0, 1, 2):
        run.teacher.open_view(epoch)
        images, targets, *_ = loop.make_batch(run, order, epoch, 0)
        with torch.no_grad():  # the same size and normalisation: the student's batch as it is
            expected = teacher(images.clamp(-1, 1)).softmax(dim=1)
        torch.testing.assert_close(targets, expected, atol=2e-3, rtol=0)  # kept in half precision
    first, again = (tmp_path / "run" / f"teacher-view-{view}.safetensors" for view in (0, 1))
    assert load_file(first)["answers"].shape == (72, 3)
    assert not torch.equal(load_file(first)["answers"], load_file(again)["answers"])


def test_the_true_label_keeps_its_share(colours, trained, tmp_path):
    run = fresh_run(colours, tmp_path, *taught(trained, "--teacher-weight", 0.25))
    run.teacher.open_view(0)
    order = torch.arange(len(run.train_set))
    targets = loop.make_batch(run, order, 0, 0).targets
    chosen = order[: len(targets)]
    truth = F.one_hot(run.train_set.labels[chosen], 3).float()
    expected = 0.75 * truth + 0.25 * run.teacher.answers[chosen].float()
    torch.testing.assert_close(targets, expected)


def test_each_view_is_asked_for_once_and_read_after_a_stop(colours, trained, tmp_path, monkeypatch):
    asked = []
    real = loop.Teacher.ask
    monkeypatch.setattr(
        loop.Teacher, "ask", lambda self, file: asked.append(self.view) or real(self, file)
    )
    flags = [colours, "--out", tmp_path / "run", *SHAPE, *FAST, *taught(trained)]
    loop.train(arguments(*flags, "--epochs", 3))
    assert asked == [0, 1]
    other = [colours, "--out", tmp_path / "other", *SHAPE, *FAST, *taught(trained)]
    (tmp_path / "other").mkdir()
    for path in (tmp_path / "run").glob("teacher-*"):
        path.rename(tmp_path / "other" / path.name)
    loop.train(arguments(*other, "--epochs", 3))
    assert asked == [0, 1]
    same = (weights(tmp_path / name / "last.safetensors") for name in ("run", "other"))
    for a, b in zip(*(each.values() for each in same), strict=True):
        assert torch.equal(a, b)


def test_two_processes_ask_as_one(colours, trained, tmp_path):
    """Each answers for its part; the sum over the processes is the whole."""
    answers = []
    for rank, world in ((0, 1), (0, 2), (1, 2)):
        group = ProcessGroup(rank, world, torch.device("cpu"))
        flags = [*taught(trained), "--batch-size", 16]
        run = fresh_run(colours, tmp_path / f"{rank}{world}", *flags, group=group)
        run.teacher.view = 0
        run.teacher.draws = torch.full((72, 8), 0.5)
        answers.append(run.teacher.ask())
    whole, first, second = answers
    torch.testing.assert_close(first + second, whole)
    assert (first.sum(1) * second.sum(1)).abs().max() == 0


def test_a_teacher_of_another_size_and_colour_sees_the_same_picture(colours, tmp_path, model):
    """A picture of one colour stays that colour: in the teacher's size, under its normalisation."""
    run = fresh_run(colours, tmp_path, "--epochs", 1)
    own = Preprocess((32, 32), mean=(0.2,), std=(0.1,))
    teacher = Checkpoint("grey", VisionTransformer(ViTConfig(32, 8, 1, 8, 1, 1, num_classes=3)),
                         run.train_set.class_names, own)  # fmt: skip
    seen = loop.Teacher(teacher, run.config, run.train_set, run.preprocess, run.group)
    images = torch.full((2, 3, 16, 16), 0.6 * 2 - 1)  # 0.6 under mean 0.5 and deviation 0.5
    expected = torch.full((2, 1, 32, 32), (0.6 - 0.2) / 0.1)
    torch.testing.assert_close(seen.as_teacher_sees(images), expected)


def test_classes_are_found_among_the_teachers_names():
    labels = ["tabby, tabby cat", "lion, king of beasts, Panthera leo", "crane", "crane"]
    teacher = Checkpoint("teacher", None, labels, None)
    assert columns_of(["lion", "tabby cat"], teacher).tolist() == [1, 0]
    with pytest.raises(DataError, match="no label called 'zebra'"):
        columns_of(["zebra"], teacher)
    with pytest.raises(DataError, match="several labels called 'crane'"):
        columns_of(["crane"], teacher)


def test_damaged_or_foreign_answers_are_refused(colours, trained, tmp_path):
    run = fresh_run(colours, tmp_path, *taught(trained))
    run.teacher.open_view(0)
    path = tmp_path / "run" / "teacher-view-1.safetensors"
    path.write_bytes(b"no tensors")
    with pytest.raises(DataError, match="damaged; remove it"):
        run.teacher.open_view(1)


# Its tokens


def tokens_of(model, images) -> torch.Tensor:
    """Class token and patches after the last norm, each with mean 0 and variance 1."""
    with torch.no_grad():
        x = model.norm(torch.nn.Sequential(*model.blocks)(model.embed(images)))
    return (x - x.mean(dim=2, keepdim=True)) / x.std(dim=2, keepdim=True, unbiased=False)


@pytest.mark.parametrize("drop", [0.0, 0.5])
def test_cutmix_gives_each_patch_the_token_of_its_own_picture(colours, trained, tmp_path, drop):
    """Beside the same batch without mixing: every patch, its token and the shares of the answers."""
    flags = taught(trained, "--teacher-tokens", 1, "--drop-patches", drop, "--augment", "digits")
    plain = fresh_run(colours, tmp_path / "plain", *flags)
    mixed = fresh_run(colours, tmp_path / "mixed", *flags, "--cutmix", 1, "--mix-share", 1)
    order = torch.arange(len(plain.train_set))
    both = []
    for run in (plain, mixed):
        run.teacher.open_view(0)
        both.append(loop.make_batch(run, order, 0, 0))
    before, after = both
    kept = before.kept_patches
    assert kept is None or torch.equal(kept, after.kept_patches)
    whole = plain.teacher.tokens_of(
        order[: len(before.images)], torch.zeros(len(before.images)).bool()
    )
    cut = [F.unfold(b.images, 4, stride=4).transpose(1, 2) for b in both]  # (B, patches, pixels)
    changed = 0
    for i in range(len(cut[0])):
        other = i - 1 if i % loop.GROUP else min(i + loop.GROUP, len(cut[0])) - 1
        own = (cut[1][i] == cut[0][i]).all(dim=1)
        assert (own | (cut[1][i] == cut[0][other]).all(dim=1)).all()
        expected = torch.where(own[:, None], whole[i, 1:], whole[other, 1:])
        torch.testing.assert_close(
            after.tokens[i, 1:], expected if kept is None else expected[kept[i]]
        )
        share = 1 - own.float().mean()
        mean = before.targets[i].lerp(before.targets[other], share)
        torch.testing.assert_close(after.targets[i], mean)
        torch.testing.assert_close(after.tokens[i, 0], whole[i, 0].lerp(whole[other, 0], share))
        changed += share > 0
    assert changed > len(cut[0]) / 2


@pytest.mark.parametrize("drop", [0.0, 0.5])
def test_tokens_are_the_teachers_own_for_the_patches_that_the_student_sees(
    colours, trained, tmp_path, drop
):
    flags = taught(trained, "--teacher-tokens", 1, "--augment", "uploads", "--drop-patches", drop)
    run = fresh_run(colours, tmp_path, *flags)
    teacher = load_checkpoint(str(trained / "best.safetensors")).model.eval()
    order = torch.arange(len(run.train_set))
    run.teacher.open_view(0)
    images, _, kept, tokens = loop.make_batch(run, order, 0, 0)
    chosen = order[: len(images)]
    view = warp(normalise(run.train_set.batch(chosen), run.preprocess), WARPS["uploads"],
                run.teacher.draws[chosen])  # fmt: skip
    mirrored = [not torch.equal(a, b) for a, b in zip(images, view, strict=True)]
    assert 0 < sum(mirrored) < len(mirrored)
    for i, turned in enumerate(mirrored):
        assert torch.equal(images[i], view[i].flip(2) if turned else view[i])
        (expected,) = tokens_of(teacher, view[i : i + 1].clamp(-1, 1))
        patches = expected[1:].reshape(4, 4, -1)
        patches = (patches.flip(1) if turned else patches).flatten(0, 1)
        patches = patches if kept is None else patches[kept[i]]
        expected = torch.cat([expected[:1], patches])
        torch.testing.assert_close(tokens[i], expected, atol=5e-3, rtol=0)  # half precision


def test_a_student_comes_nearer_to_the_tokens_and_goes_on_after_a_stop(colours, trained, tmp_path):
    flags = [colours, "--out", tmp_path / "run", *SHAPE, *FAST]
    flags += taught(trained, "--teacher-tokens", 1, "--drop-patches", 0.4)
    loop.train(arguments(*flags, "--epochs", 12))
    state = read_state(tmp_path / "run" / "last.pt")
    losses = [row["train_loss"] for row in state["history"]]
    assert losses[-1] < losses[0] - 0.5
    config = complete(arguments(*flags, "--epochs", 12, "--resume"))
    run = loop.prepare(config, ProcessGroup(0, 1, torch.device("cpu")))
    for name, value in run.student.to_teacher.state_dict().items():
        assert torch.equal(value, state["to_teacher"][name])
    saved = weights(tmp_path / "run" / "last.safetensors")
    assert not any("teacher" in name for name in saved)  # the model is a ViT as any other


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--teacher-size", 24], "the student sees 4x4 patches; use --teacher-size 16"),
        (["--mixup", 1], "leave --mixup at 0"),
        (["--start-size", 8], "leave --start-size at 0"),
    ],
)
def test_tokens_need_the_same_patches(colours, trained, tmp_path, flags, message):
    with pytest.raises(ValueError, match=message):
        fresh_run(colours, tmp_path, *taught(trained, "--teacher-tokens", 1), *flags)


def test_tokens_need_a_teacher(colours, tmp_path):
    with pytest.raises(ValueError, match="needs a --teacher"):
        fresh_run(colours, tmp_path, "--teacher-tokens", 1)


def test_mixing_does_not_go_with_a_teacher(colours, trained, tmp_path):
    with pytest.raises(ValueError, match="leave --randaugment"):
        fresh_run(colours, tmp_path, *taught(trained), "--randaugment", 2)
