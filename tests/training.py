"""Short runs of training: the flags that make them short, and what several test files ask of them."""

import argparse
import os
from pathlib import Path

import torch

from vit_demo.checkpoints import load_checkpoint
from vit_demo.evaluate import add_evaluate_arguments
from vit_demo.recipes import add_train_arguments, settle
from vit_demo.runs import Run
from vit_demo.team import Team
from vit_demo.train import prepare

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


def arguments(*words) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_train_arguments(parser)
    return parser.parse_args([str(word) for word in words])


def evaluation(*words) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_evaluate_arguments(parser)
    return parser.parse_args([str(word) for word in words])


def fresh_run(colours, tmp_path, *words, team=None) -> Run:
    args = arguments(colours, "--out", tmp_path / "run", *SHAPE, *FAST, *words)
    settle(args)
    return prepare(args, team or Team(0, 1, torch.device("cpu")))


def environment() -> dict:
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def weights(path) -> dict:
    return load_checkpoint(str(path)).model.state_dict()
