"""What training starts from."""

import pytest
import torch
from support.runs import CALM, arguments, weights

from vit_demo.checkpoints import load_checkpoint
from vit_demo.model import VisionTransformer, ViTConfig
from vit_demo.training.first_weights import deeper, make_mimetic, refitted
from vit_demo.training.loop import train

pytestmark = pytest.mark.usefixtures("one_thread")


def test_mimetic_first_weights():
    model = VisionTransformer(ViTConfig(16, 4, 3, 64, 2, 2, num_classes=3))
    torch.manual_seed(0)
    make_mimetic(model)
    q, k, v = model.blocks[1].attn.qkv.weight.chunk(3)
    undo = model.blocks[1].attn.proj.weight @ v
    assert undo.diag().mean().item() == pytest.approx(-0.4, abs=0.05)
    assert (undo - undo.diag().diag()).mean().abs() < 0.01
    like = q[:32].T @ k[:32]  # of the first head
    assert like.diag().mean() > 0.25 > 20 * (like - like.diag().diag()).mean().abs()
    near, far = model.pos_embed[0, 1] @ model.pos_embed[0, 2:4].T
    assert near > far
    assert torch.isfinite(model(torch.randn(2, 3, 16, 16))).all()


def test_a_trained_model_gets_a_new_head_and_more_positions():
    torch.manual_seed(0)
    old = VisionTransformer(ViTConfig(16, 4, 3, 32, 2, 2, num_classes=7, registers=2))
    new = refitted(old, classes=3, image_size=24, keep_head=False)
    x = torch.randn(2, 3, 24, 24)
    assert new(x).shape == (2, 3)
    old.head = new.head  # all else is the same: the old model resamples positions as it runs
    torch.testing.assert_close(new(x), old(x), atol=1e-5, rtol=1e-5)


def test_a_model_that_grew_answers_as_before_and_learns_with_its_new_blocks():
    torch.manual_seed(0)
    old = VisionTransformer(ViTConfig(16, 4, 3, 32, 4, 2, num_classes=5))
    new, x = deeper(old, 6), torch.randn(2, 3, 16, 16)
    assert len(new.blocks) == new.config.depth == 6
    torch.testing.assert_close(new(x), old(x), atol=1e-6, rtol=1e-6)
    new(x).square().sum().backward()
    for block in new.blocks:  # a zero that no gradient reaches would stay one
        assert block.attn.proj.weight.grad.abs().max() > 0
        assert block.mlp.fc2.weight.grad.abs().max() > 0


def test_training_goes_on_with_more_blocks_but_not_with_fewer(trained, colours, tmp_path):
    start = trained / "best.safetensors"
    old = load_checkpoint(str(start)).model.config.depth
    flags = ["--init", start, "--epochs", 1, *CALM, "--batch-size", 16, "--device", "cpu"]
    path = train(arguments(colours, "--out", tmp_path / "deep", *flags, "--depth", old + 1))
    assert load_checkpoint(str(path)).model.config.depth == old + 1
    with pytest.raises(ValueError, match=f"use {old} or more"):
        train(arguments(colours, "--out", tmp_path / "flat", *flags, "--depth", old - 1))


def test_fine_tuning_starts_from_the_trained_weights(trained, colours, tmp_path):
    flags = ["--init", trained / "best.safetensors", "--epochs", 2, "--lr", 1e-4, *CALM]
    flags += ["--batch-size", 16, "--ema", 0.5, "--image-size", 20, "--device", "cpu"]
    path = train(arguments(colours, "--out", tmp_path, *flags))
    before, after = weights(trained / "best.safetensors"), weights(path)
    assert after["pos_embed"].shape == (1, 26, 32)
    moved = (after["blocks.0.mlp.fc1.weight"] - before["blocks.0.mlp.fc1.weight"]).abs().max()
    assert 0 < moved < 5e-3  # a few small steps away, not a new start
    assert load_checkpoint(str(path)).preprocess.size == (20, 20)
