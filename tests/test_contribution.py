"""Contribution against the sum it promises, in float64, and against numerical differentiation."""

import pytest
import torch
import torch.nn.functional as F
from support.models import WITH_HEAD, small_classifier

from vit_demo import class_maps, explain
from vit_demo.class_maps import (
    attention_gradient_maps,
    contributions,
    linear_pass,
    slope_of_log_p,
)
from vit_demo.export import shown_map
from vit_demo.map_settings import MapSettings
from vit_demo.model import ACTIVATIONS, VisionTransformer, ViTConfig, attention_weights

SIZE = {"image_size": 12, "patch_size": 4, "embed_dim": 12, "depth": 3, "heads": 2}
FAMILIES = WITH_HEAD | {
    "layer scale": {"layer_scale": 0.1, "no_embed_class": True},
    "CLIP": {"pre_norm": True, "activation": "quick_gelu"},
    "tanh": {"activation": "gelu_tanh", "qkv_bias": False},
    "no last norm": {"last_norm": "none"},
    "class token, normalised after pooling": {"last_norm": "pooled"},
    "average of normalised tokens": {"class_token": False, "pool": "avg", "registers": 2},
    "one channel": {"channels": 1},
    "rectangle": {"image_size": (8, 20), "patch_size": (4, 5)},
    "another grid": {"size": (16, 8)},
}
each_family = pytest.mark.parametrize("shape", FAMILIES.values(), ids=FAMILIES.keys())


def model_and_pixels(shape: dict, batch: int = 1) -> tuple[VisionTransformer, torch.Tensor]:
    """Every parameter random and of some size, biases and norms, too; in float64."""
    torch.manual_seed(3)
    shape = dict(shape)
    size = shape.pop("size", None)
    config = ViTConfig(**SIZE | {"num_classes": 4} | shape)
    model = VisionTransformer(config).double().requires_grad_(False).eval()
    for name, parameter in model.named_parameters():
        parameter.copy_(torch.randn(parameter.shape) * (0.5 if "weight" in name else 1))
    pixels = torch.randn(batch, config.channels, *(size or config.image_size), dtype=torch.float64)
    return model, pixels


@each_family
def test_forward_it_is_the_model(shape):
    model, pixels = model_and_pixels(shape, batch=2)
    logits, inputs = linear_pass(model, pixels)
    torch.testing.assert_close(logits, model(pixels), rtol=1e-12, atol=1e-12)
    seen = []
    hooks = [
        b.register_forward_pre_hook(lambda _, args: seen.append(args[0])) for b in model.blocks
    ]
    model(pixels)
    for hook in hooks:
        hook.remove()
    torch.testing.assert_close(inputs, seen, rtol=1e-12, atol=1e-12)


@each_family
def test_at_every_block_inputs_and_biases_add_up_to_the_logit(shape):
    model, pixels = model_and_pixels(shape)
    biases = {n: p.requires_grad_() for n, p in model.named_parameters() if n.endswith("bias")}
    logits, inputs = linear_pass(model, pixels)
    for label in range(4):
        logit = logits[0, label]
        wanted = [*inputs, *biases.values()]
        found = torch.autograd.grad(logit, wanted, retain_graph=True, materialize_grads=True)
        of_inputs, of_biases = found[: len(inputs)], found[len(inputs) :]
        for l, (x, dx) in enumerate(zip(inputs, of_inputs, strict=True)):
            total = (x * dx).sum()
            for name, db in zip(biases, of_biases, strict=True):
                block = int(name.split(".")[1]) if name.startswith("blocks.") else len(inputs)
                if block >= l and not name.startswith(("patch_embed", "norm_pre")):
                    total = total + (biases[name] * db).sum()
            scale = max(1.0, abs(logit.item()))
            assert abs((total - logit).item()) < 1e-10 * scale


