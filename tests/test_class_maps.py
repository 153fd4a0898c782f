"""Class maps against full matrices, numerical differentiation and timm's own model in float64."""

import pytest
import torch
from hypothesis import given
from PIL import Image
from support.attention import FAST, random_attention, seeds, shapes
from support.models import WITH_HEAD, small_classifier

from vit_demo import attention
from vit_demo.class_maps import ATTENTION_GRADIENT_MAPS, attention_gradient_maps
from vit_demo.labels import find_label
from vit_demo.model import VisionTransformer, ViTConfig, attention_weights, readout_tokens
from vit_demo.view import to_tensor

CLOSE = {"rtol": 1e-4, "check_dtype": False}


def full_relevance(A, dA) -> torch.Tensor:
    """R = R + Abar @ R, from the first layer up, as the paper has it."""
    R = torch.eye(A.shape[-1], dtype=torch.float64)
    for weights, gradient in zip(A, dA, strict=True):
        R = R + (weights * gradient).clamp(min=0).mean(dim=0) @ R
    return R


def full_gradient_rollout(A, dA) -> torch.Tensor:
    N = A.shape[-1]
    eye = R = torch.eye(N, dtype=torch.float64)
    for weights, gradient in zip(A, dA, strict=True):
        fused = (weights * gradient).mean(dim=0).clamp(min=0)
        for i in range(N):
            fused[i] = fused[i] / fused[i].sum() if fused[i].sum() > 0 else eye[i]
        R = (fused + eye) / 2 @ R
    return R


def full_maps(A, dA, readout: torch.Tensor, P: int) -> dict[str, torch.Tensor]:
    """All three maps from (L, h, N, N) tensors, in plain loops."""
    cam = 0
    for weights, gradient in zip(A[-1], dA[-1], strict=True):
        cam = cam + (readout @ weights) * (readout @ gradient)[P:].mean() / len(A[-1])
    return {
        "relevance": readout @ full_relevance(A, dA),
        "gradient_rollout": readout @ full_gradient_rollout(A, dA),
        "grad_cam": cam.clamp(min=0),
    }


@FAST
@given(shapes, seeds)
def test_the_row_from_the_top_is_the_row_of_the_full_product(shape, seed):
    A = random_attention(shape, seed)
    dA = torch.randn(A.shape, generator=torch.Generator().manual_seed(seed + 1)).double()
    N = shape[2]
    for tokens in (slice(0, 1), slice(0, 2), slice(1, None)):
        readout = attention.token_mean(tokens, N, torch.float64)
        expected = full_maps(A, dA, readout, 1)
        got = {
            "relevance": attention.relevance(A, dA, readout),
            "gradient_rollout": attention.gradient_rollout(A, dA, readout),
            "grad_cam": attention.grad_cam(A[-1], dA[-1], readout, 1),
        }
        for name in ATTENTION_GRADIENT_MAPS:
            torch.testing.assert_close(got[name], expected[name])
    batch = [layer.expand(2, *layer.shape) for layer in A], [g.expand(2, *g.shape) for g in dA]
    torch.testing.assert_close(
        attention.relevance(*batch, readout)[1], attention.relevance(A, dA, readout)
    )


