"""Augmentation: moved by its own draw, repeatable, and honest about what it mixed."""

import pytest
import torch

from vit_demo.training.augment import Warp, mix, mix_patches, recolour, warp


def test_warp_moves_each_picture_by_its_own_draw():
    x = torch.rand(4, 2, 8, 8)
    how = Warp(shift=0.25, flip=True)  # up to two pixels
    middle = 0.5
    moves = torch.full((4, 5), middle)
    moves[1, 2] = 0.0  # flip
    moves[2, 3] = 1.0  # two pixels along x
    moves[3, 4] = 0.25  # one pixel along y, the other way
    y = warp(x, how, moves)
    torch.testing.assert_close(y[0], x[0])
    torch.testing.assert_close(y[1], x[1].flip(2))
    torch.testing.assert_close(y[2, :, :, :-2], x[2, :, :, 2:])
    torch.testing.assert_close(y[3, :, 1:], x[3, :, :-1])


def test_warp_turns_and_zooms():
    x = torch.zeros(2, 1, 9, 9)
    x[:, :, 4, 7] = 1  # three pixels to the right of the middle
    quarter, closer = [1.0, 0.5, 0.5, 0.5, 0.5], [0.5, 0.0, 0.5, 0.5, 0.5]
    turned = warp(x[:1], Warp(turn=90), torch.tensor([quarter]))[0, 0]
    assert turned.argmax().item() in (4 + 9 * 1, 4 + 9 * 7)  # now above or below it
    zoomed = warp(x[:1], Warp(zoom=0.25), torch.tensor([closer]))[0, 0]
    assert zoomed.argmax().item() == 4 * 9 + 8  # three quarters of the picture fill it: 3 / 0.75


def test_torchvision_augmentation_repeats_and_leaves_the_global_state_alone():
    images = torch.randint(0, 256, (8, 3, 16, 16), dtype=torch.uint8)
    targets = torch.eye(4).repeat(2, 1)
    state = torch.get_rng_state()
    for function in (
        lambda g: recolour(images, 2, g),
        lambda g: mix(images.float(), targets, 0.8, 1.0, 1.0, g)[0],
    ):
        results = [function(torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
        assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(("mixup", "cutmix"), [(1.0, 0.0), (0.0, 1.0)])
def test_mixed_targets_say_how_much_of_each_picture_there_is(mixup, cutmix):
    """Pictures that are constant, with the value of their class: the mean pixel is the target."""
    targets = torch.eye(8)
    x = torch.arange(8.0)[:, None, None, None].expand(8, 1, 32, 32)
    mixed, soft = mix(x, targets, mixup, cutmix, 1.0, torch.Generator().manual_seed(3))
    torch.testing.assert_close(mixed.mean(dim=(1, 2, 3)), soft @ torch.arange(8.0))
    assert (soft.max(1).values < 1).all()
    same = mix(x, targets, mixup, cutmix, 0.0, torch.Generator().manual_seed(3))
    assert torch.equal(same[0], x) and torch.equal(same[1], targets)


def test_mixed_patches_keep_their_tokens_and_say_how_much_of_each_picture_there_is():
    """Pictures and tokens that are constant, with the value of their class: patch by patch, the token is
    that of the picture whose pixels are there."""
    number = torch.arange(8.0)
    x = number[:, None, None, None].expand(8, 3, 20, 30)
    tokens = number[:, None, None].expand(8, 1 + 4 * 6, 2)
    sizes = set()
    for seed in range(20):
        g = torch.Generator().manual_seed(seed)
        mixed, soft, learnt = mix_patches(x, torch.eye(8), tokens, (4, 6), 1.0, 1.0, g)
        torch.testing.assert_close(mixed.mean(dim=(1, 2, 3)), soft @ number)
        torch.testing.assert_close(learnt[:, 0, 0], soft @ number)
        patches = learnt[:, 1:, 0].reshape(8, 1, 4, 6)
        pixels = patches.repeat_interleave(5, dim=2).repeat_interleave(5, dim=3)
        assert torch.equal(mixed, pixels.expand_as(mixed))  # each patch is of one picture alone
        assert len(patches[3].unique()) <= 2 and set(patches[3].unique().tolist()) <= {2.0, 3.0}
        sizes.add(round(soft[0, 0].item(), 4))
    assert len(sizes) > 5
    left = mix_patches(x, torch.eye(8), tokens, (4, 6), 1.0, 0.0, torch.Generator())
    assert all(torch.equal(a, b) for a, b in zip(left, (x, torch.eye(8), tokens), strict=True))
