"""The models that the server keeps: which stay, which go, and who waits for whom."""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from support import corpus
from support.hub import TOY, simulated_hub
from support.models import small_classifier
from support.patience import SECONDS, wait_until
from support.sentences import plain

from vit_demo.checkpoints import LONGEST_NAME
from vit_demo.checkpoints import hub as hub_room
from vit_demo.checkpoints.timm_models import supported_timm
from vit_demo.checkpoints.weights import CheckpointError
from vit_demo.explain import Classifier
from vit_demo.ui import store
from vit_demo.ui.models import find_models
from vit_demo.ui.store import Models, Server, size_of


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


def test_the_servers_explanations_hold_their_model():
    server = Server(device="cpu")
    try:
        one = server.models.get("vit-mnist")
        picture = corpus.picture()
        id = server.explain(picture, "vit-mnist", "crop")[0]
        server.models.most_bytes = size_of(one) + 1
        del one
        server.models.get("vit-photos")  # no room for both, and the first has an explanation
        assert "vit-mnist" not in server.models and "vit-photos" in server.models
        assert server.store.get(id) is None and not server.store.folder_of(id).exists()
        assert server.explain(picture, "vit-mnist", "crop")
        assert "vit-photos" not in server.models
    finally:
        server.close()


def test_models_are_loaded_once_and_bounded(small):
    loaded, came = [], []

    def load(name: str) -> Classifier:
        loaded.append(name)
        wait_until(lambda: len(came) == 4)  # the others ask while it loads
        return copy.copy(small)

    def ask(name: str) -> Classifier:
        came.append(name)
        return models.get(name)

    models = Models(load, most_bytes=1)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, ["a"] * 4))
    assert loaded == ["a"]
    models.get("b")
    assert "b" in models and "a" not in models


def test_many_visitors_one_loading_and_one_failure():
    calls, came, gate = [], [], threading.Event()

    def load(name: str) -> Toy:
        calls.append(name)
        assert gate.wait(SECONDS)
        if len(calls) == 1:
            raise CheckpointError("The hub is away; try again.")
        return Toy(1)

    models = Models(load)

    def ask(number: int) -> object:
        came.append(number)
        try:
            return models.get("m")
        except CheckpointError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        first = [pool.submit(ask, i) for i in range(8)]
        wait_until(lambda: len(came) == 8 and models.loading)
        gate.set()
        answers = [job.result() for job in first]
    assert answers.count("The hub is away; try again.") >= 1 and len(calls) <= 2
    again = list(map(ask, range(8)))
    assert len({id(model) for model in again}) == 1 and isinstance(again[0], Toy)
    assert len(calls) == 2 and not models.loading


@pytest.mark.parametrize("name", ["long", "", "\0", "a\nb", "../x", 5, None, ["a"], "😀"])
def test_what_is_no_models_name_is_refused(name):
    name = "x" * 10_000_000 if name == "long" else name
    server, tried = Server(device="cpu"), []

    def load(name: str) -> Classifier:
        tried.append(name)
        return server.load(name)

    server.models.load = load
    try:
        with pytest.raises(CheckpointError) as error:
            server.models.get(name)
        assert plain(str(error.value))
        assert all(len(name) <= LONGEST_NAME for name in tried)  # others are not even looked up
    finally:
        server.close()


def test_a_silent_hub_is_told_to_all_who_wait(monkeypatch, tmp_path):
    """To 32, each waiting for another model: four are tried, and as soon as one of them has failed
    (`HUB_SECONDS`), the others know."""
    monkeypatch.setattr(hub_room, "HUB_SECONDS", 3)
    monkeypatch.setattr(store, "parameter_count", lambda name: 1)  # to count takes a while
    tried = []
    download = hub_room.download
    monkeypatch.setattr(hub_room, "download", lambda *of: tried.append(of) or download(*of))
    names = [name for name in supported_timm() if "giant" not in name][:32]
    assert len(names) == 32
    server = Server()
    try:
        with simulated_hub(monkeypatch, tmp_path) as hub:
            hub.fault = "mute"
            jobs = [server.fetch(name) for name in names]
            for name, job in zip(names, jobs, strict=True):
                said = str(job.exception(timeout=60))
                assert "hub cannot be reached" in said and name in said
            assert len(tried) <= 4
            hub.fault = "none"  # who asks again makes it try again
            assert server.fetch(TOY).result(60).name == TOY
    finally:
        server.close()


def test_a_model_that_is_too_large_is_not_downloaded(monkeypatch, tmp_path):
    server = Server()
    try:
        with simulated_hub(monkeypatch, tmp_path) as hub:
            monkeypatch.setattr(store, "system_memory", lambda: 2**20)
            with pytest.raises(CheckpointError, match="too much for the memory here; choose"):
                server.models.get(TOY)
            monkeypatch.setattr(store, "system_memory", lambda: 2**60)
            monkeypatch.setattr(store, "room_in_cache", lambda: 2**20)
            with pytest.raises(CheckpointError, match="too much for the disk here; choose"):
                server.download(TOY)
            assert not hub.gets
    finally:
        server.close()


def test_two_models_are_loaded_at_a_time(monkeypatch):
    """Each takes memory for its file and for itself."""
    at_once, most, lock = [], [], threading.Lock()

    def slow(**how):
        with lock:
            at_once.append(how["name"])
            most.append(len(at_once))
        wait_until(lambda: len(most) >= 2, "a second one")
        with lock:
            at_once.remove(how["name"])
        return small_classifier()

    monkeypatch.setattr(store, "load", slow)
    server = Server({name: {"name": name} for name in "abcdef"}, "cpu")
    try:
        jobs = [server.fetch(name) for name in "abcdef"]
        assert all(job.result(60) for job in jobs)
        assert max(most) == 2
    finally:
        server.close()


# The chooser


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("DeiT-tiny", "deit_tiny_patch16_224.fb_in1k"),
        ("deit small", "deit_small_patch16_224.fb_in1k"),
        ("ViT-base", "vit_base_patch16_224.augreg2_in21k_ft_in1k"),
        ("DeiT-III", "deit3_small_patch16_224.fb_in22k_ft_in1k"),
        ("vit-tiny-384", "vit_tiny_patch16_384.augreg_in21k_ft_in1k"),
        ("dinov2-small", "vit_small_patch14_dinov2.lvd142m"),
        ("vit photos", "vit-photos"),
        ("vit-photos", "vit-photos"),
        ("vit_tiny_patch16_224", "vit_tiny_patch16_224.augreg_in21k_ft_in1k"),
    ],
)
def test_a_model_is_found_with_hyphens_and_without(text, name):
    found = find_models(Server(), text, "en")["models"]
    assert name in [row["name"] for row in found]


def test_a_part_of_a_timm_name_finds_no_other():
    found = find_models(Server(), "deit_tiny_patch16_224.f", "en")["models"]
    assert [row["name"] for row in found] == ["deit_tiny_patch16_224.fb_in1k"]
