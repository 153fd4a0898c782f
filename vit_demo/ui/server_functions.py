"""What the browser asks for without an event: short questions about one explanation.

Gradio calls these with one argument, without a queue; an answer with `error` is shown to the visitor.
What takes longer than a few forward passes is in `questions.py`, and waits in the queue.
"""

import base64
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path

import torch

from vit_demo import trust as faithful
from vit_demo.checkpoints.timm_models import supported_timm
from vit_demo.explain import Explanation
from vit_demo.image import ImageError
from vit_demo.trust import knockout
from vit_demo.ui import models, payload
from vit_demo.ui.guard import NO_FIT, note
from vit_demo.ui.runner import CORES, TooSlow
from vit_demo.ui.store import FILES, Server
from vit_demo.ui.texts import language_of, names_in, one_sentence, words
from vit_demo.validate import choice, pair, whole

SECONDS = 60.0  # nobody waits longer for his turn
MOST_CLASSES = 64  # of one picture, whose maps are remembered
ODD = (KeyError, TypeError, IndexError, OverflowError)  # a request that no page sends
log = logging.getLogger("vit_demo")


class AllCores(threading.Semaphore):
    """A few at a time, each on all cores. (What `runner.py` set when this thread began stays with it.)
    Nobody waits for ever: whoever waits holds a thread."""

    def __enter__(self) -> bool:
        if not self.acquire(timeout=SECONDS):
            raise TooSlow("Many people ask at once; try again when fewer are here.")
        torch.set_num_threads(CORES)
        return True


PREPARING = threading.Lock()
BUSY = AllCores(2)  # without a queue, somebody has to keep visitors from crowding in

Question = Callable[[Explanation, dict], dict]


def answering(server: Server, question: Question) -> Callable[[dict], dict]:
    """The question as a function for `server_functions`: from a request with the explanation's id."""

    def answer(request: dict) -> dict:
        request = request_of(request)
        text = words(request.get("language"))
        try:
            explanation = server.store.get(str(request.get("id")))
            if explanation is None:
                return {"error": text["gone"]}
            try:
                with BUSY:
                    return question(explanation, request)
            finally:
                server.store.trim()  # the answer may be kept, too
        except ValueError as error:  # the library's own words
            return {"error": one_sentence(error, language(request))}
        except ODD as error:
            note(question.__name__, error)
            return {"error": one_sentence(NO_FIT, language(request))}
        except Exception:
            log.exception("answering %s", question.__name__)
            return {"error": text["failed_answer"]}

    answer.__name__ = question.__name__
    return answer


def attention_rows(explanation: Explanation, request: dict) -> dict:
    """What a lean payload left out, for the explorer: of a layer, of a fusion, or of a patch."""
    if "layer" in request:
        found = payload.layer_rows(explanation, whole_number("layer", request["layer"]))
    elif "fusion" in request:
        found = payload.fused_rows(explanation, request["fusion"])
    else:
        query = request.get("query")
        query = None if query is None else place("query", query)
        found = payload.query_rows(explanation, query)
    return {"data": base64.b64encode(found).decode()}


def class_maps(explanation: Explanation, request: dict) -> dict:
    """Why this label, or these two?"""
    labels = [whole_number("label", label) for label in request["labels"][:2]]
    labels = [explanation.label_index(label) for label in labels]
    know_classes(explanation, labels)
    return {"classes": payload.class_maps(explanation, labels)}


def all_labels(explanation: Explanation, request: dict) -> dict:
    """Every label of the model: for the search."""
    return {"model": explanation.model_name, "labels": list(explanation.labels)}


def method_maps(explanation: Explanation, request: dict) -> dict:
    """Every method's map of one label, (methods, rows, cols) as base64."""
    label = explanation.label_index(request.get("label"))
    know_classes(explanation, [label])
    maps = faithful.method_maps(explanation, label)
    data = torch.stack(list(maps.values())).numpy().astype("<f4").tobytes()
    about = {"label": label, "name": explanation.labels[label], "methods": list(maps)}
    return about | {"data": base64.b64encode(data).decode()}