def test_real_weights_give_the_maps_of_timms_model_in_float64(
    deit_tiny,
    reference,
    imagenet_pictures,
):
    explanation = deit_tiny.explain(imagenet_pictures[4])
    A = []

    def keep(module, args, out):
        out.requires_grad_()
        A.append(out)

    hooks = []
    for block in reference.blocks:
        block.attn.fused_attn = False
        hooks.append(block.attn.attn_drop.register_forward_hook(keep))
    logits = reference(to_tensor(explanation.view, deit_tiny.preprocess).double())
    for hook in hooks:
        hook.remove()
    second = explanation.top(2)[1].index
    readout = attention.token_mean(slice(0, 1), 197, torch.float64)
    for index in (None, second, 717):
        wanted = int(logits.argmax()) if index is None else index
        dA = torch.autograd.grad(logits[0, wanted], A, retain_graph=True)
        layers = torch.stack([a.detach()[0] for a in A]), torch.stack(dA)[:, 0]
        expected = full_maps(*layers, readout, 1)
        for name in ATTENTION_GRADIENT_MAPS:
            got = getattr(explanation, name)(index, tokens=True)
            largest = expected[name][1:].max().clamp(min=1e-12)  # Grad-CAM may be all zero
            worst = (got - expected[name])[1:].abs().max() / largest
            assert worst < 1e-4, (name, index, worst)
            heat = getattr(explanation, name)(index)
            assert heat.shape == (14, 14) and heat.dtype == torch.float32
            torch.testing.assert_close(heat.flatten(), got[1:])


class Nudge:
    """Adds eps to one entry of one layer's attention."""

    def __init__(self, layer: int, entry: tuple, eps: float):
        self.layer, self.entry, self.eps, self.seen = layer, entry, eps, 0

    def __call__(self, q, k, v):
        A = attention_weights(q, k)
        self.seen += 1
        if self.seen - 1 == self.layer:
            A[self.entry] += self.eps
        return A @ v


@pytest.mark.parametrize("shape", WITH_HEAD.values(), ids=WITH_HEAD.keys())
def test_toy_model_against_numerical_differentiation(shape):
    """Two layers, two pictures: each entry's gradient belongs to its own layer and picture."""
    torch.manual_seed(1)
    size = {"image_size": 4, "patch_size": 2, "embed_dim": 8, "depth": 2, "heads": 2}
    config = ViTConfig(**size, num_classes=3, **shape)
    model = VisionTransformer(config).double().requires_grad_(False)
    for block in model.blocks:
        block.attn.qkv.weight.mul_(30)
        block.attn.proj.weight.mul_(30)
    pixels = torch.randn(2, 3, 4, 4, dtype=torch.float64)
    classes = torch.tensor([[2, 0], [1, 1]])
    A = []

    def attend(q, k, v):
        A.append(attention_weights(q, k))
        return A[-1] @ v

    model(pixels, attend=attend)
    A = torch.stack(A, dim=1)  # (B, L, h, N, N)
    N, eps = A.shape[-1], 1e-5
    slopes = torch.zeros(*A.shape, 3, dtype=torch.float64)  # of every logit
    for layer in range(2):
        for h in range(2):
            for i in range(N):
                for j in range(N):
                    entry = (slice(None), h, i, j)
                    up, down = (model(pixels, Nudge(layer, entry, e)) for e in (eps, -eps))
                    slopes[:, layer, h, i, j] = (up - down) / (2 * eps)
    tokens = readout_tokens(config)
    readout = attention.token_mean(tokens, N, torch.float64)
    got = attention_gradient_maps(model, pixels, classes, tokens)
    for question in range(2):
        for b in range(2):
            dA = slopes[b, ..., classes[question, b]]
            expected = full_maps(A[b], dA, readout, config.prefix_tokens)
            for name in ATTENTION_GRADIENT_MAPS:
                torch.testing.assert_close(
                    got[name][question, b], expected[name], atol=1e-6, **CLOSE
                )


@pytest.mark.parametrize("shape", WITH_HEAD.values(), ids=WITH_HEAD.keys())
def test_every_kind_of_readout_and_a_batch(shape, picture):
    classifier = small_classifier(**shape)
    pictures = [picture, picture.transpose(Image.Transpose.ROTATE_180)]
    pixels = torch.cat([to_tensor(classifier.view(p), classifier.preprocess) for p in pictures])
    readout = readout_tokens(classifier.config)
    both = attention_gradient_maps(classifier.model, pixels, torch.tensor([[4, 1]]), readout)
    for i, (p, label) in enumerate(zip(pictures, (4, 1), strict=True)):
        explanation = classifier.explain(p)
        for name in ATTENTION_GRADIENT_MAPS:
            got = getattr(explanation, name)(label, tokens=True)
            assert got.shape == (16 + classifier.config.prefix_tokens,)
            assert torch.isfinite(got).all() and (got >= 0).all()
            torch.testing.assert_close(both[name][0, i], got, atol=1e-6, **CLOSE)
        total = explanation.gradient_rollout(label, tokens=True).sum().item()
        assert total == pytest.approx(1, abs=1e-5)


