"""Whatever is thrown at the library, an answer or one plain sentence comes back."""

import copy
import gc
import json
import math
import os
import pickle
import random
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file
from support import corpus
from support.paths import ROOT
from support.shared import missing

import vit_demo
from vit_demo import faithful, image, knockout
from vit_demo.checkpoints import save_checkpoint
from vit_demo.checkpoints.timm_models import supported_timm
from vit_demo.checkpoints.weights import METADATA_KEY, CheckpointError, read_weights
from vit_demo.embedded import embedded
from vit_demo.explain import Classifier
from vit_demo.image import ImageError, open_image
from vit_demo.map_settings import FITS
from vit_demo.model import VisionTransformer, ViTConfig
from vit_demo.ui.store import Models, Server, size_of
from vit_demo.view import Preprocess, make_view, to_tensor

MUTANTS = 2_100
DIGITS = Preprocess((28, 28), (0.5,), (0.5,), light_on_dark=True)
PHOTOS = Preprocess((32, 32))


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    if "vit-mnist" not in embedded():
        missing("assets/vit-mnist.safetensors is not here")
    return vit_demo.load("vit-mnist", device="cpu")


def plain(message: str) -> bool:
    """One or two sentences, with what to do next, and nothing from the inside of the program."""
    inside = re.search(r"Traceback|Error\b|/tmp|/home|/root|site-packages|0x[0-9a-f]{6}", message)
    advice = re.search(
        r"\b(use|choose|open|save|send|make|give|cut|check|ask|draw|get|put|download|set|add|scale)\b",
        message,
        re.IGNORECASE,
    )
    fine = 20 < len(message) < 500 and message.endswith(".") and "\n" not in message
    return fine and bool(advice) and not inside


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


# Pictures


def test_samples_made_by_hand(tmp_path):
    """Each known trap, as bytes and as a file of its own name."""
    seen = Counter()
    for index, sample in enumerate(corpus.samples()):
        folder = tmp_path / str(index)
        folder.mkdir()
        path = folder / re.sub(r"[/\\]", "_", sample.name)
        path.write_bytes(sample.data)
        for source in (sample.data, path):
            try:
                picture = open_image(source)
            except ImageError as error:
                assert plain(str(error)), (sample.kind, sample.name, str(error))
                assert str(tmp_path) not in str(error)
                accepted = False
            else:
                assert picture.mode == "RGB" and picture.width * picture.height <= image.MAX_PIXELS
                accepted = True
            assert sample.accepted in (None, accepted), (sample.kind, sample.name, accepted)
            seen[sample.kind, accepted] += 1
    good = {"plain", "1x1", "1x10000", "16-bit", "cmyk", "palette", "animated", "exif", "icc"}
    good |= {"transparent", "loop", "extension", "name", "bomb"}
    assert {kind for kind, accepted in seen if accepted} == good
    bad = {kind for kind, accepted in seen if not accepted}
    assert bad == {"cut", "signature", "no picture", "bomb"}


def test_two_thousand_damaged_pictures(classifier):
    """Decode, view, tensor; every tenth that is still a picture goes through the model, too."""
    seen, refusals, classified = Counter(), Counter(), 0
    before = None
    for index, sample in enumerate(corpus.mutants(MUTANTS)):
        if index == 300:  # by now everything has been loaded that will be
            gc.collect()
            before = resident() if Path("/proc/self/statm").exists() else None
        fit, preprocess = FITS[index % 4], (DIGITS, PHOTOS)[index % 3 > 0]
        try:
            view = make_view(open_image(sample.data), preprocess, (4, 4), fit)
        except ImageError as error:
            assert plain(str(error)), (index, str(error))
            seen[sample.kind, False] += 1
            refusals[re.sub(r"[\d.,]+", "0", str(error).partition(";")[0])] += 1
            continue
        pixels = to_tensor(view, preprocess)
        assert pixels.isfinite().all() and pixels.shape[1] == len(preprocess.mean)
        seen[sample.kind, True] += 1
        if seen[sample.kind, True] % 10 == 0:
            best = classifier.classify(sample.data, 1, fit)[0]
            assert 0 < best.probability <= 1
            classified += 1
    assert sum(seen.values()) == MUTANTS
    for kind in corpus.DAMAGE:  # chance gives both of every kind, or the damage is no test
        assert seen[kind, True] >= 5 and seen[kind, False] >= 50, seen
    assert len(refusals) >= 3 and classified >= 20
    if before:
        gc.collect()
        assert resident() - before < 60 * corpus.MEGA


