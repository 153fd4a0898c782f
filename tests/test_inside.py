"""Every step of the pass against timm's own modules, in float64, and against plain formulas."""

import copy
import math

import numpy as np
import pytest
import torch
from support.models import noise, small_classifier
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer as TimmViT

from vit_demo.checkpoints.timm_models import config_of
from vit_demo.embedded import DEFAULT
from vit_demo.explain import load
from vit_demo.inside import Inside, filters, position_similarity
from vit_demo.model import VisionTransformer
from vit_demo.random_weights import randomise
from vit_demo.view import Preprocess

pytestmark = pytest.mark.usefixtures("one_thread")

SIZE = {"img_size": 12, "patch_size": 4, "embed_dim": 12, "depth": 3, "num_heads": 2}
FAMILIES = {
    "class token": {},
    "distilled": {"distilled": True},
    "average pooling": {"class_token": False, "global_pool": "avg", "fc_norm": True},
    "average of normalised tokens": {"class_token": False, "global_pool": "avg", "fc_norm": False},
    "average beside class token": {"global_pool": "avg", "fc_norm": True},
    "registers": {"reg_tokens": 3},
    "layer scale": {"init_values": 0.1, "no_embed_class": True},
    "CLIP": {"pre_norm": True},
    "no bias on q, k, v": {"qkv_bias": False},
    "one channel": {"in_chans": 1},
    "rectangle": {"img_size": (8, 20), "patch_size": (4, 5)},
    "headless": {"num_classes": 0},
}
WITH_HEAD = [name for name in FAMILIES if name != "headless"]
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


class Seen:
    """timm's model, ours with its weights, one picture, and what went in and out of timm's modules."""

    def __init__(self, family: str):
        torch.manual_seed(5)
        options = SIZE | {"num_classes": 4} | FAMILIES[family]
        kind = VisionTransformerDistilled if options.pop("distilled", False) else TimmViT
        self.theirs = kind(**options).double().eval().requires_grad_(False)
        for name, parameter in self.theirs.named_parameters():
            parameter.copy_(torch.randn(parameter.shape) * (0.5 if "weight" in name else 1))
        for block in self.theirs.blocks:
            block.attn.fused_attn = False
        self.ours = VisionTransformer(config_of(self.theirs)).double().eval()
        self.ours.load_state_dict(self.theirs.state_dict())
        self.ours.requires_grad_(False)
        config = self.config = self.ours.config
        self.pixels = torch.randn(1, config.channels, *config.image_size).double()
        self.inputs, self.outputs = {}, {}
        hooks = [m.register_forward_hook(self.keep(n)) for n, m in self.theirs.named_modules()]
        with torch.no_grad():
            self.logits = self.theirs(self.pixels)[0]
        for hook in hooks:
            hook.remove()
        self.walk = Inside(self.ours, self.pixels)

    def keep(self, name: str):
        def hook(module, inputs, output):
            self.inputs[name], self.outputs[name] = inputs[0][0], output[0]

        return hook

    def block(self, layer: int, part: str) -> torch.Tensor:
        return self.outputs[f"blocks.{layer}.{part}"]

    def qkv(self, layer: int) -> torch.Tensor:
        """Each (h, N, d)."""
        flat, h = self.block(layer, "attn.qkv"), self.config.heads
        return flat.reshape(len(flat), 3, h, -1).permute(1, 2, 0, 3)

    def attention(self, layer: int) -> torch.Tensor:
        """(h, N, N), written out."""
        q, k, _ = self.qkv(layer)
        scores = torch.einsum("hid,hjd->hij", q, k) / math.sqrt(q.shape[-1])
        exponentials = scores.exp()
        return exponentials / exponentials.sum(dim=-1, keepdim=True)


@pytest.fixture(scope="module", params=FAMILIES)
def seen(request) -> Seen:
    return Seen(request.param)


@pytest.fixture(scope="module", params=WITH_HEAD)
def answering(request) -> Seen:
    return Seen(request.param)


def tokens_of(seen: Seen) -> list:
    """Several ways to name a token, with its number."""
    P, (rows, cols) = seen.config.prefix_tokens, seen.config.grid
    middle = P + rows // 2 * cols + cols // 2
    default = 0 if seen.config.pool == "token" else middle
    return [(None, default), ((1, 2), P + cols + 2), (P, P), (-1, P + rows * cols - 1)]