def test_several_labels_share_one_forward_pass(picture):
    classifier = small_classifier()
    explanation, alone = classifier.explain(picture), classifier.explain(picture)
    passes = []
    handle = classifier.model.register_forward_hook(lambda *_: passes.append(1))
    maps = explanation.relevance(["label 1", None, 3])
    assert maps.shape == (3, 4, 4) and len(passes) == 1
    explanation.grad_cam(3), explanation.gradient_rollout("label 1"), explanation.relevance()
    assert len(passes) == 1
    handle.remove()
    best = alone.top(1)[0].index
    for heat, label in zip(maps, (1, best, 3), strict=True):
        torch.testing.assert_close(heat, alone.relevance(label))
    before = alone.relevance(1)
    alone.relevance(1).zero_(), alone.relevance(1, tokens=True).zero_()
    torch.testing.assert_close(alone.relevance(1), before)


@pytest.mark.parametrize("around", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_no_gradient_state_is_left_behind(around, picture):
    classifier = small_classifier()
    weights = {name: p.clone() for name, p in classifier.model.named_parameters()}
    expected = classifier.explain(picture).relevance(2)
    with around():
        explanation = classifier.explain(picture)
        was = torch.is_grad_enabled()
        heat = explanation.relevance(2)
        assert torch.is_grad_enabled() == was
    torch.testing.assert_close(heat, expected)
    assert not heat.requires_grad and heat.device.type == "cpu"
    for name, p in classifier.model.named_parameters():
        assert p.grad is None and not p.requires_grad and torch.equal(p, weights[name])


def test_a_model_in_training_keeps_its_gradients(picture):
    model = small_classifier().model.requires_grad_(True)
    model(torch.randn(1, 3, 32, 32)).sum().backward()
    before = {name: p.grad.clone() for name, p in model.named_parameters()}
    attention_gradient_maps(model, torch.randn(1, 3, 32, 32), torch.tensor([[0]]), slice(0, 1))
    for name, p in model.named_parameters():
        assert p.requires_grad and torch.equal(p.grad, before[name])


def test_a_headless_model_says_that_it_has_no_classes(picture):
    explanation = small_classifier(num_classes=0).explain(picture)
    for name in ATTENTION_GRADIENT_MAPS:
        with pytest.raises(ValueError, match="maps only"):
            getattr(explanation, name)()


def test_labels_are_found_by_number_text_or_name():
    labels = ["tabby, tabby cat", "Egyptian cat", "crane", "crane, wading bird", "Cat"]
    assert find_label(labels, 3) == 3
    assert find_label(labels, "tabby, tabby cat") == 0
    assert find_label(labels, "Tabby Cat") == find_label(labels, "tabby") == 0
    assert find_label(labels, "egyptian CAT ") == 1
    assert find_label(labels, "crane") == 2  # exact
    assert find_label(labels, "cat") == 4
    assert find_label(labels, "wading bird") == 3
    with pytest.raises(ValueError, match=r"Several labels are called 'Crane'.*2 \(crane\), 3"):
        find_label(labels, "Crane")
    with pytest.raises(ValueError, match="no label 'egyptan cat'. The closest: Egyptian cat"):
        find_label(labels, "egyptan cat")
    with pytest.raises(ValueError, match="no label 5; use 0 to 4"):
        find_label(labels, 5)
    with pytest.raises(ValueError, match="no label ''"):
        find_label(labels, "")
