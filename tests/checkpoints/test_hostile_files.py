"""Whatever file of weights is thrown at the library, a model or one plain sentence comes back."""

import copy
import json
import math
import os
import pickle
import random
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file
from support import corpus
from support.memory import resident
from support.sentences import plain

import vit_demo
from vit_demo.checkpoints import save_checkpoint
from vit_demo.checkpoints.checkpoint import check_description
from vit_demo.checkpoints.weights import METADATA_KEY, CheckpointError, read_weights
from vit_demo.embedded import embedded
from vit_demo.model import VisionTransformer, ViTConfig
from vit_demo.view import Preprocess


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> bytes:
    """A small self-describing checkpoint, as bytes."""
    torch.manual_seed(0)
    shape = {"image_size": 16, "patch_size": 8, "embed_dim": 12, "depth": 2, "heads": 3}
    model = VisionTransformer(ViTConfig(**shape, mlp_dim=16, num_classes=3))
    path = tmp_path_factory.mktemp("weights") / "mine.safetensors"
    save_checkpoint(path, model, ["a", "b", "c"], Preprocess((16, 16)))
    return path.read_bytes()


def refused(path: Path, content: bytes | None = None, **options) -> str:
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CheckpointError) as error:
        vit_demo.load(str(path), device="cpu", **options)
    message = str(error.value)
    assert plain(message) and str(path.parent) not in message, message
    return message


