"""Our ViT against timm's: the same weights must give the same logits."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
import timm
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from timm.layers import resample_abs_pos_embed
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer as TimmViT

from vit_demo.checkpoints.timm_models import config_of, imagenet_labels, supported_timm
from vit_demo.model import (
    PatchEmbed,
    UnfoldPatchEmbed,
    VisionTransformer,
    ViTConfig,
    attention_weights,
    resample_positions,
)

# One name of each family among the supported ones, and what is special about it.
FAMILIES = [
    "vit_tiny_patch16_224.augreg_in21k_ft_in1k",  # the paper's shape
    "vit_small_patch32_224.augreg_in21k",  # 21,843 classes
    "vit_base_patch8_224.augreg2_in21k_ft_in1k",  # patch 8
    "vit_base_patch16_224_miil.in21k",  # 11,221 classes, no bias on q, k, v
    "vit_base_patch16_clip_224.openai_ft_in12k_in1k",  # CLIP: norm before the blocks
    "vit_medium_patch16_gap_240.sw_in12k",  # average pooling, no class token
    "vit_wee_patch16_reg1_gap_256.sbb_in1k",  # registers, average pooling
    "vit_so150m2_patch16_reg1_gap_256.sbb_e200_in12k",  # odd widths
    "vit_so400m_patch14_siglip_gap_378.webli_ft_in1k",  # patch 14
    "vit_betwixt_patch16_reg4_gap_384.sbb2_e200_in12k_ft_in1k",
    "deit_tiny_patch16_224.fb_in1k",
    "deit_tiny_distilled_patch16_224.fb_in1k",  # second token and head
    "deit3_small_patch16_224.fb_in1k",  # layer scale, positions without the class token
    "eva_large_patch14_196.in22k_ft_in1k",  # average pooling beside a class token
    "flexivit_small.300ep_in1k",
    # headless: maps only
    "vit_small_patch16_224.dino",
    "vit_small_patch14_dinov2.lvd142m",
    "vit_small_patch14_reg4_dinov2.lvd142m",
    "vit_base_patch16_224.mae",
    "vit_base_patch16_siglip_gap_224.webli",  # tanh GELU
]


def randomise(model: torch.nn.Module) -> None:
    """Every parameter away from its start value, so that no part can be left out unnoticed."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_norm = "norm" in name or "gamma" in name
            parameter.copy_(noise * 0.1 + (1 if is_norm and "weight" in name else 0))


@torch.inference_mode()
def assert_same_logits(
    reference: torch.nn.Module, size: tuple[int, int], channels: int = 3
) -> None:
    reference.eval()
    randomise(reference)
    ours = VisionTransformer(config_of(reference)).eval()
    ours.load_state_dict(reference.state_dict())  # strict: same names, same shapes
    images = torch.randn(2, channels, *size)
    expected = reference(images)
    scale = max(1.0, expected.abs().max().item())
    assert (ours(images) - expected).abs().max() < 1e-4 * scale
    recorded = []

    def attend(q, k, v):
        recorded.append(attention_weights(q, k))
        return recorded[-1] @ v

    with_maps = ours(images, attend=attend)
    assert (with_maps - expected).abs().max() < 1e-4 * scale
    assert len(recorded) == len(reference.blocks)
    for A in recorded:
        torch.testing.assert_close(A.sum(-1), torch.ones(A.shape[:-1]), atol=1e-5, rtol=0)


TINY = {
    "img_size": 32,
    "patch_size": 8,
    "embed_dim": 24,
    "depth": 2,
    "num_heads": 3,
    "num_classes": 7,
}
OPTIONS = {
    "registers": [0, 3],
    "no_embed_class": [False, True],
    "pre_norm": [False, True],
    "layer_scale": [None, 0.1],
    "qkv_bias": [True, False],
    "activation": ["gelu", "quick_gelu", "gelu_tanh"],
}
READOUTS = [  # class token?, pool, norm after pooling?
    (True, "token", False),
    (True, "avg", True),
    (True, "avg", False),
    (False, "avg", True),
    (False, "avg", False),
]
COMBINATIONS = list(itertools.product(READOUTS, *OPTIONS.values()))


@pytest.mark.parametrize("readout", READOUTS, ids=str)
def test_every_combination_of_options_equals_timm(readout):
    combinations = [c for c in COMBINATIONS if c[0] == readout]
    assert len(combinations) == 96
    for (token, pool, fc_norm), registers, embed, pre, scale, bias, act in combinations:
        reference = TimmViT(
            **TINY,
            class_token=token,
            global_pool=pool,
            fc_norm=fc_norm,
            reg_tokens=registers,
            no_embed_class=embed,
            pre_norm=pre,
            init_values=scale,
            qkv_bias=bias,
            act_layer=act,
        )
        assert_same_logits(reference, (32, 32))


@pytest.mark.parametrize("scale", [None, 0.1])
@pytest.mark.parametrize("bias", [True, False])
def test_distilled_equals_timm(scale, bias):
    reference = VisionTransformerDistilled(**TINY, init_values=scale, qkv_bias=bias)
    assert_same_logits(reference, (32, 32))


