"""The page: what stands where, and what happens when somebody clicks.

Everything that changes what is looked at (a picture, an example, a drawing, the fit, the model) ends
in one event, `look`. While it runs, later wishes wait, and only the newest of them is carried out.
Layer, head, patch and all other settings of the explorer never come here: the browser does them.
"""

import base64
import io
import json
import logging
import os
import re
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache, partial
from html import escape
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr
from PIL import Image

from vit_demo.checkpoints import ASSETS, DEFAULT, SUFFIXES, CheckpointError, embedded
from vit_demo.explain import Classifier, Explanation
from vit_demo.image import FITS, ImageError
from vit_demo.ui import explorer
from vit_demo.ui.store import Server, description
from vit_demo.ui.texts import CITATION, CURATED, EXAMPLE_NAMES, language_of, words

HERE = Path(__file__).parent
EXAMPLES = {
    "photo": ("cat", "lion", "cheetah", "coffee", "tower", "rocket", "horse", "bus"),
    "digit": ("digit-two", "digit-three", "digit-four", "digit-five", "digit-seven", "digit-eight"),
}
SPACES_DEFAULT = "deit_small_patch16_224.fb_in1k"
VIEW_KEYS = ("map", "layer", "head", "query", "direction", "below", "residual", "discard")
VIEW_KEYS += ("opacity", "smooth", "colours", "scale", "sort")
log = logging.getLogger("vit_demo")


class Picture(gr.Image):
    """An image that hands over the file as it came: our own reader has the better messages."""

    is_template = True

    def preprocess(self, payload):
        return payload and payload.path


HTML = partial(gr.HTML, apply_default_css=False)


# Pieces of HTML


def step(number: int, title: str) -> str:
    return f'<h2 class="step"><span>{number}</span>{escape(title)}</h2>'


@cache
def example_path(name: str) -> Path:
    return next((ASSETS / "examples").glob(f"{name}.*"))


@cache
def thumbnail(name: str) -> str:
    picture = Image.open(example_path(name)).convert("RGB")
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    picture = picture.crop((left, top, left + side, top + side)).resize((96, 96))
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()


@cache
def strip_html(language: str, kind: str) -> str:
    """The examples of this kind of model, as buttons."""
    buttons = []
    for name in EXAMPLES[kind]:
        label = escape(EXAMPLE_NAMES[name][language])
        buttons.append(
            f'<button type="button" data-example="{name}" title="{label}" aria-pressed="false">'
            f'<img src="{thumbnail(name)}" alt="{label}" width="48" height="48"></button>'
        )
    label = escape(words(language)["examples"])
    return f'<div class="strip" role="group" aria-label="{label}">{"".join(buttons)}</div>'


def frame_html(explanation: Explanation | None, language: str) -> str:
    """What the model saw of the picture: a frame that lies over it, and a sentence below it."""
    if explanation is None:
        return ""
    view, text = explanation.view, words(language)
    w, h = view.original.size
    left, top, right, bottom = (
        min(max(edge, 0), side) for edge, side in zip(view.box, (w, h, w, h), strict=True)
    )
    whole = (right - left) * (bottom - top) > 0.995 * w * h
    about = text[f"about_{view.fit}" + ("_all" if view.fit == "crop" and whole else "")]
    rows, cols = view.grid
    hole = f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}Z"
    return (
        f'<svg class="frame" viewBox="0 0 {w} {h}" data-box="{left:.1f} {top:.1f} {right:.1f} '
        f'{bottom:.1f}" aria-hidden="true"><path class="unseen" fill-rule="evenodd" '
        f'd="M0 0H{w}V{h}H0Z{hole}"/><path class="seen" d="{hole}"/></svg>'
        f"<p>{escape(about.format(rows=rows, cols=cols))}</p>"
    )


