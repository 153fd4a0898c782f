"""Explanations against timm's own attention, read with hooks and multiplied out in float64."""

from copy import deepcopy

import pytest
import timm
import torch
from PIL import Image
from support.models import SHAPES, small_classifier

import vit_demo
from vit_demo.model import readout_tokens


@torch.inference_mode()
def attention_by_hooks(model: torch.nn.Module, pixels: torch.Tensor) -> torch.Tensor:
    """(L, h, N, N) in float64, from hooks on timm's unfused attention."""
    kept = []
    for block in model.blocks:
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_hook(lambda module, args, out: kept.append(out[0]))
    model(pixels)
    return torch.stack(kept).double()


def product(matrices: torch.Tensor, residual: float) -> torch.Tensor:
    eye = torch.eye(matrices.shape[-1], dtype=torch.float64)
    R = eye
    for A in matrices:
        R = ((1 - residual) * A + residual * eye) @ R
    return R


def test_real_weights_give_timms_logits(deit_tiny, reference, imagenet_pictures):
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(reference))
    for path in imagenet_pictures[:4]:
        pixels = transform(Image.open(path).convert("RGB"))[None]
        with torch.inference_mode():
            expected = reference(pixels.double())[0].float()
        explanation = deit_tiny.explain(path)
        assert (explanation.logits - expected).abs().max() < 1e-4


def test_the_labelled_pictures_are_recognised(deit_tiny, imagenet_pictures):
    assert len(imagenet_pictures) == 20
    synsets = timm.data.ImageNetInfo().label_names()
    first = tenth = 0
    for path in imagenet_pictures:
        truth = synsets.index(path.name.partition("_")[0])
        answers = [p.index for p in deit_tiny.classify(path)]
        assert len(answers) == 10
        first += answers[0] == truth
        tenth += truth in answers
    assert first >= 19 and tenth == 20


