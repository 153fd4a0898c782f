"""The tab Compare: another picture, or another model, beside what is on the page.

The browser names the second one; it is looked at here, in a queue of its own, so that nobody waits for it
but those who asked. The answer says where its data lie and what matches what. Maps, their difference and
their rank correlation are computed in the browser (`static/compare/pairs.js`), as `vit_demo.compare` does.
"""

import json
import logging
from collections.abc import Iterator
from concurrent.futures import wait

import gradio as gr

from vit_demo import compare
from vit_demo.checkpoints import CheckpointError, example_path
from vit_demo.explain import Explanation
from vit_demo.image import ImageError
from vit_demo.labels import same_labels
from vit_demo.map_settings import CLASS_MAPS, FUSIONS, PLAIN_MAPS
from vit_demo.ui import server_functions as ask
from vit_demo.ui.guard import was_sent
from vit_demo.ui.html import EXAMPLES, HTML, chooser_words
from vit_demo.ui.models import instead_of, kind_of, on_its_way, why_not
from vit_demo.ui.static import mount_script
from vit_demo.ui.store import Server
from vit_demo.ui.texts import EXPLORER_TEXTS, LANGUAGES, language_of, names_in, one_sentence, words

MOST_ANSWERS = 5
BORROWED = (
    *("map", "head", "method", "layer", *PLAIN_MAPS, "class", *CLASS_MAPS, "random"),
    *(f"heads_{fusion}" for fusion in FUSIONS),
    *("to_head", "layer_all", "layer_of", "back_class", "patch", "points", "png", "tip_patch"),
    *("picture_label", "part_special", "lost"),
)
log = logging.getLogger("vit_demo")


def make_tab(server: Server) -> gr.HTML:
    """The component. Its value is None or {"id", "example", "examples", "answers"} of what is on the page; it triggers
    `submit` with a request; its property `news` is what `look` yields."""
    chooser = {language: chooser_words(language) for language in LANGUAGES}
    setup = {"texts": texts(), "chooser": chooser, "shares": compare.SHARES}
    questions = [ask.answering(server, one) for one in (ask.attention_rows, ask.class_maps)]

    def load_model(request: dict) -> dict:
        """A link may name two models: the second is loaded while the first is on its way. (What must be
        downloaded waits until somebody listens.)"""
        if server.is_here(name := str(request.get("model"))):
            server.fetch(name)
        return {}

    section = HTML(
        None,
        html_template='<div class="vitx cmp"></div>',
        js_on_load=mount_script("compare/index.js", json.dumps(setup, ensure_ascii=False)),
        server_functions=[*questions, *ask.about_models(server)[:1], ask.guarded(load_model)],
        elem_id="compare",
        news=None,
        language="en",
    )

    def answer(event: gr.EventData):
        for news in look(server, ask.request_of(event._data)):
            yield gr.update(news=news)

    section.submit(
        answer,
        None,
        section,
        concurrency_id="compare",
        concurrency_limit=8,
        trigger_mode="multiple",
        show_progress="hidden",
        api_visibility="private",
    )
    return section


def texts() -> dict[str, dict[str, str]]:
    """The words of this tab, and those of the explorer for what both have."""
    return {
        name: {key: EXPLORER_TEXTS[name][key] for key in BORROWED} | language.COMPARE
        for name, language in LANGUAGES.items()
    }


def tab_value(server: Server, id: str, explanation: Explanation) -> dict:
    return {
        "id": id,
        "example": server.store.example_of(id),
        "examples": EXAMPLES[kind_of(explanation.classifier)],
        "answers": answers(explanation),
    }


def look(server: Server, request: dict) -> Iterator[dict]:
    """What the visitor wants beside the picture `id`: a `model`, an `example`, or a `file` that was sent.
    While a model is on its way, how far it is; in the end the second one, or an `error`."""
    language, run = language_of(request.get("language")), request.get("run")
    text = words(language)
    id, name = request.get("id"), str(request.get("model") or "").strip()
    try:
        first = server.store.get(str(id))
        if first is None:
            yield {"run": run, "error": text["gone"]}
            return
        fit = first.view.fit
        if name:
            yield from ({"run": run, **news} for news in fetch(server, name))
            example = server.store.example_of(str(id))
            found = server.explain(first.view, name, fit, example)
        else:
            picture, example = second_picture(first, request)
            found = server.look(first.classifier, picture, fit, example)
        yield {"run": run, "result": {"url": server.url(found[0]), **pair(first, *found)}}
    except CheckpointError as error:
        sentence, names = why_not(name, str(error))[language], instead_of(name, str(error))
        if not any(other in sentence for other in names) and names:
            sentence += " " + text["closest"].format(names=", ".join(names))
        yield {"run": run, "error": sentence}
    except (ImageError, ValueError) as error:
        yield {"run": run, "error": one_sentence(error, language)}
    except Exception:
        log.exception("looking at a second one")
        yield {"run": run, "error": text["failed_answer"]}


def second_picture(first: Explanation, request: dict) -> tuple[str, str | None]:
    """The file of a second picture, and its name if it is an example."""
    example, file = request.get("example"), request.get("file")
    if example in EXAMPLES[kind_of(first.classifier)]:
        return str(example_path(example)), example
    if isinstance(file, str) and was_sent(file):
        return file, None
    raise ValueError("There is no such picture here; choose an example, or send one.")


def fetch(server: Server, name: str) -> Iterator[dict]:
    """Load a model, and say how far it is; raises what the loader raises."""
    if name in server.models:
        return
    job, told = server.fetch(name), None
    while not job.done():
        latest = on_its_way(name)
        if latest != told:
            yield latest
        told = latest
        wait([job], timeout=0.25)
    job.result()


def pair(first: Explanation, id: str, second: Explanation) -> dict:
    """Everything that the browser does not compute by itself."""
    return {
        "id": id,
        "same_picture": compare.same_picture(first, second),
        "boxes": compare.places(first, second),
        "bounds": compare.bounds(first, second),
        "agree": compare.same_answer(first, second),
        "answers": answers(second),
        "labels": [
            {
                "names": names(label.label, first if label.first is not None else second),
                "first": label.first,
                "second": label.second,
                "index": label.index,
            }
            for label in compare.shared_labels(first, second)
        ],
        "matches": {str(a): b for a, b in same_labels(first.labels, second.labels).items()},
    }


def answers(explanation: Explanation) -> list[dict]:
    """The best labels, in every language: the visitor may change it."""
    found = explanation.top(MOST_ANSWERS) if explanation.labels else []
    return [{"names": names(p.label, explanation), "probability": p.probability} for p in found]


def names(label: str, explanation: Explanation) -> dict[str, str]:
    return {language: names_in(label, explanation.labels, language)[0] for language in LANGUAGES}
