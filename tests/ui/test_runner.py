"""Pictures that wait go through the model together; each gets its own answer."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image
from support.patience import wait_until

import vit_demo
from vit_demo.ui import learn, runner, server_functions
from vit_demo.ui.runner import Runner, TooSlow
from vit_demo.ui.store import Server


class Gate:
    """Stands before a model: notes the size of each batch, and holds it back until it is opened."""

    def __init__(self, classifier):
        self.sizes, self.opened, self.model = [], threading.Event(), classifier.model.forward
        classifier.model.forward = self

    def __call__(self, pixels, *rest):
        self.sizes.append(len(pixels))
        assert self.opened.wait(60)
        return self.model(pixels, *rest)


@pytest.fixture
def classifier():
    return vit_demo.load("vit-photos", device="cpu")


def pictures(count: int, size: tuple[int, int] = (40, 32)) -> list[Image.Image]:
    shape = (count, size[1], size[0], 3)
    pixels = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
    return [Image.fromarray(one) for one in pixels]


def test_what_waits_goes_together_and_answers_are_not_mixed_up(classifier, monkeypatch):
    expected = [classifier.explain(picture) for picture in pictures(9)]
    labels = classifier.classify(pictures(9)[0], top=3)
    height, width = classifier.preprocess.size
    monkeypatch.setattr(runner, "MOST_PIXELS", 6 * height * width)
    gate, row = Gate(classifier), Runner(batches=1)
    with ThreadPoolExecutor(10) as pool:

        def explain(picture):
            return row.explain(classifier, picture, "crop", lambda e: e.rollout())

        first = pool.submit(explain, pictures(9)[0])
        wait_until(lambda: gate.sizes == [1])  # the model is busy: now the others gather
        rest = [pool.submit(explain, picture) for picture in pictures(9)[1:]]
        alone = pool.submit(row.classify, classifier, pictures(9)[0], 3, "crop")
        wait_until(lambda: len(row.waiting) == 9)
        gate.opened.set()
        answers = [job.result(60) for job in [first, *rest]]
        assert [p.index for p in alone.result(60)] == [p.index for p in labels]
    assert sorted(gate.sizes) == [1, 1, 2, 6]  # never with one that wants no maps, six at most
    for (explanation, heat), wanted in zip(answers, expected, strict=True):
        assert (explanation.logits - wanted.logits).abs().max() < 1e-4
        assert (explanation.head_rollouts(None) - wanted.head_rollouts(None)).abs().max() < 1e-6
        assert (heat - wanted.rollout()).abs().max() < 1e-6


def test_other_sizes_wait_for_their_own_turn(classifier):
    sizes = [(40, 32), (64, 32), (40, 32)]
    gate, row = Gate(classifier), Runner(batches=1)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(row.explain, classifier, pictures(1)[0], "crop", id)]
        wait_until(lambda: gate.sizes == [1])
        for i, size in enumerate(sizes):
            picture = pictures(1, size)[0]
            jobs.append(pool.submit(row.explain, classifier, picture, "native", id))
            wait_until(lambda: len(row.waiting) == i + 1)  # noqa: B023
        gate.opened.set()
        grids = [job.result(60)[0].grid for job in jobs]
    assert grids[1] == grids[3] != grids[2]
    assert gate.sizes == [1, 2, 1]


def test_an_error_hits_only_its_own_picture(classifier):
    gate, row = Gate(classifier), Runner(batches=1)
    with ThreadPoolExecutor(3) as pool:
        thens = [lambda e: e.layers, lambda e: 1 / 0, lambda e: e.heads]
        jobs = [pool.submit(row.explain, classifier, pictures(1)[0], "crop", t) for t in thens]
        wait_until(lambda: sum(gate.sizes) + len(row.waiting) >= 3)
        gate.opened.set()
        assert jobs[0].result(60)[1] == classifier.config.depth
        assert jobs[2].result(60)[1] == classifier.config.heads
        with pytest.raises(ZeroDivisionError):
            jobs[1].result(60)
    assert all(thread.is_alive() for thread in row.threads)


def test_a_batch_that_is_too_large_goes_one_by_one(classifier):
    expected = [classifier.explain(picture).logits for picture in pictures(4)]
    gate, row = Gate(classifier), Runner(batches=1)
    plain = gate.model

    def small_only(pixels, *rest):
        if len(pixels) > 1:
            raise MemoryError
        return plain(pixels, *rest)

    gate.model = small_only
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(row.explain, classifier, picture, "crop", id) for picture in pictures(4)
        ]
        wait_until(lambda: sum(gate.sizes) + len(row.waiting) >= 4)
        gate.opened.set()
        for job, wanted in zip(jobs, expected, strict=True):
            assert (job.result(60)[0].logits - wanted).abs().max() < 1e-4
    assert max(gate.sizes) > 1


def test_who_waits_too_long_hears_it_and_costs_nothing_more(classifier):
    gate, row = Gate(classifier), Runner(seconds=1, batches=1)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(row.explain, classifier, pictures(1)[0], "crop", id)
        wait_until(lambda: gate.sizes == [1])
        second = pool.submit(row.explain, classifier, pictures(2)[1], "crop", id)
        for job in (first, second):
            with pytest.raises(TooSlow, match="smaller model"):
                job.result(60)
    assert not row.waiting
    gate.opened.set()
    row.seconds = 60
    row.classify(classifier, pictures(1)[0], 3, "crop")  # goes on as if nothing had been
    assert gate.sizes == [1, 1]


def test_two_pictures_at_a_time_are_opened_and_waiting_for_that_counts(classifier, monkeypatch):
    opened, gate, view = [], threading.Event(), classifier.view

    def slow(*arguments):
        opened.append(arguments)
        assert gate.wait(60)
        return view(*arguments)

    monkeypatch.setattr(classifier, "view", slow)
    row = Runner(seconds=1)
    with ThreadPoolExecutor(5) as pool:
        jobs = [pool.submit(row.classify, classifier, one, 3, "crop") for one in pictures(5)]
        wait_until(lambda: sum(job.done() for job in jobs) == 3)  # those who were not let in
        assert len(opened) == 2
        gate.set()
        for job in jobs:  # the others had waited too long by then, too
            with pytest.raises(TooSlow, match="within 1 s"):
                job.result(60)
    assert not row.waiting and len(opened) == 2


def test_two_batches_share_the_cores_and_one_has_them_all(classifier, monkeypatch):
    """What a pass was given is what torch says in its own thread."""
    monkeypatch.setattr(runner, "CORES", 2)
    cores, gate, row = [], Gate(classifier), Runner()

    def forward(pixels, *rest):
        cores.append(torch.get_num_threads())
        return gate(pixels, *rest)

    classifier.model.forward = forward
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(row.explain, classifier, pictures(1)[0], "crop", id)]
        wait_until(lambda: gate.sizes == [1])
        for count, started in ((2, [1, 1]), (3, [1, 1])):  # the third one waits
            jobs.append(pool.submit(row.explain, classifier, pictures(count)[-1], "crop", id))
            wait_until(lambda: gate.sizes == started and row.running == 2)  # noqa: B023
        wait_until(lambda: len(row.waiting) == 1)
        gate.opened.set()
        for job in jobs:
            job.result(60)
    assert cores[:2] == [2, 1]
    wait_until(lambda: row.running == 0)
    row.classify(classifier, pictures(1)[0], 3, "crop")
    assert cores[-1] == 2


def test_questions_have_all_cores_whatever_the_models_were_given(monkeypatch):
    monkeypatch.setattr(server_functions, "CORES", 2)
    found = []

    def ask() -> None:
        torch.set_num_threads(1)  # as a pass leaves it
        with server_functions.BUSY:
            found.append(torch.get_num_threads())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [2]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_who_waits_too_long_for_a_short_question_hears_it(classifier, monkeypatch, language):
    """Two others are at work, and do not come to an end."""
    server = Server(device="cpu")
    server.models.kept["vit-photos"] = classifier
    id, _ = server.explain(pictures(1)[0], "vit-photos", "crop")
    monkeypatch.setattr(server_functions, "SECONDS", 0.1)
    request = {
        "id": id,
        "language": language,
        "kind": "json",
        "labels": [0],
        "example": "digit-eight",
    }
    ask = [
        server_functions.answering(server, server_functions.class_maps),
        server_functions.files_on_demand(server),
        server_functions.guarded(learn.digit_over_time),
    ]
    wanted = {"en": "try again when fewer are here", "ko": "사람이 적을 때 다시 시도해 주세요"}
    with server_functions.BUSY, server_functions.BUSY:
        for one in ask:
            assert wanted[language] in one(request)["error"]
    assert "classes" in ask[0](request)
    server.close()
