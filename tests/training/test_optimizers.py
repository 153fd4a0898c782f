"""How the weights move."""

from itertools import pairwise

import pytest
import torch
from support.runs import fresh_run

from vit_demo.training import optimizers
from vit_demo.training.config import TrainConfig

pytestmark = pytest.mark.usefixtures("one_thread")


def test_only_matrices_decay(colours, tmp_path):
    for optimizer in ("adamw", "muon"):
        run = fresh_run(colours, tmp_path, "--optimizer", optimizer)
        names = {id(p): name for name, p in run.model.named_parameters()}
        groups = [g for o in run.optimizers for g in o.param_groups]
        found = [names[id(p)] for g in groups for p in g["params"]]
        assert sorted(found) == sorted(names.values())  # each parameter, once
        decayed = {names[id(p)] for g in groups if g["weight_decay"] for p in g["params"]}
        assert decayed == {n for n in names.values() if n.endswith("weight") and "norm" not in n}


def test_the_learning_rate_warms_up_and_falls_to_zero():
    config = TrainConfig("x", "y", lr=0.5, warmup=2.0, epochs=10)
    rates = [optimizers.learning_rate(step, 10, config) for step in range(100)]
    assert rates[0] == pytest.approx(0.5 / 21)
    assert all(a < b for a, b in pairwise(rates[:21]))
    assert rates[20] == 0.5  # the highest, after two epochs
    assert rates[60] == pytest.approx(0.25)  # half of the way down
    assert all(a > b for a, b in pairwise(rates[20:])) and rates[-1] < 1e-3


def test_the_average_follows_the_weights():
    model, average = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(model.weight, 1.0)
    torch.nn.init.constant_(average.weight, 0.0)
    optimizers.update_average(average, model, 10**6, 0.75)
    assert average.weight.item() == pytest.approx(0.25)
    optimizers.update_average(average, model, 0, 0.999)  # in the first steps it hurries
    assert average.weight.item() == pytest.approx(0.25 + 0.9 * 0.75)
    optimizers.update_average(average, model, 10**6, 0.0)  # no average: the weights themselves
    assert average.weight.item() == 1.0


def test_orthogonal_steps_move_all_directions_alike():
    for shape in ((20, 60), (60, 20)):
        G = torch.randn(shape, generator=torch.Generator().manual_seed(0)) @ torch.diag(
            torch.linspace(0.1, 3, shape[1])
        )
        U, _, V = torch.linalg.svd(G, full_matrices=False)
        X = optimizers.orthogonal(G)
        values = torch.linalg.svdvals(X)
        assert values.min() > 0.6 and values.max() < 1.3
        cosine = (X * (U @ V)).sum() / (X.norm() * (U @ V).norm())
        assert cosine > 0.97
