"""Names and files: what loads is right, what does not says why."""

import argparse
import json
import os
import pickle

import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from support.timm import NAME, same_logits

import vit_demo
from vit_demo.checkpoints import load_checkpoint, save_checkpoint
from vit_demo.checkpoints.timm_models import supported_timm
from vit_demo.checkpoints.weights import METADATA_KEY, CheckpointError, read_weights
from vit_demo.model import VisionTransformer, ViTConfig
from vit_demo.view import Preprocess


def small_model() -> VisionTransformer:
    torch.manual_seed(0)
    shape = {"image_size": (16, 24), "patch_size": 8, "embed_dim": 12, "depth": 2, "heads": 3}
    return VisionTransformer(ViTConfig(**shape, num_classes=3, registers=1, layer_scale=0.1)).eval()


# timm names


def test_a_timm_name_brings_weights_labels_and_preprocessing(own_folder):
    reference = timm.create_model(NAME)
    save_file(reference.state_dict(), own_folder / f"{NAME}.safetensors")
    checkpoint = load_checkpoint(NAME)
    assert checkpoint.name == NAME
    assert same_logits(checkpoint.model, reference)
    data = timm.data.resolve_model_data_config(reference)
    assert checkpoint.preprocess == Preprocess(
        size=(224, 224),
        mean=data["mean"],
        std=data["std"],
        interpolation=data["interpolation"],
        crop_pct=data["crop_pct"],
        crop_mode=data["crop_mode"],
    )
    assert checkpoint.labels == timm.data.ImageNetInfo().label_descriptions()
    # without its tag, a name means timm's own default
    assert load_checkpoint("vit_tiny_patch16_224").name == NAME


@pytest.mark.parametrize(
    ("name", "labels", "first"),
    [
        ("vit_tiny_patch16_224.augreg_in21k", 21843, "organism"),
        ("vit_medium_patch16_gap_240.sw_in12k", 11821, None),
        ("vit_base_patch16_224_miil.in21k", 11221, None),
        ("vit_small_patch14_reg4_dinov2.lvd142m", 0, None),
        ("vit_base_patch16_clip_224.openai", 0, None),  # a projection is not a label head
    ],
)
def test_labels_come_from_the_right_subset(own_folder, monkeypatch, name, labels, first):
    create = timm.create_model
    monkeypatch.setattr(timm, "create_model", lambda *a, **k: create(*a, **{"depth": 1} | k))
    with torch.device("cpu"):
        weights = create(name, depth=1).state_dict()
    save_file(weights, own_folder / f"{name}.safetensors")
    checkpoint = load_checkpoint(name)
    assert len(checkpoint.labels) == checkpoint.model.config.num_classes == labels
    if first:
        assert first in checkpoint.labels[0]


def test_every_supported_name_is_recognised_and_counted():
    names = supported_timm()
    counted = [
        name
        for name, labels in names.items()
        if labels and not name.startswith(("flexivit", "test_vit", "eva_large"))
    ]
    assert len(counted) == 119 and sum(names[name] == 1000 for name in counted) == 97
    headless = (
        "vit_small_patch16_224.dino",
        "vit_base_patch14_dinov2.lvd142m",
        "vit_base_patch14_reg4_dinov2.lvd142m",
        "vit_base_patch16_224.mae",
    )
    assert all(names[name] == 0 for name in headless)


# Refusals


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("swin_tiny_patch4_window7_224.ms_in1k", "windows"),
        ("vit_small_r26_s32_224.augreg_in21k_ft_in1k", "hybrid"),
        ("eva02_tiny_patch14_224.mim_in22k", "EVA"),
        ("vit_base_patch16_siglip_224.webli", "pools with an attention layer"),
        ("vit_dwee_patch16_reg1_gap_256.sbb_in1k", "DiffAttention"),
        ("vit_pwee_patch16_reg1_gap_256.sbb_in1k", "ParallelScalingBlock"),
        ("vit_giant_patch14_dinov2.lvd142m", "GluMlp"),
        ("beit3_base_patch16_224.in22k_ft_in1k", "extra norms"),
        ("vit_relpos_small_patch16_224.sw_in1k", "relative positions"),
        ("vit_so400m_patch14_siglip_gap_384.webli", "leaves a rim unseen"),
        ("resnet50.a1_in1k", "not a plain ViT"),
    ],
)
def test_what_is_not_a_plain_vit_is_refused_with_a_reason_and_a_neighbour(own_folder, name, words):
    with pytest.raises(CheckpointError, match=words) as error:
        load_checkpoint(name)
    neighbour = str(error.value).rpartition("try ")[2].rstrip(".")
    labels = supported_timm()[neighbour]
    assert labels == 1000 or not name.endswith("in1k")
    assert str(error.value).count(". ") == 0  # one sentence


