"""What happens when somebody clicks. What stands where: `layout.py`.

Everything that changes what is looked at (a picture, an example, a drawing, the fit, the model) ends
in one event, `look`. While it runs, later wishes wait, and only the newest of them is carried out.
Layer, head, patch and all other settings of the explorer never come here: the browser does them.
"""

import base64
import logging
import time
from pathlib import Path
from types import SimpleNamespace

import gradio as gr

from vit_demo.checkpoints import CheckpointError, example_path
from vit_demo.image import ImageError
from vit_demo.map_settings import FITS, settings_in_link
from vit_demo.ui.guard import was_sent
from vit_demo.ui.html import (
    EXAMPLES,
    answer_html,
    bar_value,
    picture_value,
    strip_html,
    take_html,
)
from vit_demo.ui.layout import TABS, nothing, speak
from vit_demo.ui.models import kind_of
from vit_demo.ui.store import Server
from vit_demo.ui.texts import language_of, one_sentence, words

log = logging.getLogger("vit_demo")


def connect(demo: gr.Blocks, ui: SimpleNamespace, server: Server, default: str) -> None:
    """What happens when."""

    def start(place: dict):
        """A visitor arrives, perhaps with a link, or goes back: language, model, picture, fit and
        settings. An upload comes back if it is still here."""
        asked = (place or {}).get("parameters") or {}
        language = language_of(asked.get("lang") or (place or {}).get("language"))
        model = asked.get("model") or default
        known = [name for names in EXAMPLES.values() for name in names]
        example = asked.get("example") if asked.get("example") in known else known[0]
        changes = speak(ui, server, language, None)
        changes[ui.model]["value"] = model
        changes[ui.fit]["value"] = asked.get("fit") if asked.get("fit") in FITS else "crop"
        changes |= {
            ui.source: f"example {example} {time.time()}",  # always another one: look again
            ui.ready: default if model == default else "",
            ui.wish: settings_in_link(asked) or None,
        }
        upload = (place or {}).get("upload")
        if isinstance(upload, str) and was_sent(upload) and Path(upload).is_file():
            changes[ui.source] = f"picture {time.time()}"
            changes[ui.picture]["value"] = {"path": upload}
        return changes

    def load(model: str | None, ready: str, language: str):
        """Another model. If it cannot be had, the page stays as it was and says why."""
        model, kept = (model or "").strip(), ready or default
        if model in ("", ready):
            yield {ui.model: kept, ui.ready: kept}
            return
        text = words(language)
        if model not in server.models:
            loading = text["loading"].format(name=model)
            yield {ui.message: loading}
        try:
            server.models.get(model)
            yield {ui.ready: model, ui.message: ""}
            return
        except (CheckpointError, ValueError) as error:
            reason = one_sentence(error)
        except Exception:
            log.exception("loading %s", model)
            reason = text["failed_model"].format(name=model)
        if "hub cannot be reached" in reason:
            reason = text["hub"].format(name=model)
        sentence = f"{reason} {text['model_kept'].format(kept=kept)}".strip()
        yield {ui.model: kept, ui.ready: kept, ui.message: sentence}

    def look(source, upload, drawing, fit, ready, language, shown, wish):
        """The newest picture through the newest model: the one event that runs it."""
        text = words(language)
        if not ready:  # a model is on its way; its arrival calls again
            return {ui.message: gr.skip()}
        if not source:
            return nothing(ui, language)
        try:
            kind = kind_of(server.models.get(ready))
            what, example, *_ = source.split(" ")
            if what == "example" and example not in EXAMPLES[kind]:
                example = EXAMPLES[kind][0]
            elif what == "drawing" and kind == "photo":
                what, example = "example", EXAMPLES[kind][0]
            if what == "example":
                file = str(example_path(example))
            else:
                file, example = decoded(drawing) if what == "drawing" else path_of(upload), None
            id = server.explain(file, ready, fit, example)
            explanation = server.store.get(id)
        except (ImageError, CheckpointError, ValueError) as error:
            sentence = one_sentence(error)
        except Exception:
            log.exception("looking at a picture")
            sentence = text["failed"]
        else:
            shown = {"id": id, "model": ready, "example": example, "fit": fit}
            shown["upload"] = file if what == "picture" else None
            url = server.picture_url(id)
            contents = {
                ui.contents[name]: tab.value(server, id, explanation) for name, tab in TABS.items()
            }
            contents[ui.contents["explore"]] |= {"example": example}
            if wish:
                contents[ui.contents["explore"]] |= {"state": wish}
            return {
                ui.picture: gr.update(shown=picture_value(explanation, url, language)),
                ui.bar: bar_value(explanation, url, language),
                ui.pad: gr.update(visible=True if kind == "digit" else "hidden"),
                ui.strip: gr.update(value=example, items=strip_html(language, kind)),
                ui.answer: answer_html(explanation, language),
                **contents,
                ui.take: take_html(shown, language),
                ui.link: gr.update(shown=shown),
                ui.status: "done",
                ui.message: "",
                ui.shown: shown,
                ui.wish: None,
            }
        return {
            ui.message: f"{sentence} {text['kept']}" if shown else sentence,
            ui.status: "failed",
        }

    def relabel(language: str, shown: dict | None):
        return speak(ui, server, language, shown)

    spoken = list(speak(ui, server, "en", None))
    quiet = {"api_visibility": "private"}
    inputs = [ui.source, ui.picture, ui.pad, ui.fit, ui.ready, ui.language, ui.shown, ui.wish]
    outputs = [ui.picture, ui.bar, ui.pad, ui.strip, ui.answer, *ui.contents.values()]
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
        "outputs": [ui.model, ui.ready, ui.message],
        "concurrency_id": "load",
        "concurrency_limit": 4,
        "show_progress_on": ui.status,
        **quiet,
    }
    ui.model.input(**loading, trigger_mode="always_last")
    arrival = [*spoken, ui.source, ui.ready, ui.wish]
    gr.on(
        [demo.load, ui.link.submit],
        start,
        ui.place,
        arrival,
        js=PLACE,
        show_progress="hidden",
        queue=False,
        **quiet,
    ).then(**loading)
    ui.language.input(
        relabel, [ui.language, ui.shown], spoken, show_progress="hidden", queue=False, **quiet
    )
    ui.picture.input(None, ui.picture, ui.source, js=newest("picture"), **quiet)
    ui.pad.input(None, ui.pad, ui.source, js=newest("drawing"), **quiet)
    ui.strip.input(None, ui.strip, ui.source, js="(name) => `example ${name}`", **quiet)


PLACE = """() => [{
    language: localStorage.getItem('vit-demo-language') || navigator.language,
    parameters: Object.fromEntries(new URLSearchParams(location.search)),
    upload: history.state?.upload,
}]"""


def newest(what: str) -> str:
    """For the browser: a new picture or drawing is looked at; without one the page is empty."""
    return f"(value) => value ? `{what} ${{Date.now()}}` : ''"


def path_of(upload: object) -> str:
    """Where the visitor's picture lies. `guard.py` has looked at paths that are named so, and at no
    others."""
    path = upload.get("path") if isinstance(upload, dict) else None
    if not isinstance(path, str):
        raise ImageError("The picture did not arrive; choose it again in step 1.")
    return path


def decoded(drawing: str | None) -> bytes:
    """The drawing pad's data URL as the bytes of a PNG file."""
    try:
        return base64.b64decode((drawing or "").partition(",")[2], validate=True)
    except ValueError as error:
        raise ImageError("The drawing did not arrive; draw it again.") from error
