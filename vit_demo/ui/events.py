"""What happens when somebody clicks. What stands where: `layout.py`.

Everything that changes what is looked at (a picture, an example, a drawing, the fit, the model) ends
in one event, `look`. While it runs, later wishes wait, and only the newest of them is carried out.
Layer, head, patch and all other settings of the explorer never come here: the browser does them.
"""

import logging
import time
from collections import OrderedDict
from concurrent.futures import wait
from pathlib import Path
from types import SimpleNamespace

import gradio as gr

from vit_demo.checkpoints import LONGEST_NAME, CheckpointError, example_path
from vit_demo.image import ImageError
from vit_demo.map_settings import FITS, settings_in_link
from vit_demo.ui.guard import was_sent
from vit_demo.ui.html import (
    EXAMPLES,
    answer_html,
    bar_value,
    image_of,
    model_html,
    picture_value,
    strip_html,
    take_html,
)
from vit_demo.ui.layout import TABS, chooser, nothing, speak
from vit_demo.ui.limits import MOST_SESSIONS
from vit_demo.ui.models import instead_of, kind_of, on_its_way, title_of, why_not
from vit_demo.ui.store import Server
from vit_demo.ui.texts import language_of, one_sentence, words

log = logging.getLogger("vit_demo")


def connect(demo: gr.Blocks, ui: SimpleNamespace, server: Server, default: str) -> None:
    """What happens when."""

    wishes: OrderedDict[str, float] = OrderedDict()  # when each visitor last wished for a model

    def start(place: dict):
        """A visitor arrives, perhaps with a link, or goes back: language, model, picture, fit and
        settings. An upload comes back if it is still here."""
        place = place if isinstance(place, dict) else {}
        asked = place.get("parameters")
        asked = asked if isinstance(asked, dict) else {}
        asked = {name: value for name, value in asked.items() if isinstance(value, str)}
        language = language_of(asked.get("lang") or place.get("language"))
        model = asked.get("model") or default
        known = [name for names in EXAMPLES.values() for name in names]
        example = asked.get("example") if asked.get("example") in known else known[0]
        source = "none" if asked.get("example") == "none" else f"example {example}"
        # While a model is downloaded, the first one is there to be looked at.
        ready = default if model == default or not server.is_here(model) else ""
        settings = settings_in_link(asked)
        changes = speak(ui, server, language, default, None)
        changes[ui.model] = gr.update(value=model, **chooser(server, model, language))
        changes[ui.fit]["value"] = asked.get("fit") if asked.get("fit") in FITS else "crop"
        changes |= {
            ui.source: f"{source} {time.time()}",  # always another one: look again
            ui.ready: ready,
            ui.wish: {"model": model, "settings": settings} if settings else None,
        }
        upload = place.get("upload")
        if isinstance(upload, str) and was_sent(upload) and Path(upload).is_file():
            changes[ui.source] = f"picture {time.time()}"
            changes[ui.picture]["value"] = {"path": upload}
        return changes

    def load(model: str | None, ready: str, language: str, request: gr.Request):
        """Another model. Who wishes for a third one while it comes gets that. If it cannot be had,
        the page stays as it was and says why, until the visitor does something else."""
        language, ready = language_of(language), str(ready or "")
        wishes.pop(request.session_hash, None)
        mine = wishes[request.session_hash] = time.time()
        while len(wishes) > MOST_SESSIONS:
            wishes.popitem(last=False)
        model, kept = str(model or "").strip()[: LONGEST_NAME + 1], ready or default
        news, job = None, None
        if model in ("", ready):
            model = kept
        elif model not in server.models:
            job = server.fetch(model)
        while job and not job.done() and wishes.get(request.session_hash) == mine:
            latest = on_its_way(model) | {"wish": mine}
            if latest != news:
                yield {ui.knows: gr.update(news=latest)}
            news = latest
            wait([job], timeout=0.25)
        if wishes.get(request.session_hash) != mine:
            return  # what it said last may reach the page late: the page goes by `wish`
        try:
            if job:
                job.result()
            news = {}
        except (CheckpointError, ValueError) as error:
            news, model = cannot_be_had(server, model, str(error), kept), kept
        except Exception:
            log.exception("loading %s", model)
            news, model = cannot_be_had(server, model, "", kept), kept
        yield {
            ui.model: gr.update(value=model, shown=title_of(server, model, language)),
            ui.ready: model,
            ui.knows: gr.update(news=news | {"wish": mine}),
        }

    def look(source, upload, fit, ready, language, shown, wish):
        """The newest picture through the newest model: the one event that runs it."""
        language, source, ready = language_of(language), str(source or ""), str(ready or "")
        text = words(language)
        if not ready:  # a model is on its way; its arrival calls again
            return {ui.message: gr.skip()}
        try:
            if not server.is_here(ready):  # `load` makes models ready, and nobody else
                raise CheckpointError(text["failed_model"].format(name=ready))
            classifier = server.models.get(ready)
            kind = kind_of(classifier)
            what, example, *_ = f"{source or 'none'} ".split(" ")
            if what == "none":
                return nothing(ui, classifier, ready, fit, language)
            if what == "example" and example not in EXAMPLES[kind]:
                example = EXAMPLES[kind][0]
            if what == "example":
                file = str(example_path(example))
            else:
                file, example = path_of(upload), None
            id, explanation = server.explain(file, ready, fit, example)
        except (ImageError, CheckpointError, ValueError) as error:
            sentence = one_sentence(error, language)
        except Exception:
            log.exception("looking at a picture")
            sentence = text["failed"]
        else:
            settings = wish["settings"] if wish and wish["model"] == ready else None
            shown = {"id": id, "model": ready, "example": example, "fit": fit}
            shown["upload"] = None if example else file
            url = server.picture_url(id)
            contents = {
                ui.contents[name]: tab.value(server, id, explanation) for name, tab in TABS.items()
            }
            contents[ui.contents["explore"]] |= {
                "example": example,
                "image": image_of(shown),
            }
            if settings:
                contents[ui.contents["explore"]] |= {"state": settings}
            return {
                ui.picture: gr.update(shown=picture_value(explanation, url, language)),
                ui.bar: bar_value(explanation, url, language),
                ui.pad: gr.update(visible=True if kind == "digit" else "hidden"),
                ui.strip: gr.update(value=example, items=strip_html(language, kind)),
                ui.knows: model_html(explanation.classifier, language),
                ui.answer: answer_html(explanation, language),
                **contents,
                ui.take: take_html(shown, language),
                ui.link: gr.update(shown=shown),
                ui.status: "done",
                ui.message: "",
                ui.shown: shown,
                ui.wish: None if settings else wish,
            }
        return {
            ui.message: f"{sentence} {text['kept']}" if shown else sentence,
            ui.status: "failed",
        }

    def relabel(language: str, ready: str, shown: dict | None):
        return speak(ui, server, language_of(language), str(ready or default), shown)

    spoken = list(speak(ui, server, "en", default, None))
    quiet = {"api_visibility": "private"}
    inputs = [ui.source, ui.picture, ui.fit, ui.ready, ui.language, ui.shown, ui.wish]
    outputs = [ui.picture, ui.bar, ui.pad, ui.strip, ui.knows, ui.answer, *ui.contents.values()]
    outputs += [ui.take, ui.link, ui.status, ui.message, ui.shown, ui.wish]
    gr.on(
        [ui.source.change, ui.fit.input, ui.ready.change],
        look,
        inputs,
        outputs,
        trigger_mode="always_last",
        concurrency_id="model",
        concurrency_limit=16,  # they wait for the runner, which takes several at once
        show_progress_on=ui.status,
        **quiet,
    )
    loading = {
        "fn": load,
        "inputs": [ui.model, ui.ready, ui.language],
        "outputs": [ui.model, ui.ready, ui.knows],
        "concurrency_id": "load",
        "concurrency_limit": 32,  # they wait for downloads
        "show_progress": "hidden",  # the line about the model says how far it is
        **quiet,
    }
    ui.model.input(**loading, trigger_mode="multiple")
    arrival = [*spoken, ui.source, ui.ready, ui.wish]
    gr.on(
        [demo.load, ui.link.submit],
        start,
        ui.place,
        arrival,
        js=PLACE,
        trigger_mode="always_last",  # who goes back twice in a moment is heard twice
        show_progress="hidden",
        queue=False,
        **quiet,
    ).then(**loading, trigger_mode="multiple")
    ui.language.input(
        relabel,
        [ui.language, ui.ready, ui.shown],
        spoken,
        show_progress="hidden",
        queue=False,
        **quiet,
    )
    ui.picture.input(None, ui.picture, ui.source, js=NEWEST, **quiet)
    ui.strip.input(None, ui.strip, ui.source, js=CHOSEN, **quiet)