def frozen(model: VisionTransformer, pixels: torch.Tensor):
    """The pass with its factors as they were found in the plain one: (block inputs, a function from
    the input of block l to the logits). Written with matrices, apart from `linear_pass`."""
    attentions, scales, gates, inputs = [], {}, [], []

    def attend(q, k, v):
        attentions.append(attention_weights(q, k))
        return attentions[-1] @ v

    def keep_scale(module, args):
        centred = args[0] - args[0].mean(dim=-1, keepdim=True)
        scales[module] = 1 / (centred.pow(2).mean(dim=-1, keepdim=True) + module.eps).sqrt()

    def keep_gate(module, args, out):
        gates.append(ACTIVATIONS[model.config.activation](out) / out)

    hooks = [
        m.register_forward_pre_hook(keep_scale)
        for m in model.modules()
        if isinstance(m, torch.nn.LayerNorm)
    ]
    hooks += [b.register_forward_pre_hook(lambda _, a: inputs.append(a[0])) for b in model.blocks]
    hooks += [block.mlp.fc1.register_forward_hook(keep_gate) for block in model.blocks]
    model(pixels, attend)
    for hook in hooks:
        hook.remove()

    def norm(module, x):
        if module not in scales:
            return x
        return (x - x.mean(dim=-1, keepdim=True)) * scales[module] * module.weight + module.bias

    def logits_from(l: int, x: torch.Tensor) -> torch.Tensor:
        for index in range(l, len(model.blocks)):
            block = model.blocks[index]
            v = block.attn.qkv(norm(block.norm1, x))[..., 2 * x.shape[-1] :]
            heads = v.unflatten(-1, (model.config.heads, -1)).transpose(1, 2)
            seen = (attentions[index] @ heads).transpose(1, 2).flatten(2)
            x = x + block.ls1(block.attn.proj(seen))
            x = x[:, : gates[index].shape[1]]  # of the last block, only the tokens that answer
            hidden = block.mlp.fc1(norm(block.norm2, x)) * gates[index]
            x = x + block.ls2(block.mlp.fc2(hidden))
        x = norm(model.norm, x)
        if model.config.distilled:
            return (model.head(x[:, 0]) + model.head_dist(x[:, 1])) / 2
        patches = x[:, model.config.prefix_tokens :]
        x = patches.mean(dim=1) if model.config.pool == "avg" else x[:, 0]
        return model.head(norm(model.fc_norm, x))

    return inputs, logits_from


@each_family
def test_maps_against_numerical_differentiation(shape):
    """log p, and the difference of two labels, of the function whose factors are constants."""
    model, pixels = model_and_pixels(shape)
    inputs, logits_from = frozen(model, pixels)
    questions = {
        "log p": lambda z: z.log_softmax(dim=-1)[:, 2],
        "difference": lambda z: z[:, 2] - z[:, 0],
    }
    wanted, eps = torch.tensor([[2]]), 1e-5
    got = {
        "log p": contributions(model, pixels, wanted),
        "difference": contributions(model, pixels, wanted, torch.tensor([[0]])),
    }
    for name, question in questions.items():
        expected = 0
        for l, x in enumerate(inputs):
            nudges = eps * torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape[1:])
            with torch.no_grad():
                up, down = (question(logits_from(l, x + way * nudges)) for way in (1, -1))
            slopes = ((up - down) / (2 * eps)).reshape(x.shape)
            expected = expected + (x * slopes).sum(dim=-1)
        assert got[name].shape == (1, *expected.shape) and got[name].dtype == torch.float32
        close = {"rtol": 1e-5, "atol": 1e-5 * float(expected.abs().max())}
        torch.testing.assert_close(got[name][0].double(), expected, **close)


def test_pictures_of_a_batch_and_questions_do_not_see_each_other():
    model, pixels = model_and_pixels({"distilled": True}, batch=2)
    classes = torch.tensor([[1, 3], [0, 2]])
    both = contributions(model, pixels, classes)
    for question in range(2):
        for b in range(2):
            alone = contributions(model, pixels[b : b + 1], classes[question, b].reshape(1, 1))
            torch.testing.assert_close(both[question, b], alone[0, 0])


def test_a_certain_answer_still_has_a_slope():
    """p = 1 - 2e-8 is 1 in float32; the slope of log p must not be rounded to zero."""
    logits = torch.tensor([[20.0, 2.0, 0.0], [0.0, 1.0, 2.0]])
    classes = torch.tensor([0, 1])
    exact = logits.double().requires_grad_()
    chosen = exact.log_softmax(dim=-1).gather(1, classes[:, None]).sum()
    expected = torch.autograd.grad(chosen, exact)[0]
    got = slope_of_log_p(logits, classes)
    torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=0)
    assert got[0, 0] > 0


# As a question to an explanation


@pytest.mark.parametrize("shape", WITH_HEAD.values(), ids=WITH_HEAD.keys())
def test_an_explanation_gives_maps_tokens_and_lists(shape, picture):
    explanation = small_classifier(**{k: v for k, v in shape.items() if k != "size"}).explain(
        picture
    )
    classifier, P = explanation.classifier, explanation.config.prefix_tokens
    vectors = explanation.contribution(["label 1", None, 3], tokens=True)
    classes = torch.tensor([[1], [explanation.label_index()], [3]])
    expected = contributions(classifier.model, explanation.pixels, classes)[:, 0]
    torch.testing.assert_close(vectors, expected)
    maps = explanation.contribution([1, None, 3])
    assert maps.shape == (3, *explanation.grid) and (maps < 0).any() and (maps > 0).any()
    torch.testing.assert_close(maps.flatten(1), vectors[:, P:])
    torch.testing.assert_close(explanation.contribution(3), maps[2])


def test_native_grids_have_contributions_too(picture):
    explanation = small_classifier().explain(picture, fit="native")
    assert explanation.grid != explanation.config.grid
    assert explanation.contribution().shape == explanation.grid


