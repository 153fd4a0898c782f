"""The tab "Learn" on the server: a digit at every moment, the code as it stands, and bad requests."""

import base64
import io
import shlex

import numpy as np
import pytest
import torch
from PIL import Image
from support.paths import ROOT
from support.runs import arguments

from vit_demo.embedded import example_path
from vit_demo.inside import position_similarity
from vit_demo.training.config import complete
from vit_demo.ui import learn
from vit_demo.ui.server_functions import guarded

pytestmark = pytest.mark.usefixtures("one_thread")
EXAMPLE = "digit-four"


def huge_drawing() -> str:
    """A few kilobytes that would be 64 megapixels."""
    stream = io.BytesIO()
    Image.new("1", (8000, 8000)).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode()


def unpacked(text: str, *shape: int) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), "<f4").copy()).reshape(shape)


@pytest.fixture(autouse=True)
def history(digits_history):
    return digits_history


def test_a_digit_at_every_moment(history):
    answer = learn.digit_over_time({"example": EXAMPLE})
    expected = history.explain(example_path(EXAMPLE))
    L, H = answer["layers"], answer["heads"]
    shape = (len(expected), L, H, *expected[0].grid)
    rollouts = unpacked(answer["maps"]["head_rollout"], *shape)
    attention = unpacked(answer["maps"]["attention"], *shape)
    for k, one in enumerate(expected):
        shares = one.logits.softmax(dim=-1)
        torch.testing.assert_close(torch.tensor(answer["probabilities"][k]), shares)
        torch.testing.assert_close(rollouts[k], one.head_rollouts(None))
        for layer in range(L):
            torch.testing.assert_close(attention[k, layer], one.attention(layer))
    width, height = answer["size"]
    assert len(base64.b64decode(answer["pixels"])) == width * height


def test_a_drawing_is_read_as_the_file_of_it():
    data = base64.b64encode(example_path(EXAMPLE).read_bytes()).decode()
    drawn = learn.digit_over_time({"drawing": f"data:image/png;base64,{data}"})
    assert drawn == learn.digit_over_time({"example": EXAMPLE})


def test_what_does_not_depend_on_a_drawing(history):
    answer = learn.training_history({})
    assert [m["step"] for m in answer["moments"]] == [m.step for m in history.moments]
    n = answer["grid"][0] * answer["grid"][1]
    positions = unpacked(answer["positions"], len(history.moments), n, n)
    for found, moment in zip(positions, history.moments, strict=True):
        torch.testing.assert_close(found, position_similarity(moment.classifier.model))


@pytest.mark.parametrize(
    "request_",
    [
        {},
        None,
        ["x"],
        {"example": "koala"},
        {"example": "../../README"},
        {"example": ["digit-four"]},
        {"drawing": "data:image/png;base64,@@@"},
        {"drawing": "data:image/png;base64,aGVsbG8="},
        {"drawing": 5},
        {"drawing": f"data:image/png;base64,{huge_drawing()}"},
    ],
)
def test_a_bad_request_gets_a_sentence(request_):
    answer = guarded(learn.digit_over_time)(request_)
    assert set(answer) == {"error"}
    assert answer["error"].endswith(".") and "Traceback" not in answer["error"]


def test_a_bad_request_in_korean_gets_a_korean_sentence():
    answer = guarded(learn.digit_over_time)({"example": "koala", "language": "ko"})
    assert answer["error"].startswith("그런 예시가 없습니다.")


def test_the_code_is_the_source():
    named = {}
    for part in learn.sources():
        for one in part["functions"]:
            named[one["name"]] = part["part"]
            lines = (ROOT / one["file"]).read_text(encoding="utf-8").splitlines(keepends=True)
            count = one["code"].count("\n")
            assert "".join(lines[one["first"] - 1 : one["first"] - 1 + count]) == one["code"]
            assert f"def {one['name']}(" in one["code"]
    assert named["train_epoch"] == "epoch" and named["measure"] == "evaluate"
    assert named["train"] == "loop" and named["load_dataset"] == "loaders"


def test_the_command_is_the_one_that_was_run(history):
    _, command, *words = shlex.split(learn.COMMAND)
    config = complete(arguments(*words))
    assert command == "train" and config.dataset == history.dataset
    assert config.snapshots == len(history.moments) and config.epochs == history.epochs
    assert config.batch_size == history.batch_size
    page = (ROOT / "assets" / "README.md").read_text(encoding="utf-8")
    assert learn.COMMAND.replace(" --out", " --data DIR --out") in page
