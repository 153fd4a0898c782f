"""What the server keeps of its visitors' pictures, and for how long."""

import errno
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.memory import resident
from support.models import small_classifier
from support.page import DEIT

from vit_demo.checkpoints.weights import CheckpointError
from vit_demo.export import maps_of_layers
from vit_demo.map_settings import settings_from
from vit_demo.memory import give_back
from vit_demo.ui import server_functions as ask
from vit_demo.ui import store
from vit_demo.ui.store import Server, Store


def put(store: Store, explanation, key=None) -> str:
    id = store.new_id()
    store.put(id, explanation, key)
    return id


def test_store_is_bounded(small, lion, tmp_path):
    store = Store(tmp_path, most=3)
    try:
        ids = [put(store, small.explain(lion), key=number) for number in range(5)]
        assert [store.get(id) is not None for id in ids] == [False, False, True, True, True]
        assert [store.find(number) is not None for number in range(5)] == [False] * 2 + [True] * 3
        assert sorted(path.name for path in store.folder.iterdir()) == sorted(ids[2:])
        assert len(set(ids)) == 5 and all(len(id) >= 24 for id in ids)
        store.get(ids[2])  # used again: now another one is the oldest
        put(store, small.explain(lion))
        assert store.get(ids[2]) is not None and store.get(ids[3]) is None
    finally:
        store.close()
    assert not store.folder.exists()


def test_store_is_bounded_in_bytes(small, lion, tmp_path):
    one = small.explain(lion)
    store = Store(tmp_path, most_bytes=2 * one.memory)
    ids = [put(store, one) for _ in range(4)]
    assert [store.get(id) is not None for id in ids] == [False, False, True, True]
    store.close()


def test_a_visitor_never_names_a_file(shared):
    path = str(shared / "weights" / f"{DEIT}.safetensors")
    server = Server()
    for name in (path, "x.pth", "./x", "..\\x.safetensors"):
        with pytest.raises(CheckpointError, match="There is no model"):
            server.load(name)
    server.store.close()


def test_memory_comes_back_after_200_pictures(small):
    """With a full store, 200 more pictures leave neither memory nor files behind."""
    server = Server()
    server.models.kept["small"] = small
    rng = np.random.default_rng(0)

    def look(count: int) -> None:
        for _ in range(count):
            picture = Image.fromarray(rng.integers(0, 256, (480, 640, 3), dtype=np.uint8))
            server.explain(picture, "small", "crop")
        gc.collect()

    look(60)
    before, files = resident(), len(list(server.store.folder.iterdir()))
    look(200)
    assert resident() < 1.1 * before
    assert len(list(server.store.folder.iterdir())) == files == server.store.most
    server.store.close()


def test_large_pictures_leave_small_ones_behind(small):
    """Twelve pictures of 12 megapixels by four visitors: of the 48 MB that each takes, 8 MB stay."""
    server = Server()
    server.models.kept["small"] = small
    server.explain(Image.new("RGB", (4000, 3000), "red"), "small", "crop")
    gc.collect()
    before = resident()
    with ThreadPoolExecutor(4) as pool:
        large = (Image.new("RGB", (4000, 3000), (0, 0, i)) for i in range(12))
        for _ in pool.map(lambda picture: server.explain(picture, "small", "crop"), large):
            pass
    del large
    gc.collect()
    give_back()
    assert len(server.store.kept) == 13
    assert server.store.bytes < 13 * 10 * 2**20
    assert resident() - before < 12 * 15 * 2**20
    server.store.close()


def test_state_of_the_explorer_in_python(small, lion):
    explanation = small.explain(lion)
    state = {"map": "rollout", "head": "max", "query": [1, 2], "residual": 0.2, "discard": 0.1}
    settings = settings_from(state)
    assert settings.fusion == "max" and settings.query == (1, 2)
    maps = maps_of_layers(explanation, settings)
    expected = explanation.rollout(1, query=(1, 2), fusion="max", residual=0.2, discard=0.1)
    np.testing.assert_allclose(maps[1], expected, rtol=1e-6)  # the sums of one walk
    state = {"map": "attention", "head": 1, "direction": "to", "query": [0, 0]}
    maps = maps_of_layers(explanation, settings_from(state))
    np.testing.assert_allclose(maps[2], explanation.attention(2, 1, (0, 0), direction="to"))
    state = {"map": "head_rollout", "head": 1, "query": None, "below": "same"}
    maps = maps_of_layers(explanation, settings_from(state))
    np.testing.assert_allclose(maps[2], explanation.head_rollouts(2, below="same")[1])