@pytest.mark.parametrize("final_norm", [True, False])
def test_no_last_norm_equals_timm(final_norm):
    assert_same_logits(TimmViT(**TINY, final_norm=final_norm), (32, 32))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_of_each_family_equals_timm(name):
    reference = timm.create_model(name, depth=2)
    assert_same_logits(reference, tuple(reference.patch_embed.img_size))


@pytest.mark.slow
def test_all_supported_architectures_equal_timm_at_reduced_depth():
    names = supported_timm()
    labelled = [name for name, labels in names.items() if labels]
    counted = [n for n in labelled if not n.startswith(("flexivit", "test_vit", "eva_large"))]
    assert len(counted) == 119
    assert sum(names[name] == 1000 for name in counted) == 97
    architectures = {}  # names that differ after the dot have the same modules and other weights
    for name in names:
        classes = timm.models.get_pretrained_cfg(name).num_classes
        assert len(imagenet_labels(classes)) == names[name]
        architectures.setdefault(name.split(".")[0], name)
    for name in architectures.values():
        with torch.device("meta"):
            patch = timm.create_model(name, depth=1).patch_embed.patch_size
        size = (3 * patch[0], 3 * patch[1])  # of the size only the number of positions depends
        assert_same_logits(timm.create_model(name, depth=1, img_size=size), size)


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 6), cols=st.integers(1, 6), channels=st.sampled_from([1, 3, 4]))
def test_rectangles_and_channels_equal_timm(rows, cols, channels):
    size = (8 * rows, 8 * cols)
    reference = TimmViT(**TINY | {"img_size": size}, in_chans=channels)
    assert_same_logits(reference, size, channels)


@pytest.mark.parametrize("no_embed_class", [False, True])
@pytest.mark.parametrize("size", [(64, 64), (16, 48), (8, 8), (120, 40)])
def test_positions_are_resampled_as_timm_does(size, no_embed_class):
    reference = TimmViT(**TINY, no_embed_class=no_embed_class, dynamic_img_size=True)
    assert_same_logits(reference, size)


def test_resampled_positions_equal_timms_function():
    positions = torch.randn(1, 12, 16)
    expected = resample_abs_pos_embed(positions, [5, 7], [3, 4], num_prefix_tokens=0)
    torch.testing.assert_close(resample_positions(positions, (3, 4), (5, 7)), expected)
    assert resample_positions(positions, (3, 4), (3, 4)) is positions
    # as many patches, other shape: still resampled
    assert not torch.equal(resample_positions(positions, (3, 4), (4, 3)), positions)


@pytest.mark.parametrize("patch", [(4, 4), (2, 8)])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_unfold_and_linear_is_the_convolution(patch, pre_norm):
    config = ViTConfig(
        image_size=(8, 16), patch_size=patch, embed_dim=12, heads=3, pre_norm=pre_norm
    )
    conv = PatchEmbed(config)
    unfold = UnfoldPatchEmbed(config).load_from_conv(conv)
    images = torch.randn(3, 3, 8, 16)
    expected = conv(images)
    assert expected.shape == (3, config.grid[0] * config.grid[1], 12)
    torch.testing.assert_close(unfold(images), expected, atol=1e-5, rtol=1e-5)
    # and the patches come row by row
    first = images[:, :, : patch[0], patch[1] : 2 * patch[1]].flatten(1)
    torch.testing.assert_close(unfold.proj(first), expected[:, 1], atol=1e-5, rtol=1e-5)


def test_defaults_are_vit_base_16_at_384():
    config = ViTConfig()
    assert config.image_size == (384, 384) and config.patch_size == (16, 16)
    assert (config.embed_dim, config.depth, config.heads, config.num_classes) == (768, 12, 12, 1000)
    with torch.device("meta"):
        ours = VisionTransformer()
        theirs = timm.create_model("vit_base_patch16_384")
    count = sum(parameter.numel() for parameter in ours.parameters())
    assert count == sum(parameter.numel() for parameter in theirs.parameters())