def cannot_be_had(server: Server, model: str, reason: str, kept: str) -> dict:
    """Why a model is not on the page, which one is, and which ones could be."""
    says, instead, names = {}, {}, [name for name in instead_of(model, reason) if name != kept]
    for language, sentence in why_not(model, reason).items():
        still = words(language)["model_kept"].format(kept=title_of(server, kept, language))
        says[language] = f"{sentence} {still}"
        instead[language] = [
            {"name": name, "title": title_of(server, name, language)} for name in names
        ]
    return {"says": says, "instead": instead, "failed": True}


PLACE = """() => [{
    language: localStorage.getItem('vit-demo-language') || navigator.language,
    parameters: Object.fromEntries(new URLSearchParams(location.search)),
    upload: history.state?.upload,
}]"""


# The same example may be chosen again, after something went wrong: only another value is news.
CHOSEN = "(name) => `example ${name} ${Date.now()}`"


# A new picture is looked at; without one the page is empty.
NEWEST = "(value) => `${value ? 'picture' : 'none'} ${Date.now()}`"


def path_of(upload: object) -> str:
    """Where the visitor's picture lies. `guard.py` has looked at paths that are named so, and at no
    others."""
    path = upload.get("path") if isinstance(upload, dict) else None
    if not isinstance(path, str):
        raise ImageError("The picture did not arrive; choose it again in step 1.")
    return path