def test_bombs_do_not_go_off(tmp_path):
    """In a process of its own: each bomb, alone, would take hundreds of megabytes or seconds."""
    code = """
import resource, sys, time
sys.path.insert(0, "tests")
from support import corpus
from vit_demo.image import ImageError, open_image
bombs = [sample for sample in corpus.samples() if sample.kind == "bomb"]
open_image(corpus.saved(corpus.picture(), "PNG"))
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
for bomb in bombs:
    try:
        open_image(bomb.data)
    except ImageError:
        pass
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(len(bombs), peak // 1024, time.process_time() - began)
"""
    pytest.importorskip("resource")
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    count, megabytes, seconds = map(float, run.stdout.split())
    assert count >= 20
    assert megabytes < 100 and seconds < 5  # without the limits: 1,500 MB and 20 s


def test_limits_hold_before_decoding(monkeypatch, tmp_path):
    """Too many pixels or bytes: the decoder is never even called."""
    from PIL import ImageFile

    def decoded(self):
        raise AssertionError("a pixel was decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", decoded)
    for sample in corpus.samples():
        if sample.kind == "bomb" and sample.name.startswith(("pixels", "screen", "frame", "long")):
            with pytest.raises(ImageError, match="megapixels|pixels long"):
                open_image(sample.data)
    monkeypatch.setattr(image, "MAX_BYTES", 1000)
    path = tmp_path / "much.bmp"
    path.write_bytes(corpus.saved(corpus.picture(64, 48), "BMP"))
    with pytest.raises(ImageError, match="megabytes; make it smaller"):
        open_image(path)
    with pytest.raises(ImageError, match="megabytes; make it smaller"):
        open_image(Endless())


class Endless:
    """A pipe without an end: only so much of it may be read."""

    def __init__(self):
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        assert 0 <= size, "asked for all of it"
        self.given += size
        assert self.given < 10_000
        return bytes(size)


@pytest.mark.parametrize("turn", range(1, 9))
def test_orientation_is_still_read_among_much_else(turn):
    exif = corpus.tiff({274: (3, 1, turn), 270: (2, 2_000_000, "data")}, b"d" * 2_000_000)
    for data in (
        corpus.saved(corpus.picture(), "PNG", exif=exif),
        corpus.saved(corpus.picture(), "WEBP", exif=b"Exif\0\0" + exif),
        corpus.jpeg_with(*corpus.exif_segments(exif)),
    ):
        assert open_image(data).size == ((24, 18) if turn < 5 else (18, 24))


# Weights


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


def test_false_headers(tmp_path, saved):
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
def test_false_descriptions(tmp_path, saved, lie):
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


# The models in memory


class Toy:
    """As much of a classifier as the cache looks at."""

    def __init__(self, size: int):
        self.model = torch.nn.Linear(size, 1, bias=False)


def test_idle_models_go_and_models_in_use_stay():
    loaded = []

    def load(name: str) -> Toy:
        loaded.append(name)
        return Toy(25)  # 100 bytes

    models = Models(load, most_bytes=350)
    used = models.get("used")
    for name in "abc":
        models.get(name)
    assert list(models.kept) == ["used", "b", "c"]  # a was idle, and the oldest of those
    models.get("b")
    models.get("d")
    assert list(models.kept) == ["used", "b", "d"]
    assert models.bytes == 300
    for name in "abcd" * 5:
        models.get(name)
        assert models.get("used") is used and models.bytes <= 350
    assert loaded.count("used") == 1
    del used
    for name in "abc":
        models.get(name)
    assert "used" not in models


def test_when_all_are_in_use_the_oldest_explanations_are_dropped():
    kept, dropped = {}, []

    def let_go(classifier: Toy) -> None:
        for name in [name for name, held in kept.items() if held is classifier]:
            dropped.append(name)
            del kept[name]

    models = Models(lambda name: Toy(25), most_bytes=350, let_go=let_go)
    for name in "abcdef":
        kept[name] = models.get(name)
    assert dropped == ["a", "b", "c"] and list(models.kept) == ["d", "e", "f"]
    running = models.get("d")  # a pass runs: no explanation, but in use
    for name in "ghi":
        kept[name] = models.get(name)
    assert models.get("d") is running and models.bytes <= 400