def test_only_kept_patches_reach_the_blocks():
    config = ViTConfig(32, 8, embed_dim=24, depth=2, heads=3, num_classes=5)
    model = VisionTransformer(config).eval()
    randomise(model)
    images = torch.randn(2, 3, 32, 32)
    keep = torch.tensor([[0, 5, 9], [3, 2, 15]])
    with torch.inference_mode():
        tokens = model.embed(images)
        x = torch.stack([tokens[i, torch.cat([torch.tensor([0]), keep[i] + 1])] for i in range(2)])
        for block in model.blocks:
            x = block(x)
        expected = model.head(model.norm(x)[:, 0])
        torch.testing.assert_close(model(images, kept_patches=keep), expected)
        every = torch.arange(16).expand(2, -1)
        torch.testing.assert_close(model(images, kept_patches=every), model(images))


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((3, 32, 32), "batch axis"),
        ((1, 1, 32, 32), "3 channels"),
        ((1, 3, 30, 32), "32x32|24x32"),
        ((1, 3, 32, 0), "patches of 8x8"),
    ],
)
def test_a_wrong_shape_is_named_with_the_remedy(shape, words):
    model = VisionTransformer(ViTConfig(32, 8, embed_dim=24, depth=1, heads=3, num_classes=5))
    with pytest.raises(ValueError, match=words):
        model(torch.zeros(shape))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image_size": 30}, "use a size like 24x24"),
        ({"heads": 5}, "heads 5"),
        ({"embed_dim": 0}, "embed_dim is 0"),
        ({"num_classes": -1}, "num_classes"),
        ({"pool": "max"}, "token, avg"),
        ({"activation": "relu"}, "gelu"),
        ({"class_token": False}, 'pool="avg"'),
        ({"distilled": True, "registers": 2}, "registers=0"),
        ({"patch_size": 0}, "patches of 0x0"),
    ],
)
def test_a_wrong_configuration_is_named_with_the_remedy(change, words):
    good = {"image_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 1, "heads": 3}
    assert dataclasses.asdict(ViTConfig(**good))["mlp_dim"] == 96
    with pytest.raises(ValueError, match=words):
        ViTConfig(**good | change)


def dropout_pair(rate: float, attention_rate: float):
    """Our model and timm's with the same weights and dropout. All tokens answer: where one does, ours
    computes less of the last block, and draws fewer numbers."""
    rates = {"pos_drop_rate": rate, "proj_drop_rate": rate, "attn_drop_rate": attention_rate}
    shape = {"embed_dim": 24, "depth": 2, "num_heads": 3, "img_size": 32, "patch_size": 8}
    theirs = timm.models.VisionTransformer(**shape, **rates, num_classes=5, global_pool="avg")
    config = ViTConfig(32, 8, 3, 24, 2, 3, num_classes=5, pool="avg", last_norm="pooled",
                       dropout=rate, attention_dropout=attention_rate)  # fmt: skip
    ours = VisionTransformer(config)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@pytest.mark.parametrize(
    ("rate", "attention_rate"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (0.2, 0.3)]
)
def test_dropout_falls_where_timms_falls(rate, attention_rate):
    """The same seed draws the same units: equal in training only if all places and rates agree."""
    ours, theirs = dropout_pair(rate, attention_rate)
    images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    for training in (True, False):
        found = []
        for model in (ours.train(training), theirs.train(training)):
            torch.manual_seed(7)
            found.append(model(images))
        torch.testing.assert_close(*found)
    plain = dropout_pair(0.0, 0.0)[0]
    plain.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours.eval()(images), plain.eval()(images))
    changed = not torch.allclose(ours.train()(images), plain.train()(images))
    assert changed == bool(rate or attention_rate)


@pytest.mark.parametrize(("shape", "last"), [
    ({}, 1), ({"distilled": True}, 2), ({"registers": 3}, 1), ({"pool": "avg"}, 17),
])  # fmt: skip
def test_of_the_last_block_only_the_tokens_that_answer_are_computed(shape, last):
    model = VisionTransformer(ViTConfig(32, 8, embed_dim=24, depth=3, heads=3, **shape)).eval()
    tokens = 16 + model.config.prefix_tokens
    seen, hear = [], lambda _, args: seen.append(args[0].shape[1])
    for block in model.blocks:
        block.mlp.register_forward_pre_hook(hear)
    for fused in (True, False):
        for block in model.blocks:
            block.attn.fused = fused
        seen.clear()
        model(torch.randn(2, 3, 32, 32))
        assert seen == [tokens, tokens, last]


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_the_written_out_softmax_does_what_the_fused_call_does(rate):
    model = dropout_pair(0.0, rate)[0]
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    fused = model.eval()(images)
    for block in model.blocks:
        block.attn.fused = False
    torch.testing.assert_close(model(images), fused)
    if rate:  # and dropout falls on the weights there, too
        assert not torch.allclose(model.train()(images), fused)


@pytest.mark.parametrize("name", ["dropout", "attention_dropout"])
@pytest.mark.parametrize("rate", [-0.1, 1.0, math.nan])
def test_a_dropout_that_cannot_be_is_refused(name, rate):
    with pytest.raises(ValueError, match=f"{name} is .*from 0 to below 1"):
        ViTConfig(**{name: rate})


def test_numpy_integers_are_integers():
    plain = ViTConfig(32, 8, 3, 24, 2, 3, num_classes=5)
    numbers = map(np.int64, (8, 3, 24, 2, 3))
    theirs = ViTConfig(np.array([32, 32]), *numbers, num_classes=np.uint8(5))
    assert theirs == plain and json.dumps(dataclasses.asdict(theirs))
    assert ViTConfig(np.int64(32), np.int32(8), 3, 24, 2, 3, num_classes=5) == plain


@pytest.mark.parametrize("value", [0, 2.0, None, "3", [1]])
@pytest.mark.parametrize("name", ["embed_dim", "depth", "patch_size"])
def test_a_shape_that_cannot_be_is_refused_with_its_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} is .*use a whole number|cannot be cut"):
        ViTConfig(**{name: value})