def answer_html(explanation: Explanation | None, language: str) -> str:
    """The labels, with bars; the first one large."""
    text = words(language)
    if explanation is None:
        return f'<p class="empty">{escape(text["answer_empty"])}</p>'
    if not explanation.labels:
        return f'<p class="empty">{escape(text["answer_maps"])}</p>'
    rows = []
    for rank, p in enumerate(explanation.top(10)):
        first, _, others = p.label.partition(",")
        others = f"<small>{escape(others.strip())}</small>" if others else ""
        percent = f"{100 * p.probability:.1f}"
        rows.append(
            f'<li tabindex="0" data-index="{p.index}" style="--share:{percent}%">'
            f'<span class="label">{escape(first)}{others}</span>'
            f'<span class="bar" aria-hidden="true"></span>'
            f'<span class="percent">{percent}\u2009%</span></li>'
        )
    title = escape(text["answer_title"])
    return f'<ol class="answer" aria-label="{title}">{"".join(rows)}</ol>'


def take_html(shown: dict | None, language: str) -> str:
    """Files and links. The button's data say what to make; `page.js` asks the server for it."""
    text, shown = words(language), shown or {}
    off = "" if shown.get("id") else " disabled"
    buttons = "".join(
        f'<button type="button" data-kind="{kind}"{off}>{escape(text[f"take_{kind}"])}</button>'
        for kind in ("npz", "json", "gif", "webp", "html")
    )
    example = shown.get("example")
    image = f"assets/examples/{example_path(example).name}" if example else "picture.jpg"
    command = f"python -m vit_demo explain {image} --model {shown.get('model', DEFAULT)} --out maps"
    data = {key: shown.get(key) for key in ("id", "model", "example", "fit")}
    notes = {key: text[f"take_{key}"] for key in ("busy", "done", "failed")}
    return (
        f"<h2>{escape(text['take_title'])}</h2><p>{escape(text['take'])}</p>"
        f"<div class=\"files\" data-shown='{attribute(data)}' data-notes='{attribute(notes)}' "
        f'data-language="{language}">{buttons}</div><p class="note" role="status"></p>'
        f"<p>{escape(text['take_code'])}</p><pre><code>{escape(command)}</code></pre>"
    )


def attribute(data: dict) -> str:
    return escape(json.dumps(data, ensure_ascii=False), quote=True)


def link_html(language: str) -> str:
    text = words(language)
    notes = {key: text[key] for key in ("link_done", "link_upload")}
    return (
        f'<button type="button" class="link" data-notes=\'{attribute(notes)}\'>'
        f'{escape(text["link"])}</button><span class="note" role="status"></span>'
    )