def test_every_flipped_bit_is_found(tmp_path, saved):
    """A file saved here carries a checksum: wherever the damage is, it does not get through."""
    rng, path, before = random.Random(0), tmp_path / "mine.safetensors", resident()
    places = {*range(64), *rng.sample(range(64, len(saved)), 300)}
    for place in places:
        data = bytearray(saved)
        data[place] ^= 1 << rng.randrange(8)
        refused(path, bytes(data))
    for end in (0, 1, 7, 8, 9, 100, len(saved) // 2, len(saved) - 1):
        refused(path, saved[:end])
    refused(path, saved + b"more")
    path.write_bytes(saved)
    assert vit_demo.load(str(path), device="cpu").labels == ["a", "b", "c"]
    assert resident() - before < 100 * corpus.MEGA


def test_what_no_checksum_guards(tmp_path, saved):
    """Said plainly: without a checksum, other numbers are other weights. Only NaN and infinity
    betray themselves."""
    path = tmp_path / "mine.safetensors"
    path.write_bytes(saved)
    weights, about = read_weights(path)
    weights["head.bias"] = weights["head.bias"] + 1
    save_file(weights, path, metadata={METADATA_KEY: about})
    assert vit_demo.load(str(path), device="cpu").labels == ["a", "b", "c"]
    for number in (math.nan, math.inf, -math.inf):
        weights["head.bias"] = torch.tensor([0.0, number, 0.0])
        save_file(weights, path, metadata={METADATA_KEY: about})
        assert "NaN or infinite" in refused(path)
    weights["head.bias"] = torch.tensor([0.0, 1e300, 0.0], dtype=torch.float64)
    save_file(weights, path, metadata={METADATA_KEY: about})
    assert "NaN or infinite" in refused(path)  # as float32, which is what the model has


def test_embedded_models_carry_a_checksum(tmp_path):
    for name, source in embedded().items():
        data = bytearray(source.read_bytes())
        data[-1] ^= 1
        assert "not what was saved" in refused(tmp_path / f"{name}.safetensors", bytes(data))


def test_false_headers_are_refused(tmp_path, saved):
    path, size = tmp_path / "mine.safetensors", int.from_bytes(saved[:8], "little")
    header, body = json.loads(saved[8 : 8 + size]), saved[8 + size :]

    def with_header(change) -> bytes:
        lying = copy.deepcopy(header)
        text = change(lying)
        text = json.dumps(lying).encode() if text is None else text
        return len(text).to_bytes(8, "little") + text + body

    entries = [
        {"data_offsets": [0, 2**62]},
        {"data_offsets": [-8, 8]},
        {"data_offsets": [8, 0]},
        {"data_offsets": [0, 48]},  # where another one lies
        {"shape": [2**40, 2**40]},
        {"shape": [-1]},
        {"shape": "3"},
        {"dtype": "F64"},
        {"dtype": "I32"},  # as many bytes, but whole numbers
        {"dtype": "X99"},
    ]
    for entry in entries:
        refused(path, with_header(lambda lying, entry=entry: lying["norm.bias"].update(entry)))
    refused(path, with_header(lambda lying: lying.pop("norm.bias") and None))
    refused(path, with_header(lambda lying: b"{" * 100_000))
    refused(path, with_header(lambda lying: b"[]"))
    refused(path, with_header(lambda lying: b"\xff" * 50))
    for length in (2**63, 2**60, 100_000_001, len(saved), 0):
        refused(path, length.to_bytes(8, "little") + saved[8:])


@pytest.mark.parametrize(
    "lie",
    [
        {"config": {"depth": 10**9}},
        {"config": {"depth": 2.0}},
        {"config": {"depth": True}},
        {"config": {"embed_dim": 10**15, "heads": 1}},
        {"config": {"heads": 3.0}},
        {"config": {"num_classes": "3"}},
        {"config": {"image_size": [10**9, 10**9]}},
        {"config": {"patch_size": [0, 8]}},
        {"config": {"norm_eps": math.nan}},
        {"config": {"layer_scale": "x"}},
        {"config": {"pool": ["token"]}},
        {"config": None},
        {"preprocess": {"size": [8 * 10**5, 8 * 10**5]}},
        {"preprocess": {"size": [15, 16]}},
        {"preprocess": {"size": ["16", 16]}},
        {"preprocess": {"mean": [math.nan] * 3}},
        {"preprocess": {"mean": [0.5], "std": [0.5]}},
        {"preprocess": {"std": [0, 0, 0]}},
        {"preprocess": {"std": ["a", "b", "c"]}},
        {"preprocess": {"crop_pct": 0}},
        {"preprocess": {"crop_pct": math.inf}},
        {"preprocess": {"interpolation": 7}},
        {"preprocess": {"crop_mode": "../x"}},
        {"labels": None},
        {"labels": 5},
        {"labels": ["a"] * 9},
    ],
    ids=json.dumps,
)
def test_false_descriptions_are_refused(tmp_path, saved, lie):
    path = tmp_path / "mine.safetensors"
    path.write_bytes(saved)
    weights, about = read_weights(path)
    about = json.loads(about)
    for part, values in lie.items():
        about[part] = about[part] | values if isinstance(values, dict) else values
    save_file(weights, path, metadata={METADATA_KEY: json.dumps(about)})
    refused(path)


class Payload:
    """Code that runs when an ordinary unpickler reads it."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"echo broken > {self.path}",)


def test_a_pickle_runs_nothing(tmp_path):
    """The payload works, which is shown first; inside weights of any wrapping it does not."""
    witness, arch = tmp_path / "witness", {"arch": "vit_tiny_patch16_224"}
    pickle.loads(pickle.dumps(Payload(witness)))
    assert witness.exists()
    witness.unlink()
    bad = Payload(witness)
    wrapped = [bad, [bad], {"model": bad}, {"state_dict": {"head.weight": bad}}, {bad: 1}]
    for number, content in enumerate(wrapped):
        for zipped in (True, False):
            path = tmp_path / f"{number}.pth"
            torch.save(content, path, _use_new_zipfile_serialization=zipped)
            refused(path, **arch)
    for protocol in range(6):
        refused(tmp_path / "plain.bin", pickle.dumps(bad, protocol), **arch)
    renamed = tmp_path / "renamed.safetensors"
    refused(renamed, pickle.dumps(bad))
    assert not witness.exists()


def test_odd_contents_of_a_pth(tmp_path):
    arch, path = {"arch": "vit_tiny_patch16_224"}, tmp_path / "odd.pth"
    good = timm.create_model("vit_tiny_patch16_224", num_classes=3).state_dict()
    head = "head.weight"
    huge = torch.zeros(1).expand(2**40)  # one number on the disk
    odd = [
        3, "text", [1, 2], None, torch.zeros(3), {}, {1: 2}, {"model": 5}, {"x": torch.zeros(1)},
        good | {head: 5}, good | {head: torch.tensor(5.0)}, good | {head: huge},
        good | {head: torch.zeros(1, 1).expand(3, 192)},
        good | {head: torch.zeros(3, 192, dtype=torch.int64)},
        good | {head: torch.zeros(3, 192, dtype=torch.complex64)},
        good | {head: torch.zeros(3, 192).to_sparse()},
        good | {head: torch.full((3, 192), math.inf)},
        good | {"norm.bias": torch.zeros(5)}, good | {"pos_embed": torch.zeros(2)},
        good | {"patch_embed.proj.weight": torch.zeros(1, 1)},
    ]  # fmt: skip
    for content in odd:
        torch.save(content, path)
        refused(path, **arch)
    torch.save(good, path)
    data = path.read_bytes()
    rng = random.Random(1)
    for _ in range(20):
        refused(path, data[: rng.randrange(len(data))], **arch)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        bomb.writestr("archive/data/0", bytes(50 * corpus.MEGA))
    assert path.stat().st_size < corpus.MEGA
    refused(path, **arch)


@pytest.mark.parametrize(
    "shape",
    [
        {"registers": 20_000, "image_size": 8, "patch_size": 4},
        {"registers": 0, "image_size": 20_000, "patch_size": 100, "depth": 2},
    ],
)
def test_a_description_whose_pass_would_need_gigabytes_is_refused(shape):
    """Before anything of that size is made: a few numbers in a small file say so."""
    config = ViTConfig(**({"embed_dim": 2, "depth": 1, "heads": 1, "num_classes": 2} | shape))
    with pytest.raises(ValueError, match="cannot be meant"):
        check_description(config, Preprocess(size=config.image_size))
    check_description(replace(config, registers=4, image_size=200), Preprocess(size=(200, 200)))