@pytest.mark.parametrize("fit", ["crop", "native"])
def test_maps_of_real_weights_equal_the_full_formula(deit_tiny, reference, imagenet_pictures, fit):
    from vit_demo.view import to_tensor

    explanation = deit_tiny.explain(imagenet_pictures[4], fit)
    rows, cols = explanation.grid
    if fit == "native":
        assert rows != cols
        reference = deepcopy(reference)  # shared by all tests
        reference.set_input_size(explanation.view.picture.size[::-1])
    pixels = to_tensor(explanation.view, deit_tiny.preprocess).double()
    A = attention_by_hooks(reference, pixels)
    mean, N = A.mean(dim=1), A.shape[-1]
    eye = torch.eye(N, dtype=torch.float64)
    close = {"atol": 1e-5, "rtol": 0, "check_dtype": False}

    for residual in (0.0, 0.3, 0.5):
        expected = product(mean, residual)[0]
        got = explanation.rollout(residual=residual, tokens=True)
        torch.testing.assert_close(got, expected, **close)
        assert explanation.rollout(residual=residual).shape == (rows, cols)
    expected = product(mean[2:9], 0.5)[0, 1:].reshape(rows, cols)
    torch.testing.assert_close(explanation.rollout(8, start=2), expected, **close)

    maps = explanation.head_rollouts(None, tokens=True)
    same = explanation.head_rollouts(None, below="same", tokens=True)
    assert maps.shape == same.shape == (12, 3, N)
    for layer in (0, 5, 11):
        below = product(mean[:layer], 0.5) if layer else eye
        for head in range(3):
            expected = (0.5 * A[layer, head, 0] + 0.5 * eye[0]) @ below
            torch.testing.assert_close(maps[layer, head], expected, **close)
            expected = product(A[: layer + 1, head], 0.5)[0]
            torch.testing.assert_close(same[layer, head], expected, **close)
        upto = explanation.rollout(layer, tokens=True)
        torch.testing.assert_close(maps[layer].mean(dim=0), upto, atol=1e-6, rtol=0)
        torch.testing.assert_close(explanation.head_rollouts(layer, tokens=True), maps[layer])
        every = explanation.rollout(None, tokens=True)
        assert every.shape == (12, N)
        torch.testing.assert_close(every[layer], product(mean[: layer + 1], 0.5)[0], **close)
    later = explanation.rollout(None, start=4, residual=0.3, tokens=True)  # up to 4, 5, .. 11
    for layer in (4, 9, 11):
        expected = product(mean[4 : layer + 1], 0.3)[0]
        torch.testing.assert_close(later[layer - 4], expected, **close)

    for fusion in ("max", "min"):
        fused = getattr(A, f"a{fusion}")(dim=1)
        fused = fused / fused.sum(dim=-1, keepdim=True)
        got = explanation.rollout(fusion=fusion, tokens=True)
        torch.testing.assert_close(got, product(fused, 0.5)[0], **close)

    patch = 1 + 3 * cols + 4
    expected = A[7, 1, patch, 1:].reshape(rows, cols)
    torch.testing.assert_close(explanation.attention(7, 1, (3, 4)), expected, **close)
    expected = A[7, 1, 1:, patch].reshape(rows, cols)
    got = explanation.attention(7, 1, (3, 4), direction="to")
    torch.testing.assert_close(got, expected, **close)
    expected = product(mean, 0.5)[patch]
    torch.testing.assert_close(explanation.rollout(query=(3, 4), tokens=True), expected, **close)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_every_kind_of_readout(shape, picture):
    classifier = small_classifier(**shape)
    explanation = classifier.explain(picture)
    A = torch.stack([explanation.layer_attention(layer) for layer in range(3)]).double()
    N, P = A.shape[-1], classifier.config.prefix_tokens
    readout = torch.zeros(N, dtype=torch.float64)
    readout[P:] = readout[P:] + 1 / 16 if classifier.config.pool == "avg" else 0
    if classifier.config.pool == "token":
        readout[:1] = 1
    if classifier.config.distilled:
        readout[:2] = 0.5
    assert readout.sum() == 1
    expected = readout @ product(A.mean(dim=1), 0.5)
    close = {"atol": 1e-5, "rtol": 0, "check_dtype": False}
    torch.testing.assert_close(explanation.rollout(tokens=True), expected, **close)
    assert explanation.prefix_mass == pytest.approx(expected[:P].sum().item(), abs=1e-6)
    total = explanation.rollout().sum().item() + explanation.prefix_mass
    assert total == pytest.approx(1, abs=1e-5)
    raw = torch.einsum("n,hnm->hm", readout, A[1])
    torch.testing.assert_close(explanation.attention(1, tokens=True), raw, **close)
    mean = explanation.head_rollouts(2).mean(dim=0)
    torch.testing.assert_close(mean, explanation.rollout(2), atol=1e-6, rtol=0)
    for below in ("mean", "same"):
        for discard in (0.0, 0.6):
            maps = explanation.head_rollouts(None, below=below, discard=discard, tokens=True)
            torch.testing.assert_close(maps.sum(-1), torch.ones(3, 3), atol=1e-5, rtol=0)
    assert readout_tokens(classifier.config).start == (P if classifier.config.pool == "avg" else 0)


