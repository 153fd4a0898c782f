"""What stands where on the page, and every word of it in a language.

Picture and answer stand on the left, the tabs on the right. A tab is added with

1. one line in `TABS`: a function `make(server)` that builds its content and returns the component
   that is told about each picture, and a function `value(server, id, explanation)` that says what it
   is told. The component has a property `language`; it is told None when there is no picture. What
   else the tab needs (a queue of its own, more components), `make` builds and connects by itself;
2. its words `tab_NAME` (on the button) and `title_NAME` (above the panel) in every file of `texts/`;
3. its style sheet, if it has one, as `static/NAME/NAME.css`.

All panels are mounted from the start, the hidden ones too: a tab loads its data when it is shown for
the first time for a picture. `document.documentElement.dataset.tab` is the name of the one that is
shown, and the event `vit-tab` on `document` (detail: {name}) says that it changed.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import gradio as gr

from vit_demo.explain import Classifier, Explanation
from vit_demo.map_settings import FITS
from vit_demo.ui import compare, inside, learn, questions
from vit_demo.ui import server_functions as ask
from vit_demo.ui.explorer import make_explorer
from vit_demo.ui.html import (
    BAR_TEMPLATE,
    CHOOSER_TEMPLATE,
    HTML,
    LANGUAGE_TEMPLATE,
    MESSAGE_TEMPLATE,
    PAD_TEMPLATE,
    PICTURE_TEMPLATE,
    about_html,
    answer_html,
    bar_value,
    card,
    chooser_words,
    header_html,
    link_html,
    model_html,
    picture_value,
    step,
    strip_html,
    tabs_html,
    take_html,
    title_html,
)
from vit_demo.ui.limits import FILE_BYTES
from vit_demo.ui.models import kind_of, title_of
from vit_demo.ui.static import mount_script
from vit_demo.ui.store import Server
from vit_demo.ui.texts import toasts, words


class Tab(NamedTuple):
    """A way to look at the picture."""

    make: Callable[[Server], gr.HTML]
    value: Callable[[Server, str, Explanation], object]


def explorer(server: Server) -> gr.HTML:
    rows, classes = (ask.answering(server, one) for one in (ask.attention_rows, ask.class_maps))
    return make_explorer(rows, classes, first=server.first)


def explorer_value(server: Server, id: str, explanation: Explanation) -> dict:
    return {"id": id, "url": server.url(id)}


TABS = {  # in their order
    "explore": Tab(explorer, explorer_value),
    "inside": Tab(inside.make_tab, inside.tab_value),
    "trust": Tab(questions.make_tab, questions.tab_value),
    "compare": Tab(compare.make_tab, compare.tab_value),
    "learn": Tab(learn.make_tab, learn.tab_value),
}


def lay_out(server: Server, default: str) -> SimpleNamespace:
    """What stands where. The words are English until the browser says otherwise."""
    text, about_models = words("en"), ask.about_models(server)
    ui = SimpleNamespace()
    ui.source = gr.Textbox(visible="hidden", elem_id="source", container=False)
    ui.ready = gr.Textbox(default, visible="hidden", elem_id="ready", container=False)
    ui.place = gr.JSON(visible=False)
    ui.shown = gr.State(None)  # what is on the page: id, model, example, fit, upload
    ui.wish = gr.State(None)  # the explorer's settings from a link, until they are used
    with gr.Row(elem_id="header"):
        ui.title = HTML(header_html("en"), elem_id="title")
        ui.model = HTML(
            default,  # the name of the model that is wished for
            html_template=CHOOSER_TEMPLATE,
            js_on_load=mount_script("page/chooser.js"),
            server_functions=about_models[:1],
            elem_id="model",
            **chooser(server, default, "en"),
        )
        ui.language = HTML(
            "en",
            html_template=LANGUAGE_TEMPLATE,
            js_on_load=mount_script("page/language.js"),
            elem_id="language",
        )
        ui.link = HTML(
            link_html("en"),
            js_on_load=mount_script("page/link.js"),
            shown={},  # as `ui.shown`
            elem_id="link",
        )
        ui.knows = HTML(
            model_html(server.models.get(default), "en"),
            js_on_load=mount_script("page/model_line.js"),
            server_functions=about_models[1:],
            elem_id="knows",
            news={},  # of a model that is on its way, or cannot be had
        )
    ui.message = HTML(
        "",  # a sentence
        html_template=MESSAGE_TEMPLATE,
        js_on_load=mount_script("page/message.js"),
        text=message_words("en"),
        elem_id="message",
    )
    ui.bar = HTML(
        None, html_template=BAR_TEMPLATE, js_on_load=mount_script("page/bar.js"), elem_id="bar"
    )
    with gr.Row(elem_id="stage"):
        with gr.Column(elem_id="left", scale=0, min_width=320):
            ui.heading_1 = HTML(step(1, text["step_picture"]))
            with gr.Row(elem_id="inputs"):
                ui.pad = HTML(
                    html_template=PAD_TEMPLATE,
                    js_on_load=mount_script("page/pad.js"),
                    draw=text["draw"],
                    erase=text["erase"],
                    elem_id="pad",
                    visible="hidden",
                )
                ui.picture = HTML(
                    None,  # what the visitor sent: {"path"}
                    html_template=PICTURE_TEMPLATE,
                    js_on_load=mount_script("page/picture.js"),
                    shown={},
                    text=picture_words("en"),
                    most=FILE_BYTES,
                    elem_id="picture",
                )
            ui.strip = HTML(
                None,  # the name of the example on the page
                html_template="${items}",
                js_on_load=mount_script("page/examples.js"),
                items=strip_html("en", "photo"),
                elem_id="strip",
            )
            ui.fit = gr.Radio(fit_choices("en"), value="crop", label=text["fit"], elem_id="fit")
            ui.heading_2 = HTML(step(2, text["step_answer"]))
            ui.status = HTML(
                "empty",  # or "done", "failed": how the last look ended
                html_template='<p class="status" role="status"></p>',
                js_on_load=mount_script("page/look.js"),
                text=look_words("en"),
                elem_id="status",
            )
            ui.answer = HTML(
                answer_html(None, "en"),
                js_on_load=mount_script("page/answer.js"),
                server_functions=[ask.answering(server, ask.all_labels)],
                elem_id="answer",
            )
        with gr.Column(elem_id="right", scale=1, min_width=320):
            ui.tabs = HTML(
                tabs_html(TABS, "en"), js_on_load=mount_script("page/tabs.js"), elem_id="tabs"
            )
            ui.titles, ui.contents = {}, {}  # of each tab
            for name, tab in TABS.items():
                with gr.Column(elem_id=f"panel-{name}"):
                    ui.titles[name] = HTML(title_html(name, "en"))
                    ui.contents[name] = tab.make(server)
        with gr.Row(elem_id="cards"):
            ui.what = HTML(card(text["what_title"], text["what"]), elem_id="what")
            ui.take = HTML(
                take_html(None, "en"),
                js_on_load=mount_script("page/takeaway.js"),
                server_functions=[ask.files_on_demand(server)],
                elem_id="take",
            )
            ui.about = HTML(about_html("en", server.folder.keep / 60), elem_id="about")
    return ui


def chooser(server: Server, model: str, language: str) -> dict:
    """What the chooser of models shows: the title of the model in use, and its own words."""
    text = chooser_words(language)
    return {"shown": title_of(server, model, language), "text": text, "language": language}


def fit_choices(language: str) -> list[tuple[str, str]]:
    return [(words(language)[f"fit_{fit}"], fit) for fit in FITS]


def picture_words(language: str) -> dict[str, str]:
    keys = ("picture", "drop", "drop_it", "choose", "camera", "photograph", "paste", "remove")
    keys += ("large", "unsent", "lost", "no_camera", "no_paste")
    return {key: words(language)[key] for key in keys}


def look_words(language: str) -> dict[str, str]:
    return {state: words(language)[f"look_{state}"] for state in ("sending", "waiting", "running")}


def message_words(language: str) -> dict:
    own = {key: words(language)[key] for key in ("lost", "failed", "close")}
    return own | {"heard": toasts(language)}


def nothing(
    ui: SimpleNamespace, classifier: Classifier, model: str, fit: str, language: str
) -> dict:
    """The page without a picture. Its address says so, that reload and Back may know."""
    kind = kind_of(classifier)
    return {
        ui.strip: gr.update(value=None, items=strip_html(language, kind)),
        ui.pad: gr.update(visible=True if kind == "digit" else "hidden"),
        ui.knows: model_html(classifier, language),
        ui.picture: gr.update(shown={}),
        ui.bar: None,
        ui.status: "empty",
        ui.link: gr.update(shown={"model": model, "example": "none", "fit": fit}),
        ui.answer: answer_html(None, language),
        **dict.fromkeys(ui.contents.values()),
        ui.take: take_html(None, language),
        ui.message: "",
        ui.shown: None,
    }


def speak(
    ui: SimpleNamespace, server: Server, language: str, model: str, shown: dict | None
) -> dict:
    """Every word on the page in this language; `model` is the one in use."""
    text = words(language)
    explanation = server.store.get(shown["id"]) if shown else None
    classifier = server.models.get(model) if model in server.models else None
    kind = kind_of(classifier) if classifier else "photo"
    changes = {
        ui.language: language,
        ui.title: header_html(language),
        ui.model: gr.update(**chooser(server, model, language)),
        ui.knows: model_html(classifier, language) if classifier else gr.skip(),
        ui.link: link_html(language),
        ui.heading_1: step(1, text["step_picture"]),
        ui.pad: gr.update(draw=text["draw"], erase=text["erase"]),
        ui.strip: gr.update(items=strip_html(language, kind)),
        ui.fit: gr.update(choices=fit_choices(language), label=text["fit"]),
        ui.heading_2: step(2, text["step_answer"]),
        ui.tabs: tabs_html(TABS, language),
        **{title: title_html(name, language) for name, title in ui.titles.items()},
        **{content: gr.update(language=language) for content in ui.contents.values()},
        ui.what: card(text["what_title"], text["what"]),
        ui.take: take_html(shown, language),
        ui.about: about_html(language, server.folder.keep / 60),
        ui.status: gr.update(text=look_words(language)),
        ui.message: gr.update(value="", text=message_words(language)),
        ui.picture: gr.update(text=picture_words(language)),
        ui.bar: gr.skip(),
        ui.answer: gr.skip(),
    }
    if explanation or not shown:
        url = server.picture_url(shown["id"]) if shown else ""
        changes[ui.picture]["shown"] = picture_value(explanation, url, language)
        changes[ui.bar] = bar_value(explanation, url, language)
        changes[ui.answer] = answer_html(explanation, language)
    return changes