def without(explanation: Explanation, request: dict) -> dict:
    """The answer without some heads, layers' attention and patches."""
    off = {
        "heads": [place("head", head) for head in request.get("heads", ())],
        "layers": [whole_number("layer", layer) for layer in request.get("layers", ())],
        "patches": [place("patch", patch) for patch in request.get("patches", ())],
        "fill": str(request.get("fill", "black")),
    }
    found = knockout.without(explanation, **off)
    return {
        when: [asdict(change) for change in getattr(found, when)] for when in ("before", "after")
    }


def whole_number(what: str, value: object) -> int:
    """A number as JSON has it: 3.0 is one, too, and so is "3"."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return whole(what, value)


def place(what: str, value: object) -> tuple[int, int]:
    """Layer and head, or row and column."""
    first, second = pair(what, value, "two whole numbers")
    return whole_number(what, first), whole_number(what, second)


def know_classes(explanation: Explanation, labels: list[int]) -> None:
    """Let the explanation remember the maps of these classes, and forget the oldest others."""
    explanation.contribution(labels), explanation.relevance(labels)  # the others come with it
    forget_classes(explanation, labels)


def forget_classes(explanation: Explanation, but: list[int]) -> None:
    """Forget the maps of the oldest classes, if there are many."""
    kept = explanation.class_vectors
    for old in [label for label in list(kept) if label not in but][
        : max(0, len(kept) - MOST_CLASSES)
    ]:
        kept.pop(old, None)


def about_models(server: Server) -> list[Callable[[dict], dict]]:
    """What the chooser and the line about the model ask: names, sizes, all labels."""

    def find_models(request: dict) -> dict:
        """The models that are called so; all that are offered, if nothing is asked for."""
        if not request.get("text"):  # somebody opens the list: what a search needs is prepared
            prepare_search()
        return models.find_models(server, str(request.get("text") or "")[:200], language(request))

    def imagenet_offer(request: dict) -> dict:
        """The ImageNet model that can be used instead of a small one."""
        return models.imagenet_offer(server, language(request))

    def known_labels(request: dict) -> dict:
        """Everything that a model which is loaded can name."""
        name = str(request.get("model"))
        if name not in server.models:
            return {"error": words(request.get("language"))["failed_answer"]}
        labels = server.models.get(name).labels
        return {"labels": [names_in(label, labels, language(request)) for label in labels]}

    return [guarded(question) for question in (find_models, imagenet_offer, known_labels)]


def prepare_search() -> None:
    """timm's list takes a second; whoever comes meanwhile does not need another thread."""
    if not PREPARING.acquire(blocking=False):
        return

    def work() -> None:
        try:
            supported_timm()
        finally:
            PREPARING.release()

    threading.Thread(target=work, daemon=True).start()


def language(request: dict) -> str:
    return language_of(request.get("language"))


def request_of(sent: object) -> dict:
    """What the browser sends is a dict; others may send anything."""
    return sent if isinstance(sent, dict) else {}


def guarded(question: Callable[[dict], dict]) -> Callable[[dict], dict]:
    """The question with an answer in words, whatever is sent and whatever happens."""

    @wraps(question)
    def answer(request: dict) -> dict:
        request = request_of(request)
        try:
            return question(request)
        except (ImageError, TooSlow) as error:  # what is wrong, and what to do next
            return {"error": one_sentence(error, language(request))}
        except Exception:
            log.exception("answering %s", question.__name__)
            return {"error": words(request.get("language"))["failed_answer"]}

    return answer


def files_on_demand(server: Server):
    def save_file(request: dict) -> dict:
        """One of the files to take away; the answer says where it is."""
        request = request_of(request)
        text = words(request.get("language"))
        id, state = str(request.get("id")), request_of(request.get("state"))
        try:
            kind = choice("kind", request.get("kind"), FILES)
            with BUSY:
                name = server.save(id, kind, state, language(request))
        except (ValueError, TooSlow) as error:
            return {"error": one_sentence(error, language(request))}
        except Exception:
            log.exception("saving a file")
            return {"error": text["take_failed"]}
        if not name:
            return {"error": text["gone"]}
        return {"url": server.url(id, name), "name": Path(name).name}

    return save_file