def test_an_unknown_name_gets_the_closest_ones(own_folder):
    with pytest.raises(CheckpointError, match=r"deit_tiny_patch16_224\.fb_in1k"):
        load_checkpoint("deit_tyni_patch16_224")
    with pytest.raises(CheckpointError, match=r"vit_tiny_patch16_224\.augreg_in21k"):
        load_checkpoint("vit_tiny_patch16_224.nope")
    with pytest.raises(CheckpointError, match="closest names"):
        load_checkpoint("")


# Files


@pytest.mark.parametrize("half", [False, True])
def test_a_saved_file_describes_itself(tmp_path, half):
    model, path = small_model(), tmp_path / "mine.safetensors"
    preprocess = Preprocess((16, 24), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), "bilinear", 0.9, "squash")
    save_checkpoint(path, model, ["a", "b", "c"], preprocess, half=half)
    assert os.listdir(tmp_path) == ["mine.safetensors"]
    checkpoint = load_checkpoint(str(path))
    assert checkpoint.name == "mine"
    assert checkpoint.labels == ["a", "b", "c"]
    assert checkpoint.preprocess == preprocess
    assert checkpoint.model.config == model.config
    images = torch.randn(2, 3, 16, 24)
    tolerance = 1e-2 if half else 0
    with torch.inference_mode():
        assert (checkpoint.model.eval()(images) - model(images)).abs().max() <= tolerance
    classifier = vit_demo.load(str(path), device="cpu")
    assert len(classifier.classify(Image.new("RGB", (30, 30)))) == 3


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "mine.safetensors"
    save_checkpoint(path, small_model(), ["a", "b", "c"], Preprocess((16, 24)))
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vit_demo.checkpoints.checkpoint.save", full)
    with pytest.raises(OSError, match="space"):
        save_checkpoint(path, small_model(), ["x", "y", "z"], Preprocess((16, 24)))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["mine.safetensors"]


@pytest.fixture
def fine_tune():
    torch.manual_seed(1)
    return timm.create_model("vit_tiny_patch16_224", num_classes=4, depth=12)


def test_a_timm_fine_tune_loads_with_its_architecture(tmp_path, fine_tune):
    arch = "vit_tiny_patch16_224"
    labels = tmp_path / "labels.txt"
    labels.write_text("ant\nbee\ncat\ndog\n")
    save_file(fine_tune.state_dict(), tmp_path / "a.safetensors")
    torch.save(fine_tune.state_dict(), tmp_path / "b.pth")
    training = {  # as timm's train.py writes it
        "epoch": 3,
        "arch": arch,
        "args": argparse.Namespace(lr=0.1),
        "state_dict": {key: torch.zeros_like(t) for key, t in fine_tune.state_dict().items()},
        "state_dict_ema": {"module." + key: t for key, t in fine_tune.state_dict().items()},
    }
    torch.save(training, tmp_path / "c.pth")
    for name in ("a.safetensors", "b.pth", "c.pth"):
        checkpoint = load_checkpoint(str(tmp_path / name), arch=arch, labels=str(labels))
        assert same_logits(checkpoint.model, fine_tune)
        assert checkpoint.labels == ["ant", "bee", "cat", "dog"]
    assert load_checkpoint(str(tmp_path / "b.pth"), arch=arch).labels[3] == "class 3"


def test_a_fine_tune_of_another_size_has_its_positions_resampled(tmp_path):
    reference = timm.create_model("vit_tiny_patch16_224", num_classes=4, img_size=160)
    save_file(reference.state_dict(), tmp_path / "a.safetensors")
    model = load_checkpoint(str(tmp_path / "a.safetensors"), arch="vit_tiny_patch16_224").model
    assert model.config.grid == (14, 14)
    bigger = timm.create_model("vit_tiny_patch16_224", num_classes=4)
    bigger.load_state_dict(
        timm.models.vision_transformer.checkpoint_filter_fn(reference.state_dict(), bigger)
    )
    assert same_logits(model, bigger)


