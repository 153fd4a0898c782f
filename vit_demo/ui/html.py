"""The page's pieces of HTML: pure functions of what is shown and of the language."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable
from functools import cache, partial
from html import escape
from pathlib import Path
from shlex import quote
from textwrap import shorten
from typing import TYPE_CHECKING

import gradio as gr
from PIL import Image

from vit_demo.embedded import DEFAULT, embedded, example_path
from vit_demo.ui.texts import CITATION, GLOSSARY, example_name, names_in, words
from vit_demo.view import KEPT_PIXELS

if TYPE_CHECKING:
    from vit_demo.explain import Classifier, Explanation

EXAMPLES = {
    "photo": (
        "shepherd",
        "camel",
        "goldfish",
        "espresso",
        "lemon",
        "penguin",
        "koala",
        "camel-and-shepherd",
    ),
    "digit": ("digit-two", "digit-three", "digit-four", "digit-five", "digit-seven", "digit-eight"),
}


MOST_LETTERS = 36  # of the other names of a label


class Picture(gr.Image):
    """An image that hands over the file as it came: our own reader has the better messages."""

    is_template = True

    def preprocess(self, payload):
        return payload and payload.path


HTML = partial(gr.HTML, apply_default_css=False)


def step(number: int, title: str) -> str:
    return f'<h2 class="step"><span>{number}</span>{escape(title)}</h2>'


def tabs_html(names: Iterable[str], language: str) -> str:
    """The row of tabs; `page/tabs.js` says which one is shown."""
    text = words(language)
    buttons = "".join(
        f'<button type="button" role="tab" id="tab-{name}" data-name="{name}" '
        f'aria-controls="panel-{name}" aria-selected="false">{escape(text[f"tab_{name}"])}</button>'
        for name in names
    )
    return f'<div role="tablist" aria-label="{escape(text["tabs"])}">{buttons}</div>'


def title_html(name: str, language: str) -> str:
    """The question that a tab answers."""
    return f'<h2 class="title">{escape(words(language)[f"title_{name}"])}</h2>'


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
        label = escape(example_name(name, language))
        buttons.append(
            f'<button type="button" data-example="{name}" title="{label}" aria-pressed="false">'
            f'<img src="{thumbnail(name)}" alt="{label}" width="48" height="48"></button>'
        )
    label = escape(words(language)["examples"])
    return f'<div class="strip" role="group" aria-label="{label}">{"".join(buttons)}</div>'


def picture_value(explanation: Explanation | None, url: str, language: str) -> dict:
    """What `page/picture.js` draws: the picture (at `url`), the box in it that the model saw, and a
    sentence about that. Nothing is {}: Gradio takes a property of None for one that stays."""
    if explanation is None:
        return {}
    view, text = explanation.view, words(language)
    w, h = view.size
    left, top, right, bottom = (
        min(max(edge, 0), side) for edge, side in zip(view.box, (w, h, w, h), strict=True)
    )
    whole = (right - left) * (bottom - top) > 0.995 * w * h
    about = text[f"about_{view.fit}" + ("_all" if view.fit == "crop" and whole else "")]
    rows, cols = view.grid
    return {
        "url": url,
        "size": [w, h],
        "box": [round(edge, 1) for edge in (left, top, right, bottom)],
        "about": about.format(rows=rows, cols=cols),
        "fit": view.fit,
    }


def bar_value(explanation: Explanation | None, url: str, language: str) -> dict | None:
    """Picture and answer in one line, for a phone."""
    if explanation is None:
        return None
    if not explanation.labels:
        return {"url": url, "label": words(language)["answer_maps"], "percent": ""}
    first = explanation.top(1)[0]
    label, _ = names_in(first.label, explanation.labels, language)
    return {"url": url, "label": label, "percent": f"{100 * first.probability:.1f}\u2009%"}


def answer_html(explanation: Explanation | None, language: str) -> str:
    """The labels, with bars; the first one large."""
    text = words(language)
    if explanation is None:
        return f'<p class="empty">{escape(text["answer_empty"])}</p>'
    if not explanation.labels:
        return f'<p class="empty">{escape(text["answer_maps"])}</p>'
    items = []
    for p in explanation.top(10):
        first, others = names_in(p.label, explanation.labels, language)
        if others:
            others = f'<small><span class="comma">, </span>{escape(other_names(others))}</small>'
        percent = f"{100 * p.probability:.1f}"
        why = escape(f"{p.label}: {text['answer_why']}", quote=True)
        less = escape(f"{first}: {text['answer_less']}", quote=True)
        items.append(
            f'<li data-index="{p.index}" style="--share:{percent}%">'
            f'<button type="button" class="ask" aria-pressed="false" title="{why}">'
            f'<span class="label">{escape(first)}{others}</span>'
            f'<span class="bar" aria-hidden="true"></span>'
            f'<span class="percent">{percent}\u2009%</span></button>'
            f'<button type="button" class="less" aria-pressed="false" aria-label="{less}" '
            f'title="{escape(text["answer_less"])}">\u2212</button></li>'
        )
    title, hint = escape(text["answer_title"]), escape(text["answer_hint"])
    return (
        f'<p class="hint">{hint}</p><ol class="answer" aria-label="{title}">{"".join(items)}</ol>'
        f'<ol class="also" aria-label="{escape(text["search"])}" hidden></ol>'
        + (search_html(len(explanation.labels), language) if len(explanation.labels) > 10 else "")
    )


def other_names(others: str) -> str:
    """What else a label is called, after its name: as much as fits there. All of it is in the title.
    `page/answer.js` does the same for labels that were searched for."""
    return shorten(others, MOST_LETTERS, placeholder=" …")


def search_html(count: int, language: str) -> str:
    """A field that finds any label of the model; `page/search.js` fills its list."""
    text = words(language)
    label = escape(text["search_all"].format(count=count))
    none, lost = escape(text["search_none"]), escape(text["lost"])
    return (
        f'<div class="search"><input type="text" role="combobox" aria-expanded="false" '
        f'aria-controls="found" aria-autocomplete="list" autocomplete="off" spellcheck="false" '
        f'aria-label="{label}" placeholder="{label}" data-none="{none}" data-lost="{lost}">'
        f'<ul id="found" role="listbox" aria-label="{escape(text["search"])}" hidden></ul>'
        f'<p role="status"></p></div>'
    )


def question_html(language: str, *names: str) -> str:
    """The "?" that explains some words, as `question` of `static/glossary.js` makes it."""
    known = GLOSSARY[language]
    label = known["question"].format(words=", ".join(known["words"][name][0] for name in names))
    return (
        f'<button type="button" class="gloss" aria-expanded="false" '
        f'data-words="{" ".join(names)}" aria-label="{escape(label)}">?</button>'
    )


def model_html(classifier: Classifier, language: str) -> str:
    """One line about the model; beside an embedded one room for the offer of a larger one."""
    text, config, labels = words(language), classifier.config, classifier.labels
    if labels:
        first, last = (names_in(label, labels, language)[0] for label in (labels[0], labels[-1]))
        knows = text["knows"].format(count=f"{len(labels):,}", first=first, last=last)
        knows = (
            f'<button type="button" class="all" aria-expanded="false" aria-controls="things">'
            f"{escape(knows)}</button>"
        )
    else:
        knows = f'<span class="none">{escape(text["knows_none"])}</span>'
    (height, width), (down, right) = classifier.preprocess.size, config.patch_size
    values = {"layers": config.depth, "heads": config.heads, "height": height, "width": width}
    values |= {"rows": height // down, "cols": width // right}
    facts = [escape(text[f"model_{fact}"].format(**values)) for fact in ("size", "grid", "input")]
    facts[-1] += f" {question_html(language, 'layer', 'head', 'patch')}"
    shape = " ".join(
        f"<span>{fact}</span>" for fact in [f"{fact} ·" for fact in facts[:-1]] + facts[-1:]
    )
    small = " data-small" if classifier.name in embedded() else ""
    return (
        f'<p class="line" data-model="{escape(classifier.name)}"{small}>{knows} {shape}</p>'
        f'<div id="things" role="region" aria-label="{escape(text["knows_all"])}" '
        f'data-lost="{escape(text["lost"])}" hidden></div>'
        f'<div class="offer" hidden><button type="button"></button><p class="reason"></p></div>'
        f'<div class="news" role="status" data-instead="{escape(text["instead"])}" '
        f'data-close="{escape(text["close"])}"></div>'
    )


def take_html(shown: dict | None, language: str) -> str:
    """Files and links. The button's data say what to make; `page/takeaway.js` asks the server for it."""
    text, shown = words(language), shown or {}
    off = "" if shown.get("id") else " disabled"
    buttons = "".join(
        f'<button type="button" data-kind="{kind}"{off}>{escape(text[f"take_{kind}"])}</button>'
        for kind in ("npz", "json", "gif", "webp", "html")
    )
    data = {key: shown.get(key) for key in ("id", "model", "example", "fit")}
    data["image"] = image_of(shown)
    image, model = quote(data["image"]), quote(shown.get("model", DEFAULT))
    command = f"vit-demo explain {image} --model {model} --out maps"
    notes = {key: text[f"take_{key}"] for key in ("busy", "done", "still")}
    notes["lost"] = text["lost"]
    return (
        f"<h2>{escape(text['take_title'])}</h2><p>{escape(text['take'])}</p>"
        f"<div class=\"files\" data-shown='{attribute(data)}' data-notes='{attribute(notes)}' "
        f'data-language="{language}">{buttons}</div><p class="note" role="status"></p>'
        f"<p>{escape(text['take_code'])}</p><pre><code>{escape(command)}</code></pre>"
    )


