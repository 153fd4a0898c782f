"""Two threads run the models; pictures that wait meanwhile go through together.

Every visitor has a thread that reads the picture and sends the answer. If each of them ran the model
too, they would fight for the same cores. So they hand their pictures in here and wait. While the models
are busy, the next batch gathers: pictures of one size for one model, each with an answer of its own.

A pass of a model keeps all cores busy only as long as no Python runs in between. So two batches are under
way at a time, each on half of the cores, and one that is alone has all of them.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch
from torch import Tensor

from vit_demo.explain import Classifier, Explanation, Prediction, predictions
from vit_demo.memory import give_back
from vit_demo.recorder import Recording
from vit_demo.view import KEPT_PIXELS, View

MOST_PIXELS = 4 * 224 * 224  # of one batch: more of them would not be faster, but need memory
BATCHES = 2  # at a time
CORES = torch.get_num_threads()
SECONDS = 120.0  # nobody waits longer
OPENED_AT_ONCE = 2  # pictures: each may take `image.DECODING_BYTES`


class TooSlow(ValueError):
    """The model did not come to this picture in time."""


@dataclass(eq=False)
class Job:
    """A picture that waits for a model, and what to make of the model's answer."""

    classifier: Classifier
    view: View
    maps: bool
    finish: Callable
    answer: Future = field(default_factory=Future)

    def goes_with(self, other: "Job") -> bool:
        same = self.classifier is other.classifier and self.maps == other.maps
        return same and self.view.picture.size == other.view.picture.size


class Runner:
    """Runs pictures through models, a batch or two at a time, for as many threads as there are."""

    def __init__(self, seconds: float = SECONDS, batches: int = BATCHES):
        self.seconds, self.batches = seconds, batches
        self.opening = threading.BoundedSemaphore(OPENED_AT_ONCE)
        self.waiting: deque[Job] = deque()
        self.news = threading.Condition()
        self.threads: list[threading.Thread] = []
        self.running = 0  # batches

    def explain(
        self, classifier: Classifier, picture: Any, fit: str, then: Callable[[Explanation], Any]
    ) -> tuple[Explanation, Any]:
        """The explanation of a picture, and what `then` makes of it: that runs with the model."""
        began, view = time.monotonic(), self.open(classifier, picture, fit)

        def finish(logits: Tensor, recording: Recording) -> tuple[Explanation, Any]:
            explanation = Explanation(classifier, view, logits, recording)
            return explanation, then(explanation)

        return self.run(Job(classifier, view, True, finish), began)

    def classify(
        self, classifier: Classifier, picture: Any, top: int, fit: str
    ) -> list[Prediction]:
        """The labels alone: fused attention, no maps."""
        classifier.require_labels()
        began, view = time.monotonic(), self.open(classifier, picture, fit)

        def finish(logits: Tensor) -> list[Prediction]:
            return predictions(logits, classifier.labels, top)

        return self.run(Job(classifier, view, False, finish), began)

    def open(self, classifier: Classifier, picture: Any, fit: str) -> View:
        """What the model will see. A few pictures are opened at a time: a large one takes memory until
        its view is made, and gives it back then."""
        if not self.opening.acquire(timeout=self.seconds):
            raise self.too_slow(classifier)
        try:
            view = classifier.view(picture, fit)
        finally:
            self.opening.release()
        if view.size[0] * view.size[1] > KEPT_PIXELS:
            give_back()
        return view

    def too_slow(self, classifier: Classifier) -> TooSlow:
        return TooSlow(
            f"{classifier.name} did not come to this picture within {self.seconds:.0f} s; "
            "choose a smaller model, or try again when fewer people are here."
        )

    def run(self, job: Job, began: float) -> Any:
        """Wait for a job, `seconds` since it began with opening the picture. Whoever gives up waiting
        takes it out of the queue: it costs nothing then."""
        if ZERO_GPU:  # the GPU belongs to the thread that asks for it
            run_together([job])
            return job.answer.result()
        with self.news:
            while len(self.threads) < self.batches:
                self.threads.append(threading.Thread(target=self.work, name="model", daemon=True))
                self.threads[-1].start()
            self.waiting.append(job)
            self.news.notify()
        try:
            return job.answer.result(max(0.0, began + self.seconds - time.monotonic()))
        except TimeoutError:
            raise self.too_slow(job.classifier) from None
        finally:
            with self.news:
                if job in self.waiting:
                    self.waiting.remove(job)

    def work(self) -> None:
        while True:
            batch = self.next_batch()
            torch.set_num_threads(max(1, CORES // self.running))
            if not run_together(batch) and len(batch) > 1:  # too large, or one of them is at fault
                for job in batch:
                    run_together([job])
            batch = job = None  # while it waits, it shall keep no model and no picture
            with self.news:
                self.running -= 1

    def next_batch(self) -> list[Job]:
        """The one who waits longest, and those that can go along."""
        with self.news:
            self.news.wait_for(lambda: self.waiting)
            first = self.waiting[0]
            width, height = first.view.picture.size
            most = max(1, MOST_PIXELS // (width * height))
            batch = [job for job in self.waiting if job.goes_with(first)][:most]
            for job in batch:
                self.waiting.remove(job)
            self.running += 1
            return batch


def run_together(batch: Sequence[Job]) -> bool:
    """One forward pass for all, then each one's answer; whether that went well. A job that runs
    alone gets the error: somebody waits for it."""
    classifier, maps = batch[0].classifier, batch[0].maps
    SERVING[id(classifier)] = GPU_COPIES.get(classifier, classifier)
    try:
        results = forward(id(classifier), [job.view for job in batch], maps)
    except Exception as error:  # noqa: BLE001
        if len(batch) == 1:
            batch[0].answer.set_exception(error)
        return False
    for job, result in zip(batch, results, strict=True):
        try:
            job.answer.set_result(job.finish(*result))
        except Exception as error:  # noqa: BLE001
            job.answer.set_exception(error)
    return True


# On a ZeroGPU Space the GPU exists only inside decorated functions, which run in a process of their own.
# There, each model has a copy on the GPU for the first pass, and all later questions are answered on the
# CPU. Elsewhere there are no such copies.

ZERO_GPU = os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "true")
SERVING: WeakValueDictionary[int, Classifier] = WeakValueDictionary()
GPU_COPIES: WeakKeyDictionary[Classifier, Classifier] = WeakKeyDictionary()


def gpu(function: Callable) -> Callable:
    if not ZERO_GPU:
        return function
    import spaces

    return spaces.GPU(function)


@gpu
def forward(key: int, views: list[View], maps: bool) -> list[tuple]:
    """One forward pass: only small things go in, and only tensors on the CPU come out."""
    classifier = SERVING[key]
    if maps:
        found = classifier.explain_views(views, at_hand=True)  # the page asks at once, and for all
        return [(e.logits, e.recording) for e in found]
    return [(logits,) for logits in classifier.logits(views)]