def card(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>{body}"


def about_html(language: str) -> str:
    text = words(language)
    cite = f"<details><summary>{escape(text['cite'])}</summary><pre>{CITATION}</pre></details>"
    return card(text["about_title"], text["about"] + cite)


def message_html(message: str = "") -> str:
    return f'<p class="message" role="alert">{escape(message)}</p>' if message else ""


# Words and names


def fit_choices(language: str) -> list[tuple[str, str]]:
    return [(words(language)[f"fit_{fit}"], fit) for fit in FITS]


def model_choices(server: Server) -> list[tuple[str, str]]:
    """Embedded models first, then the operator's own, then timm's by family."""
    kinds = {"vit-cifar10": "Embedded · photos, 10 labels", "vit-mnist": "Embedded · digits"}
    choices = [(kinds.get(name, f"Embedded · {name}"), name) for name in embedded()]
    choices += [(f"File · {name}", name) for name in server.files]
    return choices + [(f"{group} · {what}", name) for group, what, name in CURATED]


def default_model() -> str:
    return SPACES_DEFAULT if os.environ.get("SYSTEM") == "spaces" else DEFAULT


def one_sentence(error: Exception) -> str:
    return " ".join(str(error).split())


def view_of(parameters: dict[str, str]) -> dict:
    """The explorer's settings in a link; what is not understood is left out."""
    state = {}
    for key in VIEW_KEYS:
        if key not in parameters:
            continue
        value = parameters[key]
        if key == "query" and re.fullmatch(r"\d{1,3},\d{1,3}", value):
            state[key] = [int(number) for number in value.split(",")]
        elif re.fullmatch(r"-?\d{1,4}(\.\d{1,6})?|true|false|[a-z_]{1,20}", value):
            plain = re.fullmatch(r"[a-z_]+", value) and value not in ("true", "false")
            state[key] = value if plain else json.loads(value)
    return state


def header_html(language: str) -> str:
    return f"<h1>ViT Demo</h1><p>{escape(words(language)['pitch'])}</p>"


LANGUAGE_TEMPLATE = """<div role="group" aria-label="Language / 언어">
<button type="button" data-language="en" lang="en" aria-label="English">EN</button>
<button type="button" data-language="ko" lang="ko" aria-label="한국어">KO</button></div>"""

PAD_TEMPLATE = """<canvas width="280" height="280" tabindex="0" role="img" aria-label="${draw}">
</canvas><div><span>${draw}</span><button type="button">${erase}</button></div>"""


# The page


def make(
    model: str | None = None,
    checkpoint: str | None = None,
    arch: str | None = None,
    labels: str | None = None,
    device: str = "auto",
    say: Callable[[str], None] = print,
) -> gr.Blocks:
    """The page around a model that is ready. `checkpoint` is a file offered beside the others."""
    files = {}
    if model and Path(model).suffix in SUFFIXES:  # the operator may name a file as the model
        checkpoint, model = model, Path(model).stem
    if checkpoint:
        name = Path(checkpoint).stem
        files[name] = {"name": checkpoint, "arch": arch, "labels": labels}
        model = model or name
    server = Server(files, device)
    default = model or default_model()
    began = time.perf_counter()
    try:
        classifier = server.models.get(default)
    except CheckpointError:
        if model or default == DEFAULT:
            raise
        say(f"  {default} is not available, starting with {DEFAULT}")
        default = DEFAULT
        classifier = server.models.get(default)
    first = EXAMPLES[kind_of(classifier)][0]
    server.explain(str(example_path(first)), default, "crop", first)  # the first page is ready too
    where = classifier.device
    say(f"  {classifier.name} ready on {where} in {time.perf_counter() - began:.1f} s")
    return build(server, default)


def build(server: Server, default: str) -> gr.Blocks:
    """The whole page, ready to launch with `launch_options`."""
    gr.set_static_paths([server.store.folder])
    with gr.Blocks(
        title="ViT Demo", delete_cache=(600, 3600), analytics_enabled=False, fill_width=True
    ) as demo:
        ui = lay_out(server, default)
        connect(demo, ui, server, default)
        add_api(server, default)
    return demo


def lay_out(server: Server, default: str) -> SimpleNamespace:
    """What stands where. The words are English until the browser says otherwise."""
    text, script = words("en"), (HERE / "page.js").read_text(encoding="utf-8")
    ui = SimpleNamespace()
    ui.source = gr.Textbox(visible="hidden", elem_id="source", container=False)
    ui.ready = gr.Textbox(default, visible="hidden", elem_id="ready", container=False)
    ui.upload = Picture(visible="hidden", type="filepath", elem_id="upload")
    ui.place = gr.JSON(visible=False)
    ui.shown = gr.State(None)  # what is on the page: id, model, example, fit, picture
    ui.wish = gr.State(None)  # the explorer's settings from a link, until they are used
    with gr.Row(elem_id="header"):
        ui.title = HTML(header_html("en"), elem_id="title")
        ui.model = gr.Dropdown(
            model_choices(server),
            value=default,
            label=text["model"],
            allow_custom_value=True,
            container=False,
            elem_id="model",
            scale=0,
            min_width=220,
        )
        ui.language = HTML(
            "en",
            html_template=LANGUAGE_TEMPLATE,
            js_on_load=f"{script}\nlanguageSwitch(element, props, trigger, watch);",
            elem_id="language",
        )
        ui.link = HTML(
            link_html("en"), js_on_load=f"{script}\nlinkButton(element);", elem_id="link"
        )
    with gr.Row(elem_id="stage"):
        with gr.Column(elem_id="left", scale=0, min_width=320):
            ui.heading_1 = HTML(step(1, text["step_picture"]))
            with gr.Row(elem_id="inputs"):
                ui.pad = HTML(
                    None,  # the drawing, as a data URL
                    html_template=PAD_TEMPLATE,
                    js_on_load=f"{script}\ndrawingPad(element, props, trigger);",
                    draw=text["draw"],
                    erase=text["erase"],
                    elem_id="pad",
                    visible="hidden",
                )
                ui.picture = Picture(
                    type="filepath",
                    sources=["upload", "webcam", "clipboard"],
                    label=text["picture"],
                    show_label=False,
                    placeholder=text["drop"],
                    alt_text=text["picture"],
                    buttons=["fullscreen"],
                    elem_id="picture",
                    height=240,
                )
            ui.frame = HTML(
                "", js_on_load=f"{script}\nframeOverPicture(element, watch);", elem_id="frame"
            )
            ui.message = HTML("", elem_id="message")
            ui.strip = HTML(
                None,  # the name of the example on the page
                html_template="${items}",
                js_on_load=f"{script}\nexampleStrip(element, props, trigger, watch);",
                items=strip_html("en", "photo"),
                elem_id="strip",
            )
            ui.fit = gr.Radio(fit_choices("en"), value="crop", label=text["fit"], elem_id="fit")
            ui.heading_2 = HTML(step(2, text["step_answer"]))
            ui.status = HTML("", elem_id="status")  # the queue and the clock, while the model runs
            ui.answer = HTML(answer_html(None, "en"), elem_id="answer")
        with gr.Column(elem_id="right", scale=1, min_width=320):
            ui.heading_3 = HTML(step(3, text["step_explorer"]))
            ui.explorer = explorer.make_explorer(rows_on_demand(server), elem_id="explorer")
    with gr.Row(elem_id="cards"):
        ui.what = HTML(card(text["what_title"], text["what"]), elem_id="what")
        ui.take = HTML(
            take_html(None, "en"),
            js_on_load=f"{script}\ntakeAway(element, server);",
            server_functions=[files_on_demand(server)],
            elem_id="take",
        )
        ui.about = HTML(about_html("en"), elem_id="about")
    return ui


def connect(demo: gr.Blocks, ui: SimpleNamespace, server: Server, default: str) -> None:
    """What happens when."""

    def start(place: dict):
        """A visitor arrives, perhaps with a link: language, model, picture, fit and settings."""
        asked = (place or {}).get("parameters") or {}
        language = language_of(asked.get("lang") or (place or {}).get("language"))
        model = asked.get("model") or default
        known = [name for names in EXAMPLES.values() for name in names]
        example = asked.get("example") if asked.get("example") in known else known[0]
        changes = speak(ui, server, language, None)
        changes[ui.model]["value"] = model
        changes[ui.fit]["value"] = asked.get("fit") if asked.get("fit") in FITS else "crop"
        changes |= {
            ui.source: f"example {example}",
            ui.ready: default if model == default else "",
            ui.wish: view_of(asked) or None,
        }
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
            yield {ui.message: f'<p class="busy" role="status">{escape(loading)}</p>'}
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
        gr.Warning(sentence)
        yield {ui.model: kept, ui.ready: kept, ui.message: message_html(sentence)}

    def look(source, upload, drawing, fit, ready, language, shown, wish):
        """The newest picture through the newest model: the one event that runs it."""
        text = words(language)
        if not ready:  # a model is on its way; its arrival calls again
            return {ui.message: gr.skip()}
        if not source:
            return nothing(ui, language)
        try:
            kind = kind_of(server.models.get(ready))
            what, _, example = source.partition(" ")
            if what == "example" and example not in EXAMPLES[kind]:
                example = EXAMPLES[kind][0]
            elif what == "drawing" and kind == "photo":
                what, example = "example", EXAMPLES[kind][0]
            if what == "example":
                file = str(example_path(example))
            else:
                file, example = decoded(drawing) if what == "drawing" else upload, None
            id = server.explain(file, ready, fit, example)
            explanation = server.store.get(id)
        except (ImageError, CheckpointError, ValueError) as error:
            sentence = one_sentence(error)
        except Exception:
            log.exception("looking at a picture")
            sentence = text["failed"]
        else:
            shown = {"id": id, "model": ready, "example": example, "fit": fit}
            shown["picture"] = None if what == "drawing" else file
            return {
                ui.picture: shown["picture"],
                ui.pad: gr.update(visible=True if kind == "digit" else "hidden"),
                ui.strip: gr.update(value=example, items=strip_html(language, kind)),
                ui.frame: frame_html(explanation, language),
                ui.answer: answer_html(explanation, language),
                ui.explorer: {"id": id, "url": server.url(id)} | ({"state": wish} if wish else {}),
                ui.take: take_html(shown, language),
                ui.message: "",
                ui.shown: shown,
                ui.wish: None,
            }
        gr.Warning(sentence)
        return {
            ui.message: message_html(f"{sentence} {text['kept']}" if shown else sentence),
            ui.picture: shown and shown["picture"],
        }

    def relabel(language: str, shown: dict | None):
        return speak(ui, server, language, shown)

    spoken = list(speak(ui, server, "en", None))
    quiet = {"api_visibility": "private"}
    inputs = [ui.source, ui.upload, ui.pad, ui.fit, ui.ready, ui.language, ui.shown, ui.wish]
    outputs = [ui.picture, ui.pad, ui.strip, ui.frame, ui.answer, ui.explorer, ui.take]
    outputs += [ui.message, ui.shown, ui.wish]
    gr.on(
        [ui.source.change, ui.fit.input, ui.ready.change],
        look,
        inputs,
        outputs,
        trigger_mode="always_last",
        concurrency_id="model",
        concurrency_limit=1,
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
    demo.load(
        start, ui.place, arrival, js=PLACE, show_progress="hidden", queue=False, **quiet
    ).then(**loading)
    ui.language.input(
        relabel, [ui.language, ui.shown], spoken, show_progress="hidden", queue=False, **quiet
    )
    ui.picture.input(None, ui.picture, [ui.source, ui.upload], js=NEWEST_PICTURE, **quiet)
    ui.pad.input(None, None, ui.source, js="() => `drawing ${Date.now()}`", **quiet)
    ui.strip.input(None, ui.strip, ui.source, js="(name) => `example ${name}`", **quiet)


PLACE = """() => [{
    language: localStorage.getItem('vit-demo-language') || navigator.language,
    parameters: Object.fromEntries(new URLSearchParams(location.search)),
}]"""


# A copy of the upload: an older run that ends now may still put its own picture on the page.
NEWEST_PICTURE = "(picture) => [picture ? `picture ${Date.now()}` : '', picture]"


def kind_of(classifier: Classifier) -> str:
    return "digit" if classifier.preprocess.light_on_dark else "photo"


def decoded(drawing: str | None) -> bytes:
    """The drawing pad's data URL as the bytes of a PNG file."""
    try:
        return base64.b64decode((drawing or "").partition(",")[2], validate=True)
    except ValueError as error:
        raise ImageError("The drawing did not arrive; draw it again.") from error


def nothing(ui: SimpleNamespace, language: str) -> dict:
    """The page without a picture."""
    return {
        ui.strip: None,
        ui.frame: frame_html(None, language),
        ui.answer: answer_html(None, language),
        ui.explorer: None,
        ui.take: take_html(None, language),
        ui.message: "",
        ui.shown: None,
    }


def speak(ui: SimpleNamespace, server: Server, language: str, shown: dict | None) -> dict:
    """Every word on the page in this language."""
    text = words(language)
    explanation = server.store.get(shown["id"]) if shown else None
    kind = "photo"
    if shown and shown["model"] in server.models:
        kind = kind_of(server.models.get(shown["model"]))
    changes = {
        ui.language: language,
        ui.title: header_html(language),
        ui.model: gr.update(label=text["model"]),
        ui.link: link_html(language),
        ui.heading_1: step(1, text["step_picture"]),
        ui.pad: gr.update(draw=text["draw"], erase=text["erase"]),
        ui.picture: gr.update(
            label=text["picture"], placeholder=text["drop"], alt_text=text["picture"]
        ),
        ui.strip: gr.update(items=strip_html(language, kind)),
        ui.fit: gr.update(choices=fit_choices(language), label=text["fit"]),
        ui.heading_2: step(2, text["step_answer"]),
        ui.heading_3: step(3, text["step_explorer"]),
        ui.explorer: gr.update(language=language),
        ui.what: card(text["what_title"], text["what"]),
        ui.take: take_html(shown, language),
        ui.about: about_html(language),
        ui.message: "",
    }
    if explanation or not shown:
        changes[ui.frame] = frame_html(explanation, language)
        changes[ui.answer] = answer_html(explanation, language)
    else:
        changes[ui.frame] = changes[ui.answer] = gr.skip()
    return changes


# What the browser asks for without an event


def rows_on_demand(server: Server):
    def rows(request: dict) -> dict:
        """One patch's maps of a large model, for the explorer."""
        try:
            explanation = server.store.get(str(request["id"]))
            if explanation is None:
                return {"error": words(request.get("language"))["gone"]}
            query = request.get("query")
            query = None if query is None else (int(query[0]), int(query[1]))
            return {"data": base64.b64encode(explorer.query_rows(explanation, query)).decode()}
        except (ValueError, KeyError, TypeError, IndexError) as error:
            return {"error": one_sentence(error)}

    return rows


def files_on_demand(server: Server):
    def save_file(request: dict) -> dict:
        """One of the files to take away; the answer says where it is."""
        text = words(request.get("language"))
        try:
            id, state = str(request["id"]), dict(request.get("state") or {})
            name = server.save(id, request["kind"], state, request.get("language") or "en")
        except Exception:
            log.exception("saving a file")
            return {"error": text["take_failed"]}
        if not name:
            return {"error": text["gone"]}
        return {"url": server.url(id, name), "name": Path(name).name}

    return save_file


# The interface for programs


def add_api(server: Server, default: str) -> None:
    """The two public endpoints. Their parts are never shown; they give names and examples."""

    def classify(image: str, model: str = default, fit: str = "crop", top: float = 10) -> dict:
        """Name what is in a picture.

        Args:
            image: A picture file (JPEG, PNG, WebP, GIF, TIFF or BMP).
            model: An embedded model or any plain timm ViT, such as deit_tiny_patch16_224.fb_in1k.
            fit: How the picture meets the model: crop, pad, stretch or native.
            top: How many labels.

        Returns:
            {"model": name, "labels": [{"label", "probability", "index"}, ...]}, best first.
        """
        with friendly():
            classifier = server.models.get(model)
            labels = classifier.classify(image, int(top), fit)
            return {"model": classifier.name, "labels": [asdict(label) for label in labels]}

    def explain(
        image: str,
        model: str = default,
        fit: str = "crop",
        row: float | None = None,
        column: float | None = None,
        residual: float = 0.5,
        discard: float = 0.0,
        below: str = "mean",
    ) -> tuple[dict, str]:
        """Show where in a picture the answer came from: attention rollout, one map for each head.

        Args:
            image: A picture file (JPEG, PNG, WebP, GIF, TIFF or BMP).
            model: An embedded model or any plain timm ViT, such as deit_tiny_patch16_224.fb_in1k.
            fit: How the picture meets the model: crop, pad, stretch or native.
            row: With column: the patch that asks, from 0. Without: the answer asks.
            column: See row.
            residual: The share that passes a layer unchanged, 0 to 1.
            discard: The share of weak links that is dropped, 0 to 1.
            below: Below a head: "mean" of the heads, or the head of the "same" number.

        Returns:
            The description (labels, grid, crop box, settings) and maps.npz with the arrays rollout
            (rows, cols), head_rollouts (layers, heads, rows, cols), logits, prefix_mass and
            head_prefix_mass.
        """
        with friendly():
            query = None if row is None or column is None else [int(row), int(column)]
            state = {"query": query, "residual": residual, "discard": discard, "below": below}
            id = server.explain(image, model, fit)
            name = server.save(id, "npz", state, "en")
            about = json.loads(description(server.store.get(id), state))
            return about, str(server.store.folder_of(id) / name)

    with gr.Column(visible=False):
        image = Picture(type="filepath", label="image")
        model = gr.Textbox(default, label="model")
        fit = gr.Radio(list(FITS), value="crop", label="fit")
        top = gr.Number(10, label="top", precision=0)
        row = gr.Number(None, label="row", precision=0)
        column = gr.Number(None, label="column", precision=0)
        residual = gr.Number(0.5, label="residual")
        discard = gr.Number(0.0, label="discard")
        below = gr.Radio(["mean", "same"], value="mean", label="below")
        labels, about = gr.JSON(label="labels"), gr.JSON(label="description")
        maps = gr.File(label="maps.npz")
        button = gr.Button()
    shared = {"concurrency_id": "api", "concurrency_limit": 2}
    button.click(classify, [image, model, fit, top], labels, api_name="classify", **shared)
    settings = [row, column, residual, discard, below]
    button.click(
        explain, [image, model, fit, *settings], [about, maps], api_name="explain", **shared
    )


@contextmanager
def friendly():
    """Errors of the library are written for people: pass their words on, and no others."""
    try:
        yield
    except (ImageError, CheckpointError, ValueError) as error:
        raise gr.Error(one_sentence(error), print_exception=False) from None
    except Exception:
        log.exception("the interface for programs")
        raise gr.Error(words("en")["failed"], print_exception=False) from None


# How it looks


def launch_options() -> dict:
    """What `demo.launch` needs besides host and port."""
    return {
        "theme": theme(),
        "css_paths": [HERE / "page.css"],
        "footer_links": ["api"],
        "run_history": False,
        "max_file_size": "20mb",
        "show_error": False,
        "quiet": True,
    }


def theme() -> gr.themes.Base:
    """Gradio's own parts in the colours of page.css; every pair has contrast enough to read."""
    fonts = ["system-ui", "-apple-system", "Segoe UI", "Noto Sans KR", "sans-serif"]
    look = gr.themes.Base(
        primary_hue="blue",
        neutral_hue="slate",
        font=fonts,
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "monospace"],
    )
    colours = {
        "body_background_fill": "var(--paper)",
        "body_text_color": "var(--ink)",
        "body_text_color_subdued": "var(--muted)",
        "background_fill_primary": "var(--paper)",
        "background_fill_secondary": "var(--soft)",
        "border_color_primary": "var(--line)",
        "block_background_fill": "transparent",
        "block_border_color": "var(--line)",
        "block_label_text_color": "var(--muted)",
        "block_title_text_color": "var(--muted)",
        "input_background_fill": "var(--paper)",
        "input_border_color": "var(--line)",
        "input_border_color_focus": "var(--accent)",
        "input_placeholder_color": "var(--muted)",
        "link_text_color": "var(--accent)",
        "color_accent": "var(--accent)",
        "button_secondary_background_fill": "var(--paper)",
        "button_secondary_text_color": "var(--ink)",
        "checkbox_label_background_fill": "transparent",
        "checkbox_label_background_fill_selected": "transparent",
        "checkbox_label_text_color": "var(--muted)",
        "checkbox_label_text_color_selected": "var(--ink)",
    }
    dark = {f"{name}_dark": value for name, value in colours.items() if name != "color_accent"}
    return look.set(**colours, **dark, input_border_width="1px", input_border_width_dark="1px")