def test_minus_is_one_pass_back_and_the_difference_of_the_maps(picture, monkeypatch):
    explanation, passes, gradients = small_classifier().explain(picture), [], []
    forward, backward = class_maps.linear_pass, torch.autograd.grad
    monkeypatch.setattr(class_maps, "linear_pass", lambda *a: [passes.append(1), forward(*a)][1])
    monkeypatch.setattr(
        torch.autograd, "grad", lambda *a, **k: [gradients.append(1), backward(*a, **k)][1]
    )
    difference = explanation.contribution("label 3", minus=1, tokens=True)
    assert len(passes) == len(gradients) == 1
    apart = explanation.contribution(3, tokens=True) - explanation.contribution(1, tokens=True)
    torch.testing.assert_close(difference, apart, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(explanation.contribution(1, 3, tokens=True), -difference)
    several = explanation.contribution([3, 0], minus=1)
    torch.testing.assert_close(several[0], explanation.as_map(difference))
    settings = MapSettings(map="contribution", label=3, minus=1)
    torch.testing.assert_close(shown_map(explanation, settings), explanation.as_map(difference))
    with pytest.raises(ValueError, match="no label 9"):
        explanation.contribution(3, minus=9)


def test_contribution_and_relevance_do_without_each_others_pass(picture, monkeypatch):
    def never(*args):
        raise AssertionError("this pass was not asked for")

    explanation = small_classifier().explain(picture)
    with monkeypatch.context() as patch:
        patch.setattr(explain, "attention_gradient_maps", never)
        first = explanation.contribution([2, 0])
    with monkeypatch.context() as patch:
        patch.setattr(explain, "contributions", never)
        relevance = explanation.relevance(2)
        assert torch.equal(explanation.contribution([2, 0]), first)  # remembered
        explanation.contribution(2).zero_(), explanation.contribution(2, tokens=True).zero_()
        assert torch.equal(explanation.contribution(2), first[0])
    monkeypatch.setattr(explain, "attention_gradient_maps", never)
    assert torch.equal(explanation.relevance(2), relevance)


@pytest.mark.parametrize("around", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_no_gradient_state_is_left_behind(around, picture):
    classifier = small_classifier()
    weights = {name: p.clone() for name, p in classifier.model.named_parameters()}
    expected = classifier.explain(picture).contribution(2)
    with around():
        was = torch.is_grad_enabled()
        heat = classifier.explain(picture).contribution(2)
        assert torch.is_grad_enabled() == was
    torch.testing.assert_close(heat, expected)
    assert not heat.requires_grad and heat.device.type == "cpu"
    for name, p in classifier.model.named_parameters():
        assert p.grad is None and not p.requires_grad and torch.equal(p, weights[name])


def test_a_model_in_training_keeps_its_gradients():
    model = small_classifier().model.requires_grad_(True)
    model(torch.randn(1, 3, 32, 32)).sum().backward()
    before = {name: p.grad.clone() for name, p in model.named_parameters()}
    contributions(model, torch.randn(1, 3, 32, 32), torch.tensor([[0]]))
    for name, p in model.named_parameters():
        assert p.requires_grad and torch.equal(p.grad, before[name])


def test_a_headless_model_says_that_it_has_no_classes(picture):
    explanation = small_classifier(num_classes=0).explain(picture)
    for ask in (explanation.contribution, lambda: explanation.contribution(0, minus=1)):
        with pytest.raises(ValueError, match="maps only"):
            ask()


def test_it_keeps_less_for_the_way_back_than_relevance():
    """Bytes that the graph holds between forward and backward, at DeiT-tiny's shape."""
    config = ViTConfig(image_size=224, embed_dim=192, depth=2, heads=3, num_classes=5)
    model = VisionTransformer(config).requires_grad_(False)
    pixels, classes = torch.randn(1, 3, 224, 224), torch.tensor([[1]])

    def held(question) -> int:
        kept = {}

        def keep(tensor):
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            question()
        weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
        return sum(size for place, size in kept.items() if place not in weights)

    ours = held(lambda: contributions(model, pixels, classes))
    theirs = held(lambda: attention_gradient_maps(model, pixels, classes, slice(0, 1)))
    assert 0 < ours < theirs


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gates_are_those_of_the_activations(name):
    x = torch.linspace(-30, 30, 2001, dtype=torch.float64)
    gated = x * class_maps.GATES[name](x)
    torch.testing.assert_close(gated, ACTIVATIONS[name](x), rtol=1e-12, atol=1e-15)


def test_real_weights_give_the_plain_logits(deit_tiny, imagenet_pictures):
    explanation = deit_tiny.explain(imagenet_pictures[4])
    logits, inputs = linear_pass(deit_tiny.model, explanation.pixels)
    assert len(inputs) == 12
    torch.testing.assert_close(logits[0].detach(), explanation.logits, rtol=1e-4, atol=1e-4)
    assert F.cosine_similarity(logits[0], explanation.logits, dim=0) > 1 - 1e-6