def test_discard_in_a_rollout_equals_the_formula(picture):
    explanation = small_classifier().explain(picture)
    mean = torch.stack([explanation.attention(layer, "mean", token, tokens=True)
                        for layer in range(3) for token in range(17)])  # fmt: skip
    mean = mean.reshape(3, 17, 17).double()
    for layer, A in enumerate(mean):
        for i in range(17):
            free = [j for j in range(17) if j not in (0, i)]
            gone = sorted(free, key=lambda j, row=A[i]: row[j].item())[: int(len(free) * 0.5)]
            mean[layer, i, gone] = 0
        mean[layer] /= mean[layer].sum(dim=-1, keepdim=True)
    got = explanation.rollout(discard=0.5, tokens=True)
    torch.testing.assert_close(got, product(mean, 0.5)[0].float(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("query", [None, (1, 2)])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_special_about_a_head_is_its_rollout_without_that_of_all(picture, shape, query):
    explanation = small_classifier(**SHAPES[shape]).explain(picture)
    for layer in range(explanation.layers):
        special = explanation.head_rollouts(layer, query=query, part="special")
        whole = explanation.head_rollouts(layer, query=query)
        everyone = explanation.rollout(layer, query=query)
        torch.testing.assert_close(special, whole - everyone, atol=1e-6, rtol=0)
        torch.testing.assert_close(special.sum(0), torch.zeros(explanation.grid), atol=1e-6, rtol=0)
    with pytest.raises(ValueError, match="part is 'half'; use one of whole, special"):
        explanation.head_rollouts(part="half")


def test_one_pass_keeps_little_and_no_full_block(picture):
    classifier = small_classifier(image_size=128)
    explanation = classifier.explain(picture)
    L, h, N, D = 3, 3, 257, 24
    numbers, pixels = L * N * D + (L - 1) * N * N + L * h * N + 5, 128 * 128 + 60 * 40
    assert explanation.memory == 4 * (numbers + pixels)
    explanation.contribution(2)  # remembered, too
    assert explanation.memory == 4 * (numbers + pixels + N)
    tensors = [*explanation.recording.tensors, explanation.logits]
    assert not [name for name, value in vars(explanation).items()
                if isinstance(value, torch.Tensor) and name != "logits"]  # fmt: skip
    assert sum(tensor.untyped_storage().nbytes() for tensor in tensors) == 4 * numbers
    calls = []
    classifier.model.forward = lambda *a, **k: calls.append(1)
    explanation.rollout(fusion="max"), explanation.head_rollouts(None), explanation.top(3)
    assert not calls
    numbers += (
        L * N * D
    )  # every layer's queries and keys are there now, in place of what entered it
    assert explanation.memory == 4 * (numbers + pixels + N)


def test_maps_are_cpu_float32_and_safe_to_change(picture):
    explanation = small_classifier().explain(picture)
    for maps in (explanation.rollout(), explanation.head_rollouts(), explanation.attention(0, 1)):
        assert maps.device.type == "cpu" and maps.dtype == torch.float32
        before = explanation.rollout()
        maps.zero_()
        torch.testing.assert_close(explanation.rollout(), before)


def test_top_is_the_softmax_sorted(picture):
    explanation = small_classifier().explain(picture)
    expected = explanation.logits.softmax(0)
    top = explanation.top(3)
    assert [p.index for p in top] == expected.argsort(descending=True)[:3].tolist()
    assert top[0].label == f"label {top[0].index}"
    assert top[0].probability == pytest.approx(expected.max().item())
    assert len(explanation.top(99)) == 5


def test_a_batch_gives_each_picture_its_own_maps(picture):
    classifier = small_classifier()
    other = picture.transpose(Image.Transpose.ROTATE_180)
    views = [classifier.view(p) for p in (picture, other)]
    both = classifier.explain_views(views)
    for explanation, source in zip(both, (picture, other), strict=True):
        alone = classifier.explain(source)
        torch.testing.assert_close(explanation.logits, alone.logits, atol=1e-5, rtol=0)
        got, expected = explanation.head_rollouts(None), alone.head_rollouts(None)
        torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


def test_a_headless_model_gives_maps_and_says_that_it_has_no_labels(picture):
    classifier = small_classifier(num_classes=0)
    explanation = classifier.explain(picture)
    assert explanation.rollout().shape == (4, 4)
    for ask in (lambda: explanation.top(3), lambda: classifier.classify(picture)):
        with pytest.raises(ValueError, match="maps only"):
            ask()


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (lambda e: e.rollout(layer=3), "no layer 3; use 0 to 2"),
        (lambda e: e.rollout(layer=0, start=2), "start 2 lies above layer 0"),
        (lambda e: e.rollout(residual=1.5), "0 to 1"),
        (lambda e: e.rollout(residual=float("nan")), "0 to 1"),
        (lambda e: e.rollout(fusion="sum"), "mean, max, min"),
        (lambda e: e.rollout(discard=1.0), "below, 1"),
        (lambda e: e.attention(0, 7), "no head 7"),
        (lambda e: e.attention(0, "sum"), "mean, max or min"),
        (lambda e: e.attention(0, 0, (4, 0)), "no row 4"),
        (lambda e: e.attention(0, 0, (0, 9)), "no column 9"),
        (lambda e: e.attention(0, 0, 17), "no token 17"),
        (lambda e: e.attention(0, 0, direction="up"), '"from" or "to"'),
        (lambda e: e.head_rollouts(below="max"), '"mean" or "same"'),
        (lambda e: e.top(0), "1 label or more"),
    ],
)
def test_wrong_questions_say_what_is_possible(picture, question, words):
    with pytest.raises(ValueError, match=words):
        question(small_classifier().explain(picture))


def test_an_unknown_device_is_named():
    with pytest.raises(ValueError, match="auto, cpu, cuda or mps"):
        vit_demo.explain.choose_device("toaster")


def test_without_a_name_it_is_the_embedded_model_of_photographs():
    assert vit_demo.load(device="cpu").name == "vit-photos"