def test_the_servers_explanations_hold_their_model(classifier):
    server = Server(device="cpu")
    try:
        one = server.models.get("vit-mnist")
        picture = corpus.picture()
        id = server.explain(picture, "vit-mnist", "crop")
        server.models.most_bytes = size_of(one) + 1
        del one
        server.models.get("vit-cifar10")  # no room for both, and the first has an explanation
        assert "vit-mnist" not in server.models and "vit-cifar10" in server.models
        assert server.store.get(id) is None and not server.store.folder_of(id).exists()
        assert server.explain(picture, "vit-mnist", "crop")
        assert "vit-cifar10" not in server.models
    finally:
        server.close()


def test_many_visitors_one_loading_and_one_failure():
    calls, gate = [], threading.Event()

    def load(name: str) -> Toy:
        calls.append(name)
        gate.wait(5)
        if len(calls) == 1:
            raise CheckpointError("The hub is away; try again.")
        return Toy(1)

    models = Models(load)

    def ask(_) -> object:
        try:
            return models.get("m")
        except CheckpointError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        first = [pool.submit(ask, i) for i in range(8)]
        while not calls or len(models.loading) < 1:
            time.sleep(0.01)
        time.sleep(0.2)
        gate.set()
        answers = [job.result() for job in first]
    assert answers.count("The hub is away; try again.") >= 1 and len(calls) <= 2
    again = list(map(ask, range(8)))
    assert len({id(model) for model in again}) == 1 and isinstance(again[0], Toy)
    assert len(calls) == 2 and not models.loading


@pytest.mark.parametrize("name", ["long", "", "\0", "a\nb", "../x", 5, None, ["a"], "😀"])
def test_names_that_are_none(name):
    name = "x" * 10_000_000 if name == "long" else name
    server = Server(device="cpu")
    try:
        supported_timm()  # takes its time, once
        began = time.process_time()
        with pytest.raises(CheckpointError) as error:
            server.models.get(name)
        assert plain(str(error.value)) and time.process_time() - began < 1
    finally:
        server.close()


# Arguments of the library