def image_of(shown: dict) -> str:
    """The file of the picture, as its owner calls it: an example from where the page was started, in a
    checkout "assets/examples/..."; an upload in the visitor's own folder."""
    if shown.get("example"):
        path, here = example_path(shown["example"]), Path.cwd()
        return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()
    return Path(shown["upload"]).name if shown.get("upload") else "picture.png"


def attribute(data: dict) -> str:
    return escape(json.dumps(data, ensure_ascii=False), quote=True)


def chooser_words(language: str) -> dict[str, str]:
    """What a chooser of models says."""
    text, keys = words(language), ("label", "search", "none", "many", "more")
    return {key: text[f"models_{key}"] for key in keys} | {"lost": text["lost"]}


def link_html(language: str) -> str:
    text = words(language)
    notes = {key: text[key] for key in ("link_done", "link_upload", "link_failed")}
    return (
        f'<button type="button" class="link" data-notes=\'{attribute(notes)}\'>'
        f'{escape(text["link"])}</button><span class="note" role="status"></span>'
    )


def card(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>{body}"


def about_html(language: str, minutes: float) -> str:
    """Of the project; `minutes` is how long uploads are kept."""
    text = words(language)
    cite = f"<details><summary>{escape(text['cite'])}</summary><pre>{CITATION}</pre></details>"
    about = text["about"].format(minutes=f"{minutes:g}", megapixels=f"{KEPT_PIXELS / 1e6:.1f}")
    return card(text["about_title"], about + cite)


def header_html(language: str) -> str:
    return f"<h1>ViT Demo</h1><p>{escape(words(language)['pitch'])}</p>"


LANGUAGE_TEMPLATE = """<div role="group" aria-label="Language / 언어">
<button type="button" data-language="en" lang="en" aria-label="English">EN</button>
<button type="button" data-language="ko" lang="ko" aria-label="한국어">KO</button></div>"""

ICONS = {  # 24 x 24, drawn as lines
    "choose": "M12 16V4M7 9l5-5 5 5M4 16v4h16v-4",
    "camera": "M4 8h4l2-3h4l2 3h4v11H4zM12 17a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7",
    "paste": "M9 5H6v16h12V5h-3M9 3h6v4H9z",
    "remove": "M6 6l12 12M18 6L6 18",
}


def icon(name: str) -> str:
    return (
        f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="{ICONS[name]}"/></svg>'
    )


PICTURE_TEMPLATE = f"""<div class="well">
<button type="button" class="pick" data-do="choose"></button>
<figure><img alt=""><svg class="frame" aria-hidden="true"></svg></figure>
<video playsinline muted></video>
<button type="button" class="shutter" data-do="photograph"></button>
<button type="button" class="remove" data-do="remove">{icon("remove")}</button>
</div>
<div class="ways"><button type="button" data-do="choose">{icon("choose")}</button>
<button type="button" data-do="camera">{icon("camera")}</button>
<button type="button" data-do="paste">{icon("paste")}</button></div>
<p class="about"></p>
<input type="file" accept="image/*" tabindex="-1" hidden>"""

MESSAGE_TEMPLATE = """<div class="notice" role="alert" hidden><p></p>
<button type="button">\u2715</button></div>"""

BAR_TEMPLATE = """<button type="button" hidden><img alt=""><span class="label"></span>
<span class="percent"></span></button>"""
CHOOSER_TEMPLATE = """<input type="text" role="combobox" aria-expanded="false" aria-controls="models"
 aria-autocomplete="list" autocomplete="off" spellcheck="false"><div class="list" hidden>
<ul id="models" role="listbox"></ul><p role="status"></p></div>"""

PAD_TEMPLATE = """<canvas width="280" height="280" tabindex="0" role="img" aria-label="${draw}">
</canvas><div><span>${draw}</span><button type="button">${erase}</button></div>"""
