"""A model at moments of its training: what a folder says, and what the moments say to a picture."""

import json
import shutil

import pytest
import torch
from support.paths import ROOT
from support.runs import CALM, FAST, SHAPE, arguments

import vit_demo
from vit_demo.checkpoints import CheckpointError
from vit_demo.distributed import ProcessGroup
from vit_demo.embedded import embedded, snapshots
from vit_demo.learning import load_history
from vit_demo.training import loop
from vit_demo.training.data import load_dataset
from vit_demo.training.evaluation import measure
from vit_demo.training.snapshots import PICTURES, spread_out

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folder(colours, tmp_path_factory):
    out = tmp_path_factory.mktemp("learning") / "run"
    flags = [*SHAPE, *FAST, *CALM, "--epochs", 2, "--snapshots", 3]
    loop.train(arguments(colours, "--out", out, *flags))
    return out / "snapshots"


@pytest.fixture
def digits(digits_history):
    """The moments that come with the project."""
    return digits_history


def test_every_moment_answers_as_its_checkpoint_does(folder, colours):
    history = load_history(folder, "cpu")
    table = json.loads((folder / "snapshots.json").read_text())
    picture = colours / "test" / "red" / "00.png"
    explanations = history.explain(picture)
    assert len(explanations) == len(history.moments) == 3
    for moment, known, explanation in zip(
        history.moments, table["moments"], explanations, strict=True
    ):
        assert (moment.step, moment.confusion) == (known["step"], known["confusion"])
        alone = vit_demo.load(str(folder / known["file"]), device="cpu").explain(picture)
        torch.testing.assert_close(explanation.logits, alone.logits)
        torch.testing.assert_close(explanation.head_rollouts(None), alone.head_rollouts(None))


def test_what_cannot_be_read_is_said_in_a_sentence(folder, tmp_path):
    with pytest.raises(CheckpointError, match="has no snapshots.json; give the folder"):
        load_history(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    table = copy / "snapshots.json"
    good = json.loads(table.read_text())
    for bad in ("{", "[]", "{}", json.dumps(good | {"moments": [{"file": 3}]})):
        table.write_text(bad)
        with pytest.raises(CheckpointError, match="is damaged; train again with --snapshots"):
            load_history(copy)
    table.write_text(json.dumps(good))
    (copy / good["moments"][1]["file"]).unlink()
    with pytest.raises(CheckpointError):
        load_history(copy)


# The moments that come with the project


def test_the_embedded_model_is_the_last_moment(digits, vit_mnist):
    assert len(digits.moments) >= 12 and digits.dataset == "mnist"
    steps = [moment.step for moment in digits.moments]
    assert steps[0] == 0 and steps[-1] == digits.steps and steps == sorted(set(steps))
    last = digits.moments[-1].classifier
    assert (last.labels, last.preprocess) == (vit_mnist.labels, vit_mnist.preprocess)
    for name, value in last.model.state_dict().items():
        assert torch.equal(value, vit_mnist.model.state_dict()[name]), name


def test_the_moments_are_small_and_no_models_to_choose(digits):
    files = list(snapshots().iterdir())
    assert all(path.stat().st_size < 2_000_000 for path in files)
    assert not {path.stem for path in files} & set(embedded())


def test_it_learns(digits):
    first, last = digits.moments[0], digits.moments[-1]
    assert first.train_loss is None and first.accuracy < 0.25 and last.accuracy > 0.98
    of_each_digit = torch.tensor(first.confusion).sum(1)
    for moment in digits.moments:
        confusion = torch.tensor(moment.confusion)
        assert torch.equal(confusion.sum(1), of_each_digit)
        assert confusion.sum() == digits.test_pictures == PICTURES
        assert confusion.diag().sum() / PICTURES == pytest.approx(moment.accuracy)
    example = ROOT / "assets" / "examples" / "digit-seven.png"
    assert digits.explain(example)[-1].top(1)[0].label == "7"


def test_the_table_is_true_of_the_weights(digits, shared):
    (test_set,) = load_dataset("mnist", str(shared / "data"), 28, 1, parts=("test",))
    group = ProcessGroup(0, 1, torch.device("cpu"))
    pictures = spread_out(test_set, PICTURES)
    of_each_digit = torch.bincount(pictures.labels, minlength=10).tolist()
    for moment in digits.moments[:: len(digits.moments) // 3]:
        classifier = moment.classifier
        assert [sum(row) for row in moment.confusion] == of_each_digit
        found = measure(classifier.model, pictures, classifier.preprocess, group)
        assert found["loss"] == pytest.approx(moment.test_loss, rel=1e-2)  # half precision
        differ = (found["confusion"] - torch.tensor(moment.confusion)).abs().sum()
        assert differ <= 10  # five digits at the border between two answers
