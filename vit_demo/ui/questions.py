"""Can I trust this map? The long questions: each takes many forward passes, and one at a time is
answered, in Gradio's queue. The browser's side is in `static/trust/`.

The library works in a thread and reports how far it is; `watched` passes that on as a generator.
When the generator is closed (somebody pressed Cancel, or closed the page) the work is told to stop,
and stops before its next forward pass.
"""

import base64
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import gradio as gr
import torch
from torch import Tensor

from vit_demo import trust as faithful
from vit_demo.explain import Explanation
from vit_demo.export import shown_map
from vit_demo.map_settings import settings_from
from vit_demo.trust import Progress, Trust, knockout
from vit_demo.ui import server_functions as ask
from vit_demo.ui.guard import NO_FIT, note
from vit_demo.ui.html import HTML
from vit_demo.ui.runner import CORES, TooSlow
from vit_demo.ui.static import mount_script
from vit_demo.ui.store import Server
from vit_demo.ui.texts import TRUST_TEXTS, one_sentence, words

SECONDS = 300  # nobody else can ask meanwhile
log = logging.getLogger("vit_demo")


# The questions. Answers are what JSON knows.


def trust(explanation: Explanation, request: dict, progress: Progress) -> dict:
    """Deletion and insertion curves of all methods, or of the map in the explorer (`state`); for a
    `thorough` check with patches removed in two ways. Which method did best is said only where there
    are several."""
    label, state = explanation.label_index(request.get("label")), request.get("state")
    if state:
        maps = {"shown": shown_map(explanation, settings_from(ask.request_of(state)))}
    else:
        maps = faithful.method_maps(explanation, label)
    found = faithful.check(
        explanation,
        maps,
        label,
        remove=str(request.get("remove", "tokens")),
        thorough=request.get("thorough") is True,
        progress=progress,
    )
    return {
        "label": label,
        "name": explanation.labels[label],
        "best": found.best and found.best.describe(),
        "ways": [curves_of(way, trusts) for way, trusts in found.ways.items()],
    }


def curves_of(remove: str, trusts: dict[str, Trust]) -> dict:
    one = next(iter(trusts.values()))
    return {
        "remove": remove,
        "kept": numbers(one.kept),
        "random": numbers(one.random),
        "band": one.band,
        "maps": {
            name: {
                "deletion": numbers(each.deletion),
                "insertion": numbers(each.insertion),
                "score": each.score,
                "verdict": each.verdict,
            }
            for name, each in trusts.items()
        },
    }


def random_weights(explanation: Explanation, request: dict, progress: Progress) -> dict:
    """Maps of one method while the blocks become random, from the top down."""
    method, label = str(request.get("method")), explanation.label_index(request.get("label"))
    found = faithful.random_weights(explanation, method, label, progress=progress)
    return {
        "method": method,
        "label": label,
        "heats": base64.b64encode(found.heats.numpy().astype("<f4").tobytes()).decode(),
        "correlations": numbers(found.correlations),
        "passed": found.passed,
    }


def head_wall(explanation: Explanation, request: dict, progress: Progress) -> dict:
    """What happens to a label without each head."""
    label = explanation.label_index(request.get("label"))
    changes = knockout.knockout_wall(explanation, label, progress=progress)
    before = float(explanation.logits.softmax(dim=-1)[label])
    return {"label": label, "before": before, "changes": numbers(changes)}


QUESTIONS = {"trust": trust, "random": random_weights, "wall": head_wall}


def numbers(tensor: Tensor) -> list:
    return tensor.double().tolist()


# Asking


def watched(call: Callable[[Progress], dict]) -> Iterator[dict]:
    """Run `call(progress)` in a thread: {"done", "total"} now and then, in the end {"result"} or
    {"error"}. Whoever closes this generator stops the work."""
    news: queue.SimpleQueue[dict] = queue.SimpleQueue()
    stop, began = threading.Event(), time.monotonic()

    def progress(done: int, total: int) -> bool:
        if time.monotonic() - began > SECONDS:
            raise TooSlow(f"Stopped after {SECONDS} s; choose a smaller model for this question.")
        news.put({"done": done, "total": total})
        return not stop.is_set()

    def work() -> None:
        torch.set_num_threads(CORES)
        try:
            news.put({"result": call(progress)})
        except faithful.Cancelled:
            news.put({"error": ""})  # nobody listens any more
        except ValueError as error:  # the library's own words
            news.put({"error": one_sentence(error)})
        except ask.ODD as error:
            note("a long question", error)
            news.put({"error": NO_FIT})
        except Exception:
            log.exception("a long question failed")
            news.put({"error": None})

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            latest = news.get()
            while "done" in latest and not news.empty():
                latest = news.get()
            yield latest
            if "done" not in latest:
                return
    finally:
        stop.set()


def work(server: Server, request: dict) -> Iterator[dict]:
    """What the visitor asked for, step by step, with the number of the run it belongs to."""
    text, run, kind = words(request.get("language")), request.get("run"), str(request.get("kind"))
    explanation = server.store.get(str(request.get("id")))
    if explanation is None or kind not in QUESTIONS:
        yield {"run": run, "error": text["failed_answer" if explanation else "gone"]}
        return
    yield {"run": run, "done": 0, "total": 1}
    watching = watched(partial(QUESTIONS[kind], explanation, request))
    try:
        for news in watching:
            if news.get("error", "") is None:
                news = {"error": text["failed_answer"]}
            elif "error" in news:
                news = {"error": one_sentence(news["error"], request.get("language"))}
            yield {"run": run, **news}
    finally:
        watching.close()
        server.store.trim()


# The component


def make_section(server_functions: list[Callable], elem_id: str = "why") -> gr.HTML:
    """The section. Its value is None or {"id", "classes"}: which explanation, how many labels. Its
    property `news` is what `work` yields; it triggers `submit` with a request, and `stop`."""
    setup = {
        "texts": TRUST_TEXTS,
        "methods": list(faithful.METHODS),
        "removals": faithful.REMOVALS,
        "fills": faithful.FILLS,
    }
    return HTML(
        None,
        html_template='<div class="why"></div>',
        js_on_load=mount_script("trust/index.js", json.dumps(setup, ensure_ascii=False)),
        server_functions=server_functions,
        elem_id=elem_id,
        news=None,
        language="en",
    )


def make_tab(server: Server) -> gr.HTML:
    """The section and its queue."""
    status = HTML("", elem_id="working")  # the queue and the clock, in Gradio's words
    short = [ask.answering(server, question) for question in (ask.method_maps, ask.without)]
    section = make_section(short)
    connect_section(section, status, server)
    return section


def tab_value(server: Server, id: str, explanation: Explanation) -> dict:
    return {"id": id, "classes": len(explanation.labels)}


def connect_section(section: gr.HTML, status: gr.HTML, server: Server) -> None:
    """Long questions wait in a queue of their own; Cancel closes the generator."""

    def answer(event: gr.EventData):
        for news in work(server, ask.request_of(event._data)):
            yield gr.update(news=news)

    quiet = {"api_visibility": "private"}
    working = section.submit(
        answer,
        None,
        section,
        concurrency_id="trust",
        concurrency_limit=1,
        show_progress_on=status,
        **quiet,
    )
    section.stop(None, None, None, cancels=[working], **quiet)