LONG, NONSENSE = "x" * 10_000_000, object()
NO_INDEX = [99, -99, 1.5, math.nan, math.inf, "a", LONG, [1], {}, NONSENSE, 10**6000, b"1"]
NO_SHARE = [-0.1, 1.1, math.nan, math.inf, -math.inf, "0.5", LONG, [0.5], NONSENSE, 10**400, 1j]
NO_WORD = ["", "Mean", LONG, 5, None, ["mean"], {}, math.nan, NONSENSE]
NO_QUERY = [(99, 0), (0, 99), (0,), (0, 0, 0), "ab", ("a", "b"), (0.5, 0), 10**6000, LONG, NONSENSE]
NO_LABEL = ["no such label", LONG, -1, 99, 1.5, math.nan, NONSENSE, b"3", 10**6000, ""]
BAD = {
    "top": [(lambda e, x: e.top(x), [0, -1, 1.5, math.nan, math.inf, "3", LONG, [1], NONSENSE])],
    "layer": [
        (lambda e, x: e.rollout(x), [*NO_INDEX, None]),
        (lambda e, x: e.rollout(start=x), [*NO_INDEX, None]),
        (lambda e, x: e.head_rollouts(x), NO_INDEX),
        (lambda e, x: e.attention(x), [*NO_INDEX, None]),
    ],
    "head": [(lambda e, x: e.attention(0, x), NO_INDEX)],
    "query": [
        (lambda e, x: e.rollout(query=x), NO_QUERY),
        (lambda e, x: e.head_rollouts(query=x), NO_QUERY),
        (lambda e, x: e.attention(0, 0, x), NO_QUERY),
        (lambda e, x: e.attention(0, 0, x, direction="to"), NO_QUERY),
        (lambda e, x: e.arrays(query=x), NO_QUERY),
    ],
    "shares": [
        (lambda e, x: e.rollout(residual=x), [*NO_SHARE, None]),
        (lambda e, x: e.rollout(discard=x), [*NO_SHARE, None, 1]),
        (lambda e, x: e.head_rollouts(residual=x), [*NO_SHARE, None]),
        (lambda e, x: e.head_rollouts(discard=x, below="same"), [*NO_SHARE, 1]),
    ],
    "words": [
        (lambda e, x: e.rollout(fusion=x), NO_WORD),
        (lambda e, x: e.head_rollouts(fusion=x), NO_WORD),
        (lambda e, x: e.head_rollouts(below=x), NO_WORD),
        (lambda e, x: e.attention(direction=x), NO_WORD),
        (lambda e, x: e.classifier.explain(corpus.picture(), x), NO_WORD),
    ],
    "label": [
        (lambda e, x: e.relevance(x), NO_LABEL),
        (lambda e, x: e.grad_cam([x, 0]), NO_LABEL),
        (lambda e, x: e.gradient_rollout(x), NO_LABEL),
        (lambda e, x: faithful.method_maps(e, x), NO_LABEL),
        (lambda e, x: knockout.knockout_wall(e, x), NO_LABEL),
        (lambda e, x: faithful.trust(e, e.rollout(), x), NO_LABEL),
    ],
    "faithful": [
        (lambda e, x: faithful.trust(e, x), [None, 5, LONG, torch.zeros(2), [[1]], NONSENSE]),
        (lambda e, x: faithful.trust(e, torch.full(e.grid, x)), [math.nan, math.inf]),
        (lambda e, x: faithful.trust(e, e.rollout(), remove=x), NO_WORD),
        (lambda e, x: faithful.trust(e, e.rollout(), orders=x), [0, 9, 10**12, 10.5, "ten", None]),
        (lambda e, x: faithful.trust(e, e.rollout(), steps=x), [0, -1, 1.5, math.nan, "a"]),
        (lambda e, x: faithful.trust(e, e.rollout(), batch=x), [0, -1, 1.5, math.nan, "a", None]),
        (lambda e, x: faithful.trust(e, e.rollout(), seed=x), [-1, 1.5, 10**30, "a", None]),
        (lambda e, x: faithful.random_weights(e, x), [LONG, "", 5, None, ["rollout"], NONSENSE]),
        (lambda e, x: faithful.random_weights(e, seed=x), [-1, 10**30, "a", None]),
    ],
    "knock-out": [
        (lambda e, x: knockout.without(e, heads=x), [5, None, [5], [(0,)], [(0, 99)], [("a", 0)]]),
        (lambda e, x: knockout.without(e, layers=x), [5, None, [99], ["a"], [None], [1.5]]),
        (lambda e, x: knockout.without(e, patches=x), [5, None, [5], [(99, 0)], [(0, "a")]]),
        (lambda e, x: knockout.without(e, patches=[(0, 0)], fill=x), NO_WORD),
        (lambda e, x: knockout.without(e, heads=[(0, 0)], top=x), [0, -1, 1.5, "a", None]),
    ],
}


@pytest.fixture(scope="module")
def explanation(classifier):
    return classifier.explain(corpus.picture())


@pytest.mark.parametrize("group", BAD)
def test_arguments_that_make_no_sense(explanation, group):
    for call, values in BAD[group]:
        for value in values:
            with pytest.raises(ValueError, match=r"; |\. ") as error:
                call(explanation, value)
            message = str(error.value)
            assert len(message) < 300 and message.endswith("."), message[:300]
            assert re.search(r"\b(use|give|ask|closest)\b", message, re.IGNORECASE), message
            assert "\n" not in message and "object at 0x" not in message or value is NONSENSE


def test_unusual_arguments_that_do_make_sense(explanation):
    """The checks are no stricter than Python: numpy's numbers, tensors and lists are as good."""
    e, one = explanation, np.int64(1)
    assert torch.equal(e.rollout(one), e.rollout(1))
    assert torch.equal(e.rollout(query=[1, one]), e.rollout(query=(1, 1)))
    assert torch.equal(e.rollout(query=np.array([1, 2])), e.rollout(query=(1, 2)))
    assert torch.equal(e.attention(0, torch.tensor(1)), e.attention(0, 1))
    half = e.rollout(residual=0.25)
    assert torch.equal(e.rollout(residual=np.float64(0.25)), half)
    assert torch.equal(e.rollout(residual=torch.tensor(0.25)), half)
    assert torch.equal(e.rollout(residual=1, discard=0), e.rollout(residual=1.0))
    assert torch.equal(e.relevance(one), e.relevance(1))
    assert e.top(10**6000) == e.top(10)
    assert len(faithful.trust(e, e.rollout(), steps=10**9).kept) == 17  # 16 patches
    assert knockout.without(e, heads=np.array([[0, 0]])).after
