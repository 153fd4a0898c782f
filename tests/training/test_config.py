"""What a set is trained with, and flags that cannot work."""

import json

import numpy as np
import pytest
from support.runs import SHAPE, arguments

from vit_demo.training.config import TrainConfig, complete, deciding
from vit_demo.training.loop import train

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_recipe_fits_the_set_and_flags_come_first():
    config = complete(arguments("mnist", "--out", "x"))
    notes = {"image_size": 28, "patch_size": 7, "embed_dim": 128, "depth": 3, "heads": 4}
    notes |= {"channels": 1, "epochs": 10, "optimizer": "adamw", "augment": "digits"}
    assert notes.items() <= vars(config).items()
    flags = ["--config", "tiny", "--heads", 6, "--mixup", 0]
    config = complete(arguments("cifar10", "--out", "x", *flags))
    shape = (config.embed_dim, config.depth, config.heads, config.augment)
    assert shape == (192, 12, 6, "photos")


def test_numpy_numbers_are_numbers():
    theirs = {"image_size": np.int64(28), "epochs": np.int32(2), "lr": np.float32(0.5)}
    config = complete(TrainConfig("mnist", "x", **theirs))
    assert config == complete(TrainConfig("mnist", "x", image_size=28, epochs=2, lr=0.5))
    json.dumps(deciding(config))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--epochs", "0"], "--epochs is 0; use 1 or more"),
        (["--lr", "0"], "--lr is 0.0; use more than 0"),
        (["--lr", "nan"], "--lr is nan"),
        (["--drop-patches", "1"], "--drop-patches is 1.0; use from 0 to below 1"),
        (["--channels", "2"], "--channels is 2; use 1"),
        (["--start-size", "10"], "--start-size 10 does not suit .* a multiple of 4 up to 16"),
        (["--start-size", "20"], "--start-size 20 does not suit"),
        (["--patch-size", "5"], "16x16 pixels cannot be cut into patches of 5x5"),
        (["--heads", "3"], "use a width that the heads divide"),
        (["--init", "x.safetensors"], "does not go with --init"),
        (["--device", "abacus"], "'abacus' cannot be used"),
    ],
)
def test_what_cannot_work_is_said_before_training(colours, tmp_path, flags, message):
    with pytest.raises(ValueError, match=message):
        train(arguments(colours, "--out", tmp_path / "run", *SHAPE, *flags))
    assert not (tmp_path / "run").exists()