def test_an_example_first_seen_while_the_disk_was_full_is_whole_later(small, lion, monkeypatch):
    server = Server()
    server.models.kept["small"] = small

    def full(path, data) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space"):
            server.explain(str(lion), "small", "crop", "lion")
    assert not list(server.store.folder.iterdir())
    id, _ = server.explain(str(lion), "small", "crop", "lion")
    assert server.store.folder_of(id).joinpath("explorer.bin").stat().st_size > 1000
    server.close()


def test_two_views_of_one_example_do_not_share_a_file(small, lion):
    server = Server()
    server.models.kept["small"] = small
    id, _ = server.explain(str(lion), "small", "crop", "lion")
    views = [{"residual": 0.2}, {"residual": 0.8}]
    names = [server.save(id, "npz", view, "en") for view in views]
    assert names[0] != names[1]
    for name, view in zip(names, views, strict=True):
        with np.load(server.store.folder_of(id) / name) as maps:
            expected = server.store.get(id).rollout(**view)
            np.testing.assert_allclose(maps["rollout"], expected, atol=1e-6)
    server.store.close()


def test_old_views_go_but_none_that_may_be_fetched_just_now(small, lion, monkeypatch):
    server = Server()
    server.models.kept["small"] = small
    id, _ = server.explain(str(lion), "small", "crop", "lion")
    folder = server.store.folder_of(id)
    names = [server.save(id, "json", {"residual": step / 40}, "en") for step in range(40)]
    assert all((folder / name).exists() for name in names)
    monkeypatch.setattr(store, "BEING_FETCHED", 0.0)
    last = server.save(id, "json", {"residual": 1}, "en")
    assert (folder / last).exists() and len(list(folder.iterdir())) < 30
    server.store.close()


def test_a_file_to_take_away_is_always_whole(small, lion):
    """Examples are shared: two visitors may ask for the same view, and a third one fetches it."""
    server = Server()
    server.models.kept["small"] = small
    id, _ = server.explain(str(lion), "small", "crop", "lion")
    path = server.store.folder_of(id) / server.save(id, "html", {"layer": 1}, "en")
    whole, odd = path.read_bytes(), []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            server.save(id, "html", {"layer": 1}, "en")

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        odd += [1] * (path.read_bytes() != whole)
    path.unlink()  # nobody waits for a file that is being made: it is not there, or whole
    for _ in range(200):
        with suppress(FileNotFoundError):
            odd += [1] * (path.read_bytes() != whole)
    stop.set()
    for thread in threads:
        thread.join()
    assert not odd
    server.store.close()


def test_questions_that_are_kept_count_too(small, lion):
    """The limit holds also when explanations grow after they have come."""
    server = Server()
    server.models.kept["small"] = small
    ids = [server.explain(str(lion), "small", fit)[0] for fit in ("crop", "pad", "stretch")]
    server.store.most_bytes = server.store.bytes
    answer = ask.answering(server, lambda explanation, request: {"fine": explanation.inside().N})
    assert answer({"id": ids[-1]})["fine"]
    assert list(server.store.kept) == ids[1:]
    assert server.store.bytes <= server.store.most_bytes
    server.close()


def test_the_first_picture_keeps_its_name_and_no_other_model_gets_it(small, lion):
    """The page was built with that name; two models may be called the same."""
    server = Server()
    server.models.kept["small"] = small
    first, _ = server.explain(lion, "small", "crop", "camel")
    server.first = {"id": first, "model": "small", "example": "camel", "fit": "crop"}
    twin, _ = server.look(small_classifier(seed=1), lion, "crop", "camel")
    assert twin != first
    server.store.drop(first)
    again, _ = server.explain(lion, "small", "crop", "camel")
    assert again == first and server.store.folder_of(first).joinpath("explorer.bin").exists()
    assert server.explain(lion, "small", "pad", "camel")[0] != first
    server.close()