def close(found, expected, **tolerance) -> None:
    torch.testing.assert_close(
        torch.as_tensor(found, dtype=torch.float64),
        torch.as_tensor(expected, dtype=torch.float64),
        **(CLOSE | tolerance),
    )


# 1 to 4


def test_pixels_are_undone():
    classifier, mean, std = small_classifier(), (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    classifier.preprocess = Preprocess((32, 32), mean=mean, std=std)
    e = classifier.explain(noise())
    found = e.inside().pixels()
    values = np.asarray(e.view.picture).transpose(2, 0, 1)
    np.testing.assert_allclose(found.values, values, atol=1e-3)
    for channel in range(3):
        expected = (values[channel] / 255 - mean[channel]) / std[channel]
        np.testing.assert_allclose(found.normalised[channel], expected, atol=1e-5)
    assert (found.mean, found.std) == (mean, std)


def test_patch(seen):
    p, q = seen.config.patch_size
    row, col = 1, 2
    found = seen.walk.patch((row, col))
    pixels = seen.pixels[0, :, row * p : (row + 1) * p, col * q : (col + 1) * q]
    close(found.pixels, pixels)
    proj = seen.theirs.patch_embed.proj
    bias = 0 if proj.bias is None else proj.bias
    expected = (proj.weight * pixels).sum(dim=(1, 2, 3)) + bias
    close(found.by_convolution, expected)
    close(found.by_unfold, expected)
    close(seen.outputs["patch_embed"][row * seen.config.grid[1] + col], expected)
    assert 0 <= found.difference < 1e-12
    for channel in (0, 7, -1):
        opened = seen.walk.patch_products(channel, (row, col))
        close(opened.products, proj.weight[channel] * pixels)
        assert opened.total == pytest.approx(float(expected[channel]), abs=1e-12)


def test_embedding(seen):
    found, P = seen.walk.embedding(), seen.config.prefix_tokens
    close(found.patches, seen.outputs["patch_embed"])
    together = torch.cat([found.prefix, found.patches + found.positions])
    before = seen.inputs["norm_pre"]  # what timm has put together
    close(together, before)
    close(found.lengths[2], before[P:].square().sum(dim=-1).sqrt())
    close(found.lengths[0], found.patches.square().sum(dim=-1).sqrt())


def test_positions(seen):
    for centred in (False, True):
        found = position_similarity(seen.ours, centred=centred)
        positions = seen.walk.embedding().positions.numpy()
        if centred:
            positions = positions - positions.mean(0)
        n = len(positions)
        expected = [
            [a @ b / np.sqrt((a @ a) * (b @ b)) for b in positions] for a in positions[: n // 2]
        ]
        np.testing.assert_allclose(found[: n // 2], expected, rtol=1e-9)


def test_shuffled_patches_that_keep_their_positions_change_nothing(seen):
    found = seen.walk.shuffle(seed=3)
    close(found.logits, seen.logits)
    close(found.with_positions, seen.logits)
    assert sorted(found.order.tolist()) == list(range(len(found.order)))
    p, q = seen.config.patch_size
    cols = seen.config.grid[1]
    other = torch.empty_like(seen.pixels)
    for place, patch in enumerate(found.order.tolist()):
        (r, c), (i, j) = divmod(place, cols), divmod(patch, cols)
        other[..., r * p : r * p + p, c * q : c * q + q] = seen.pixels[
            ..., i * p : i * p + p, j * q : j * q + q
        ]
    close(found.without_positions, seen.theirs(other)[0])
    assert (found.without_positions - found.logits).abs().max() > 1e-3


def test_the_stream_and_the_norms(seen):
    walk = seen.walk
    for layer in range(3):
        close(walk.stream[2 * layer], seen.inputs[f"blocks.{layer}"])
        close(walk.stream[2 * layer + 1], seen.inputs[f"blocks.{layer}.norm2"])
        close(walk.stream[2 * layer + 2], seen.outputs[f"blocks.{layer}"])
        for query, token in tokens_of(seen):
            found = walk.layer_norm(layer, query)
            close(found.before, seen.inputs[f"blocks.{layer}"][token])
            close(found.after, seen.block(layer, "norm1")[token])
            assert found.mean == pytest.approx(float(found.before.mean()), abs=1e-12)
            assert float(found.standard.mean()) == pytest.approx(0, abs=1e-12)
            assert float(found.standard.square().mean()) == pytest.approx(1, abs=1e-5)
            norm = seen.theirs.blocks[layer].norm1
            close(found.standard * norm.weight + norm.bias, found.after)
    close(walk.lengths()[1], seen.outputs["blocks.0"].square().sum(dim=-1).sqrt())


def test_long_tokens_are_marked():
    walk = small_classifier().explain(noise()).inside()
    assert not walk.marked(1000).any()
    walk.stream = walk.stream.clone()
    walk.stream[2, 5] *= 50
    assert walk.marked().nonzero().tolist() == [[1, 5]]


# 5 to 8


def test_queries_keys_values_and_softmax(seen):
    for layer in range(3):
        q, k, v = seen.qkv(layer)
        A = seen.attention(layer)
        for head in range(2):
            for query, token in tokens_of(seen):
                found = seen.walk.attention(layer, head, query)
                close(found.query, q[head, token])
                close(found.keys, k[head])
                close(found.values, v[head])
                close(found.products, q[head, token] * k[head])
                close(found.scores, k[head] @ q[head, token] / math.sqrt(6))
                close(found.shares, A[head, token])
                bits = -(A[head, token] * A[head, token].log2()).sum()
                assert found.entropy == pytest.approx(float(bits), abs=1e-9)
    scores = seen.walk.attention(1, 1).scores
    for temperature in (0.25, 3.0):
        warm = seen.walk.attention(1, 1, temperature=temperature)
        close(warm.shares, (scores / temperature).softmax(dim=0))


def test_heads_add_up_to_what_attention_adds(seen):
    for layer in range(3):
        _, _, v = seen.qkv(layer)
        A, block = seen.attention(layer), seen.theirs.blocks[layer]
        gamma = getattr(block.ls1, "gamma", torch.ones(12))
        for query, token in tokens_of(seen):
            found = seen.walk.heads(layer, query)
            close(found.shares, A[:, token])
            for head in range(2):
                seen_by_head = A[head, token] @ v[head]
                W_o = block.attn.proj.weight[:, 6 * head : 6 * head + 6]
                close(found.seen[head], seen_by_head)
                close(found.written[head], gamma * (W_o @ seen_by_head))
            total = gamma * seen.block(layer, "attn")[token]
            close(found.part, total)
            close(found.written.sum(dim=0) + found.bias, total)


def test_residual(seen):
    for query, token in tokens_of(seen):
        found = seen.walk.residual(query)
        for layer in range(3):
            x = seen.inputs[f"blocks.{layer}"][token]
            a, m = (seen.block(layer, part)[token] for part in ("ls1", "ls2"))
            close(found.lengths[layer], [math.sqrt(float(p @ p)) for p in (x, a, m)])
            pairs = ((x, a), (x + a, m), (a, m))
            close(
                found.cosines[layer],
                [float(p @ r) / math.sqrt(float(p @ p) * float(r @ r)) for p, r in pairs],
            )


def test_units(seen):
    P, grid = seen.config.prefix_tokens, seen.config.grid
    for layer in range(3):
        before = seen.block(layer, "mlp.fc1")
        after = seen.block(layer, "mlp.act")
        block = seen.theirs.blocks[layer]
        gamma = getattr(block.ls2, "gamma", torch.ones(12))
        for query, token in tokens_of(seen):
            found = seen.walk.units(layer, query, count=4)
            written = (gamma[:, None] * block.mlp.fc2.weight * after[token]).norm(dim=0)  # (units,)
            order = written.argsort(descending=True)[:4]
            assert found.units.tolist() == order.tolist()
            assert found.active == pytest.approx(float((before[token] > 0).double().mean()))
            assert found.count == 48
            close(found.activations, after[token, order])
            close(found.lengths, written[order])
            close(found.maps, after[P:, order].T.reshape(4, *grid))


# 9 and 10


def test_lens(answering):
    found, theirs = answering.walk.lens(), answering.theirs
    streams = [answering.inputs["blocks.0"]]
    streams += [answering.outputs[f"blocks.{layer}"] for layer in range(3)]
    for logits, x in zip(found, streams, strict=True):
        close(logits, theirs.forward_head(theirs.norm(x[None]))[0])
    close(found[-1], answering.logits)


def frozen_logits(seen: Seen, x: torch.Tensor) -> torch.Tensor:
    """The head on another stream x (N, D), the last norm's deviation as it was in the pass."""
    theirs, config, last = seen.theirs, seen.config, seen.outputs["blocks.2"]

    def norm(module, x, was):
        if not isinstance(module, torch.nn.LayerNorm):
            return x
        deviation = (was.var(dim=-1, correction=0, keepdim=True) + module.eps).sqrt()
        return (x - x.mean(dim=-1, keepdim=True)) / deviation * module.weight + module.bias

    x, was = norm(theirs.norm, x, last), theirs.norm(last)
    if config.distilled:
        return (theirs.head(x[0]) + theirs.head_dist(x[1])) / 2
    if config.pool == "avg":
        P = config.prefix_tokens
        x, was = x[P:].mean(dim=0), was[P:].mean(dim=0)
    else:
        x, was = x[0], was[0]
    return theirs.head(norm(theirs.fc_norm, x, was))


def test_the_ledger_adds_up_and_each_entry_is_what_is_missing_without_it(answering):
    seen, last = answering, answering.outputs["blocks.2"]
    close(frozen_logits(seen, last), seen.logits)
    without = {}
    for layer in range(3):
        _, _, v = seen.qkv(layer)
        A, block = seen.attention(layer), seen.theirs.blocks[layer]
        gamma = getattr(block.ls1, "gamma", torch.ones(12))
        for head in range(2):
            W_o = block.attn.proj.weight[:, 6 * head : 6 * head + 6]
            part = gamma * (A[head] @ v[head] @ W_o.T)  # (N, D)
            without[layer, head] = seen.logits - frozen_logits(seen, last - part)
        mlp = seen.block(layer, "ls2")
        without[layer, "mlp"] = seen.logits - frozen_logits(seen, last - mlp)
        bias = (gamma * block.attn.proj.bias).expand_as(last)
        without[layer, "bias"] = seen.logits - frozen_logits(seen, last - bias)
    first = seen.logits - frozen_logits(seen, last - seen.inputs["blocks.0"])
    constant = frozen_logits(seen, torch.zeros_like(last))
    for label in range(4):
        found = seen.walk.ledger(label)
        assert found.total == pytest.approx(float(seen.logits[label]), abs=1e-9)
        assert found.logit == pytest.approx(float(seen.logits[label]), abs=1e-12)
        assert found.embedding == pytest.approx(float(first[label]), abs=1e-9)
        assert found.constant == pytest.approx(float(constant[label]), abs=1e-9)
        for layer in range(3):
            for head in range(2):
                close(found.heads[layer, head], without[layer, head][label], atol=1e-9)
            close(found.mlps[layer], without[layer, "mlp"][label], atol=1e-9)
            close(found.biases[layer], without[layer, "bias"][label], atol=1e-9)


def test_in_float32_the_ledger_adds_up_to_the_logit(answering):
    model = copy.deepcopy(answering.ours).float()
    walk = Inside(model, answering.pixels.float())
    logits = model(answering.pixels.float())[0]
    for label in range(4):
        assert walk.ledger(label).total == pytest.approx(float(logits[label]), abs=1e-4)


def test_answer(answering):
    for label in (None, 0, 3):
        found = answering.walk.answer(label)
        wanted = int(answering.logits.argmax()) if label is None else label
        assert found.label == wanted
        assert float(found.products.sum()) + found.bias == pytest.approx(
            float(answering.logits[wanted]), abs=1e-9
        )
        close(found.weights[0], answering.theirs.head.weight[wanted])
        entering = answering.inputs["head"].reshape(-1, 12)[0]
        close(found.features[0], entering)
        close(found.products, found.features * found.weights / len(found.features))


def test_random_weights_are_those_of_a_model_that_has_unlearnt(answering):
    walk, before = answering.walk, copy.deepcopy(answering.ours.state_dict())
    other, generator = copy.deepcopy(answering.ours), torch.Generator().manual_seed(4)
    for block in other.blocks:
        randomise(block, generator)
    close(walk.random_lens(seed=4), Inside(other, answering.pixels).lens())
    assert (walk.random_lens(seed=4) - walk.random_lens(seed=5)).abs().max() > 1e-3
    for name, tensor in answering.ours.state_dict().items():
        assert torch.equal(tensor, before[name])


# Of a model alone


def test_filters_are_the_axes_along_which_kernels_differ(seen):
    kernels = seen.theirs.patch_embed.proj.weight.flatten(1).numpy()
    found = filters(seen.ours, 6)
    covariance = np.cov(kernels.T, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    np.testing.assert_allclose(found.variance, values[::-1][:6] / values.sum(), rtol=1e-4)
    flat = found.components.flatten(1).numpy()
    np.testing.assert_allclose(np.abs((flat * vectors.T[::-1][:6]).sum(-1)), 1, atol=1e-4)
    np.testing.assert_allclose(flat @ flat.T, np.eye(6), atol=1e-5)


# With the models that people use


def test_the_last_step_is_the_answer_of_explain():
    e = load(DEFAULT, device="cpu").explain(noise(3))
    check_real(e)


def test_deit_tiny(deit_tiny, imagenet_pictures):
    check_real(deit_tiny.explain(imagenet_pictures[0]))


def check_real(e) -> None:
    walk = e.inside()
    assert walk is e.inside()
    torch.testing.assert_close(walk.logits, e.logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(walk.lens()[-1], e.logits, rtol=1e-4, atol=1e-4)
    for p in e.top(3):
        ledger = walk.ledger(p.label)
        assert ledger.total == pytest.approx(float(e.logits[p.index]), abs=1e-4)
    shares = walk.attention(1, 2, (3, 4)).shares
    torch.testing.assert_close(shares, e.attention(1, 2, (3, 4), tokens=True), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(
        walk.heads(1, (3, 4)).shares,
        e.attention(1, None, (3, 4), tokens=True),
        rtol=1e-4,
        atol=1e-6,
    )
    same = walk.shuffle()
    torch.testing.assert_close(same.with_positions, e.logits, rtol=1e-3, atol=1e-3)
    patch = walk.patch((1, 1))
    assert patch.difference < 1e-4


# What is wrong is said


def test_a_model_without_labels_has_eight_steps():
    walk = small_classifier(num_classes=0).explain(noise()).inside()
    assert walk.units(0).maps.shape == (5, 4, 4)
    for question in (walk.lens, walk.random_lens, walk.ledger, walk.answer):
        with pytest.raises(ValueError, match="no label head"):
            question()


@pytest.mark.parametrize(
    "question, message",
    [
        (lambda w: w.attention(9), "There is no layer 9"),
        (lambda w: w.attention(0, 3), "There is no head 3"),
        (lambda w: w.attention(0, 0, (4, 0)), "There is no row 4"),
        (lambda w: w.attention(0, 0, temperature=0), "above 0"),
        (lambda w: w.attention(0, 0, temperature=math.nan), "above 0"),
        (lambda w: w.heads(0, 17), "There is no token 17"),
        (lambda w: w.patch_products(24), "There is no channel 24"),
        (lambda w: w.ledger("cat"), "There is no label 'cat'"),
        (lambda w: w.units(0, count=0), "count is 0"),
        (lambda w: w.shuffle(-1), "seed is -1"),
    ],
)
def test_what_is_not_there(question, message):
    with pytest.raises(ValueError, match=message):
        question(small_classifier().explain(noise()).inside())


def test_what_is_kept_counts_as_memory():
    e = small_classifier().explain(noise())
    before = e.memory
    walk = e.inside()
    assert walk.stream.shape == (7, 17, 24)
    kept = (walk.stream, walk.logits, walk.images)
    assert e.memory - before == sum(tensor.nbytes for tensor in kept)


def test_names_are_labels():
    e = small_classifier().explain(noise())
    assert e.inside().ledger("label 2").label == 2


def test_cosines_of_positions_that_are_zero_are_zero():
    model = small_classifier().model
    model.pos_embed.zero_()
    assert torch.equal(position_similarity(model), torch.zeros(16, 16))
