"""vit-demo compare: what it writes and prints, and what it refuses."""

import json

import numpy as np
import pytest
from PIL import Image
from support.commands import run
from support.models import noise, small_classifier

from vit_demo.checkpoints import save_checkpoint
from vit_demo.compare import compare
from vit_demo.map_settings import MapSettings

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def image(tmp_path):
    noise().save(tmp_path / "noise.png")
    return tmp_path / "noise.png"


@pytest.fixture
def other(tmp_path) -> str:
    """A second model: deeper, and with finer patches."""
    classifier = small_classifier(1, depth=5, patch_size=4)
    path = tmp_path / "other.safetensors"
    save_checkpoint(path, classifier.model, classifier.labels, classifier.preprocess)
    return str(path)


def test_two_models_on_one_picture(capsys, model, other, image, tmp_path):
    question = ("--method", "head_rollout", "--layer", 1, "--head", 2, "--query", "1,2")
    words = ("--model", model, "--with", other, "--out", tmp_path / "out", *question)
    code, out, err = run(capsys, "compare", image, *words, "--json")
    assert code == 0, err
    about = json.loads(out)
    assert about == json.loads((tmp_path / "out" / "compare.json").read_text())
    assert about["same_picture"] and about["second"]["settings"]["layer"] == 2
    assert (about["first"]["model"], about["second"]["model"]) == ("small", "other")
    expected = compare(
        small_classifier().explain(image),
        small_classifier(1, depth=5, patch_size=4).explain(image),
        MapSettings(map="head_rollout", layer=1, head=2, query=(1, 2)),
    )
    assert about["correlation"] == pytest.approx(expected.correlation, abs=1e-6)
    with np.load(tmp_path / "out" / "compare.npz") as arrays:
        np.testing.assert_allclose(arrays["difference"], expected.difference, atol=1e-6)
        assert arrays["first"].shape == (4, 4) and arrays["second"].shape == (8, 8)
    with Image.open(tmp_path / "out" / "compare.png") as drawn:
        drawn.load()


def test_two_pictures_in_one_model(capsys, model, image, tmp_path):
    noise(1).save(tmp_path / "another.png")
    words = ("--model", model, "--out", tmp_path / "out", "--method", "contribution")
    code, out, err = run(capsys, "compare", image, tmp_path / "another.png", *words)
    assert code == 0, err
    assert out.count("small: label") == 2 and "rank correlation" in out
    assert out.count("%") == 10  # five labels, on both sides
    assert not json.loads((tmp_path / "out" / "compare.json").read_text())["same_picture"]


@pytest.mark.parametrize(
    ("images", "words", "says"),
    [
        (1, (), "give one picture and a second model"),
        (2, ("--with", "vit-mnist"), "give one picture and a second model"),
        (3, (), "give one picture and a second model"),
        (2, ("--label", "label 1"), "choose the method contribution"),
        (2, ("--head", 1), "A head goes with the method head_rollout"),
        (2, ("--layer", 7), "There is no layer 7"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(capsys, model, image, tmp_path, images, words, says):
    given = [image] * images
    code, out, err = run(capsys, "compare", *given, "--model", model, "--out", tmp_path, *words)
    assert code == 2 and says in err and err.count("\n") == 1 and out == ""
