"""Short runs of training: the flags that make them short, and what several test files ask of them."""

import os
from pathlib import Path

import torch

from vit_demo.checkpoints import load_checkpoint
from vit_demo.cli import Parser
from vit_demo.cli import train as command
from vit_demo.distributed import ProcessGroup
from vit_demo.training.config import TrainConfig, complete
from vit_demo.training.evaluation import evaluate
from vit_demo.training.loop import prepare
from vit_demo.training.run import Run

ROOT = Path(__file__).parents[2]


def words(line: str) -> list[str]:
    return line.split()


SHAPE = words("--image-size 16 --patch-size 4 --embed-dim 32 --depth 2 --heads 2")
FAST = words("--batch-size 16 --warmup 1 --lr 2e-3 --ema 0.9 --device cpu")
CALM = words("--augment photos --randaugment 0 --mixup 0 --cutmix 0")
EVERYTHING = words(  # all that draws from chance
    "--augment zoom --randaugment 1 --mixup 0.8 --cutmix 1 --mix-share 0.7 "
    "--drop-patches 0.5 --whole-epochs 1"
)


def arguments(*words) -> TrainConfig:
    """What the command line makes of these words."""
    parser = Parser()
    command.add_arguments(parser)
    return command.config_of(parser.parse_args([str(word) for word in words]))


def evaluation(model, dataset, **options) -> dict:
    return evaluate(load_checkpoint(str(model)), str(dataset), device="cpu", **options)


def fresh_run(colours, tmp_path, *words, group=None) -> Run:
    config = complete(arguments(colours, "--out", tmp_path / "run", *SHAPE, *FAST, *words))
    return prepare(config, group or ProcessGroup(0, 1, torch.device("cpu")))


def environment() -> dict:
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def weights(path) -> dict:
    return load_checkpoint(str(path)).model.state_dict()
