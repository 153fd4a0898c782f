"""The attention explorer: one picture, every map of it, in the browser.

`payload.py` packs what one forward pass left behind into one blob. `static/explorer/maps.js` computes
each map from it (the same definitions as `attention.py`), so that layer, head, patch and every setting
change without asking the server. The same JavaScript serves two places: a Gradio component
(`make_explorer`) and a page that works from a file (`standalone_html`).
"""

import base64
import json
from collections.abc import Callable
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np

from vit_demo.explain import Explanation
from vit_demo.findings import FINDINGS, Finding
from vit_demo.map_settings import COLOUR_MAPS, DIFFERENCES, SCHEMA
from vit_demo.ui.payload import class_maps, payload
from vit_demo.ui.static import bundle, mount_script, read_static
from vit_demo.ui.texts import EXPLORER_TEXTS, GLOSSARY, LABELS

if TYPE_CHECKING:
    import gradio as gr


def make_explorer(
    fetch_rows: Callable[[dict], dict],
    fetch_classes: Callable[[dict], dict],
    elem_id: str = "explorer",
    **options: Any,
) -> "gr.HTML":
    """The explorer as a Gradio component.

    Its value is None (nothing to see yet) or {"id": ..., "url": ..., "example": ..., "image": ...,
    "state": {...}}:
    the browser fetches `url`, where the server put a `payload`, and starts with `state`, if that is
    given; `example` is the picture's name, if it is one of ours, `image` its file, for copied code.
    `fetch_rows({"id": ..., "query": [row, column] or None})`, or with "layer" or "fusion" in place of
    "query", returns {"data": base64 of `query_rows`, `layer_rows`, `fused_rows`} or {"error": message};
    it is asked for lean payloads only.
    `fetch_classes({"id": ..., "labels": [...]})` returns {"classes": `class_maps`} or the error.
    The property `first` is such a value, too: what somebody sees who comes without a link, known before
    the server is asked.
    The component's `change` event carries the state; the same event without a state is Gradio's own
    and says that the value was set. The property `language` ("en", "ko") may change at any time.
    """
    import gradio as gr

    def explorer_rows(request: dict) -> dict:
        return fetch_rows(request)

    def explorer_classes(request: dict) -> dict:
        return fetch_classes(request)

    options = {"language": None, "first": None} | options
    return gr.HTML(
        value=options.pop("value", None),
        html_template='<div class="vitx"></div>',
        js_on_load=mount_script("explorer/component.js", setup()),
        apply_default_css=False,
        elem_id=elem_id,
        server_functions=[explorer_rows, explorer_classes],
        **options,
    )


def standalone_html(
    explanation: Explanation, language: str = "en", state: dict | None = None
) -> str:
    """The explorer as one file: no server, no network, all inside. Of the class maps it has those
    that somebody has asked for, so that nothing new is computed."""
    asked = [
        label
        for label in ((state or {}).get(key) for key in ("label", "minus"))
        if label is not None
    ]
    known = dict.fromkeys([*asked, *explanation.class_vectors])
    classes = class_maps(explanation, list(known)) if known else {}
    data = base64.b64encode(payload(explanation, for_file=True)).decode()
    language = language if language in EXPLORER_TEXTS else "en"
    options = {"language": language, "state": state or {}, "classes": classes}
    options = json.dumps(options).replace("<", "\\u003c")
    title = escape(f"{explanation.model_name}: {EXPLORER_TEXTS[language]['page_title']}")
    return f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
</head>
<body class="vitx-page">
<main><h1>{title}</h1><div class="vitx vitx-auto"></div></main>
<script type="text/plain" id="vitx-data">{data}</script>
<script>
(() => {{
"use strict";
{bundle("explorer/index.js")}
modules["explorer/index.js"].mountPage(document.querySelector(".vitx"), {setup()}, {options});
}})();
</script>
</body>
</html>
"""


@cache
def setup() -> str:
    """What the explorer needs besides the data: its looks, words, colours and settings. As JSON."""
    colours = {name: colour_table(name) for name in COLOUR_MAPS}
    colours["difference"] = colour_table(DIFFERENCES)
    given = {
        "css": read_static("explorer/explorer.css") + read_static("glossary.css"),
        "texts": EXPLORER_TEXTS,
        "labels": LABELS,
        "glossary": GLOSSARY,
        "colours": colours,
        "schema": SCHEMA,
        "findings": {model: [link(one) for one in found] for model, found in FINDINGS.items()},
    }
    return json.dumps(given, ensure_ascii=False).replace("<", "\\u003c")


def link(finding: Finding) -> dict:
    """What the browser needs to know of a finding."""
    return {key: getattr(finding, key) for key in ("name", "example", "settings")}


def colour_table(name: str) -> str:
    """A colour map as 256 RGB triples, base64."""
    table = matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3]
    return base64.b64encode(np.ascontiguousarray(table).tobytes()).decode()