def test_labels_must_fit_the_head(tmp_path, fine_tune):
    save_file(fine_tune.state_dict(), tmp_path / "a.safetensors")
    labels = tmp_path / "labels.txt"
    labels.write_text("ant\nbee\n")
    arguments = {"arch": "vit_tiny_patch16_224", "labels": str(labels)}
    with pytest.raises(CheckpointError, match="2 labels.*4 classes"):
        load_checkpoint(str(tmp_path / "a.safetensors"), **arguments)
    labels.write_bytes(b"\xff\xfe\x00bad")
    with pytest.raises(CheckpointError, match="UTF-8"):
        load_checkpoint(str(tmp_path / "a.safetensors"), **arguments)


def test_a_file_that_does_not_describe_itself_needs_arch(tmp_path, fine_tune):
    save_file(fine_tune.state_dict(), tmp_path / "a.safetensors")
    with pytest.raises(CheckpointError, match="--arch"):
        load_checkpoint(str(tmp_path / "a.safetensors"))
    with pytest.raises(CheckpointError, match="another architecture"):
        load_checkpoint(str(tmp_path / "a.safetensors"), arch="vit_small_patch16_224")
    with pytest.raises(CheckpointError, match="closest names"):
        load_checkpoint(str(tmp_path / "a.safetensors"), arch="vit_smal")
    with pytest.raises(CheckpointError, match="hybrid"):
        load_checkpoint(str(tmp_path / "a.safetensors"), arch="vit_small_r26_s32_224")
    with pytest.raises(CheckpointError, match="not a file"):
        load_checkpoint(NAME, arch="vit_small_patch16_224")


class Payload:
    """What an attacker would put into a pickle: code that runs when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_a_pickle_with_code_is_refused_and_runs_nothing(tmp_path):
    touched = tmp_path / "touched"
    torch.save({"head.weight": Payload(touched)}, tmp_path / "a.pth")
    (tmp_path / "b.pth").write_bytes(pickle.dumps(Payload(touched)))
    for name in ("a.pth", "b.pth"):
        with pytest.raises(CheckpointError, match=r"never run here|not a readable"):
            load_checkpoint(str(tmp_path / name), arch="vit_tiny_patch16_224")
    assert not touched.exists()


def test_damaged_files_are_refused_with_a_message(tmp_path):
    path = tmp_path / "mine.safetensors"
    save_checkpoint(path, small_model(), ["a", "b", "c"], Preprocess((16, 24)))
    whole = path.read_bytes()
    bad = {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "false header": (2**60).to_bytes(8, "little") + whole[8:],
        "text": b"hello",
    }
    for content in bad.values():
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="not a readable"):
            load_checkpoint(str(path))
    for content in (b"", b"hello", whole):
        (tmp_path / "b.pth").write_bytes(content)
        with pytest.raises(CheckpointError):
            load_checkpoint(str(tmp_path / "b.pth"), arch="vit_tiny_patch16_224")
    with pytest.raises(CheckpointError, match="no file"):
        load_checkpoint(str(tmp_path / "none.safetensors"))
    with pytest.raises(CheckpointError, match="no file"):
        load_checkpoint(str(tmp_path / "folder" / ""))


def test_wrong_contents_are_refused_with_the_tensors_name(tmp_path):
    path = tmp_path / "mine.safetensors"
    save_checkpoint(path, small_model(), ["a", "b", "c"], Preprocess((16, 24)))
    good = load_file(path)
    about = json.loads(read_weights(path)[1])

    def refused(words, tensors=good, description=about):
        save_file(tensors, path, metadata={METADATA_KEY: json.dumps(description)})
        with pytest.raises(CheckpointError, match=words):
            load_checkpoint(str(path))

    refused("lacks cls_token", {k: v for k, v in good.items() if k != "cls_token"})
    refused("has extra", good | {"extra": torch.zeros(1)})
    refused("head.bias has the shape", good | {"head.bias": torch.zeros(4)})
    refused("NaN", good | {"head.bias": torch.tensor([0.0, float("nan"), 0.0])})
    refused("2 labels for 3 classes", description=about | {"labels": ["a", "b"]})
    refused("damaged", description=about | {"config": {"no such option": 1}})
    refused("damaged", description=[1, 2])
    refused("damaged", description=about | {"config": about["config"] | {"heads": 5}})
