"""The attention explorer: one picture, every map of it, in the browser.

`payload` packs what one forward pass left behind into one binary blob. `explorer_maths.js` decodes it
and computes each map by itself (the same definitions as `attention.py`), so that layer, head, patch and
every setting change without asking the server. The same JavaScript serves two places: a Gradio
component (`make_explorer`) and a page that works from a file (`standalone_html`).

The blob: b"VITX", the header's length (uint32), a JSON header, then little-endian arrays at the
offsets that the header names, each at a multiple of 4 bytes. Attention is stored in few bits with
a square-root law, which keeps small values apart:

    value = (code / most) ** 2 * scale      most: 255 or 65535; one scale a row, so that it sums to 1

A small model is sent whole ("full": every head's attention, one byte a value). For a large one
("lean") the head-mean and the read-out's rows are enough, except for the single heads of a patch:
those are fetched when somebody asks (`query_rows`).
"""

import base64
import io
import json
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_demo.attention import attention_distance, attention_entropy
from vit_demo.class_maps import CLASS_MAPS
from vit_demo.explain import Explanation, Query
from vit_demo.faithful import random_map
from vit_demo.render import COLOUR_MAPS, DIFFERENCES
from vit_demo.ui.explorer_texts import EXPLORER_TEXTS

if TYPE_CHECKING:
    import gradio as gr

MAGIC = b"VITX"
FULL_LIMIT = 8_000_000  # values of attention up to which all of it is sent
FUSED_LIMIT = 2_000_000  # the same for the strongest and the weakest of the heads
CRISP_SIDE = 64  # pictures up to this side are shown with their pixels as blocks, and kept lossless
SCRIPTS = (
    "maths",
    "draw",
    "state",
    "controls",
    "picture",
    "wall",
)  # explorer_*.js, then explorer.js


# The blob


def payload(explanation: Explanation) -> bytes:
    """Everything the browser needs to know about one picture."""
    e = explanation
    full = e.layers * e.heads * e.N * e.N <= FULL_LIMIT
    picture, kind = picture_bytes(e.view.picture)
    wide = e.mean_attention.numel() <= FULL_LIMIT
    arrays = {
        "picture": np.frombuffer(picture, np.uint8),
        "rows": e.readout_rows.numpy(),
        **coded("mean", e.mean_attention, np.uint16 if wide else np.uint8),
        **heads_of(e, full),
    }
    header = {
        "model": e.model_name,
        "layers": e.layers,
        "heads": e.heads,
        "tokens": e.N,
        "grid": list(e.grid),
        "patch": list(e.view.patch_size),
        "prefix": e.config.prefix,
        "readout": list(e.readout.indices(e.N)[:2]),
        "pool": e.config.pool,
        "fit": e.view.fit,
        "full": full,
        "picture": {"kind": kind, "size": list(e.view.picture.size), "crisp": CRISP_SIDE},
        "top": [[p.label, p.probability, p.index] for p in e.top(10)] if e.labels else [],
        "classes": len(e.labels),
    }
    return pack(header, arrays)


def heads_of(e: Explanation, full: bool) -> dict[str, np.ndarray]:
    """Each head's distance and entropy; if wanted, its attention; one layer at a time.

    The strongest and the weakest of the heads have codes of their own: the minimum of numbers that
    were rounded on the scale of their own rows would be good for little.
    """
    prefix, layers = e.config.prefix_tokens, []
    fused = full or e.mean_attention.numel() <= FUSED_LIMIT
    with torch.inference_mode():
        for layer in range(e.layers):
            A = e.layer_attention(layer)
            distance = attention_distance(A, e.grid, e.view.patch_size, prefix)
            arrays = {"distance": distance.numpy(), "entropy": attention_entropy(A, prefix).numpy()}
            if fused:
                arrays |= coded("max", A.amax(dim=0), np.uint8)
                arrays |= coded("min", A.amin(dim=0), np.uint8)
            if full:
                arrays |= coded("heads", A, np.uint8)
            layers.append(arrays)
    return {name: np.stack([arrays[name] for arrays in layers]) for name in layers[0]}


def query_rows(explanation: Explanation, query: Query) -> bytes:
    """For a lean payload: each head's attention from this token, and to it, (L, h, N) both."""
    e = explanation
    with torch.inference_mode():
        rows = torch.stack([e.rows(layer, query) for layer in range(e.layers)])
        asked = e.query_tokens(query)
        columns = torch.stack(
            [e.layer_attention(layer)[:, :, asked].mean(dim=-1) for layer in range(e.layers)]
        )
    arrays = coded("from", rows, np.uint16) | coded("to", columns, np.uint16, shares=False)
    return pack({"query": query}, arrays)


def class_maps(explanation: Explanation, labels: Sequence[int]) -> dict[str, dict]:
    """What the explorer knows of some classes: names, probabilities, and the maps of CLASS_MAPS
    with a random one, (4, N) as base64."""
    e, probabilities = explanation, explanation.logits.softmax(dim=-1)
    chance = torch.zeros(e.N)
    chance[e.config.prefix_tokens :] = random_map(e).flatten()
    e.relevance(list(labels), tokens=True)  # one pass for all of them
    found = {}
    for label in labels:
        maps = [*(e.class_map(name, label, tokens=True) for name in CLASS_MAPS), chance]
        data = base64.b64encode(torch.stack(maps).numpy().astype("<f4").tobytes()).decode()
        about = {"name": e.labels[label], "probability": float(probabilities[label])}
        found[str(label)] = about | {"data": data}
    return found


def coded(
    name: str, A: Tensor, dtype: type[np.unsignedinteger], shares: bool = True
) -> dict[str, np.ndarray]:
    """Values as integer codes and one scale a row; `shares`: decoded rows sum to 1."""
    most = np.iinfo(dtype).max
    peak = A.amax(dim=-1, keepdim=True).clamp_min(torch.finfo(A.dtype).tiny)
    root = (A / peak).sqrt_().mul_(most).round_()
    scale = peak[..., 0]
    if shares:
        total = (root * root).sum(dim=-1)
        scale = torch.where(total > 0, most**2 / total, 0)
    return {name: root.numpy().astype(dtype), f"{name}_scale": scale.numpy().astype(np.float32)}


def picture_bytes(picture: Image.Image) -> tuple[bytes, str]:
    """A picture as a file: lossless where single pixels will be seen, otherwise a fine JPEG."""
    stream = io.BytesIO()
    if max(picture.size) <= CRISP_SIDE:
        picture.save(stream, "PNG")
        return stream.getvalue(), "image/png"
    picture.save(stream, "JPEG", quality=95, subsampling=0)
    return stream.getvalue(), "image/jpeg"


def pack(header: dict, arrays: dict[str, np.ndarray]) -> bytes:
    """Header and arrays in one blob; `unpack` is its inverse."""
    entries, blocks, offset = {}, [], 0
    for name, array in arrays.items():
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        entries[name] = {"dtype": str(array.dtype), "shape": list(array.shape), "offset": offset}
        blocks += [array.tobytes(), bytes(-array.nbytes % 4)]
        offset += array.nbytes + -array.nbytes % 4
    text = json.dumps(header | {"arrays": entries}, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 4)  # the arrays begin at a multiple of 4, too
    return b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *blocks])


def unpack(blob: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """What `pack` packed: the header and the arrays."""
    if blob[:4] != MAGIC:
        raise ValueError("These are not the explorer's data; make them with payload().")
    start = 8 + int.from_bytes(blob[4:8], "little")
    header = json.loads(blob[8:start])
    arrays = {}
    for name, entry in header.pop("arrays").items():
        shape, dtype = entry["shape"], np.dtype(entry["dtype"])
        count = int(np.prod(shape))
        flat = np.frombuffer(blob, dtype, count, start + entry["offset"])
        arrays[name] = flat.reshape(shape)
    return header, arrays


# The places where it is shown


def make_explorer(
    fetch_query: Callable[[dict], dict],
    fetch_classes: Callable[[dict], dict],
    elem_id: str = "explorer",
    **options: Any,
) -> "gr.HTML":
    """The explorer as a Gradio component.

    Its value is None (nothing to see yet) or {"id": ..., "url": ..., "state": {...}}: the browser
    fetches `url`, where the server put a `payload`, and starts with `state`, if that is given.
    `fetch_query({"id": ..., "query": [row, column] or None})` returns {"data": base64 of
    `query_rows`} or {"error": message}; it is asked for lean payloads only.
    `fetch_classes({"id": ..., "labels": [...]})` returns {"classes": `class_maps`} or the error.
    The component's `change` event carries the state; the same event without a state is Gradio's own
    and says that the value was set. The property `language` ("en", "ko") may change at any time.
    """
    import gradio as gr

    def explorer_rows(request: dict) -> dict:
        return fetch_query(request)

    def explorer_classes(request: dict) -> dict:
        return fetch_classes(request)

    start = """
        const words = {...SETUP, trigger, props, watch,
            ask: (request) => server.explorer_rows(request),
            askClasses: (request) => server.explorer_classes(request)};
        ViTExplorer.mountComponent(element.querySelector(".vitx"), words);
    """
    options.setdefault("language", None)
    return gr.HTML(
        value=options.pop("value", None),
        html_template='<div class="vitx"></div>',
        js_on_load=f"{script()}\nconst SETUP = {setup()};\n{start}",
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
    data = base64.b64encode(payload(explanation)).decode()
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
{script()}
ViTExplorer.mountPage(document.querySelector(".vitx"), {setup()}, {options});
</script>
</body>
</html>
"""


@cache
def script() -> str:
    """The JavaScript files one after the other, in a function: it leaves only `ViTExplorer` behind."""
    names = [*(f"explorer_{part}.js" for part in SCRIPTS), "explorer.js"]
    files = "\n".join(map(beside, names))
    return f'(() => {{\n"use strict";\n\n{files}}})();\n'


@cache
def setup() -> str:
    """What the script needs besides the data: its looks, its words, its colours. As JSON."""
    colours = {name: colour_table(name) for name in COLOUR_MAPS}
    colours["difference"] = colour_table(DIFFERENCES)
    words = {"css": beside("explorer.css"), "texts": EXPLORER_TEXTS, "colours": colours}
    return json.dumps(words, ensure_ascii=False).replace("<", "\\u003c")


def beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def colour_table(name: str) -> str:
    """A colour map as 256 RGB triples, base64."""
    table = matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3]
    return base64.b64encode(np.ascontiguousarray(table).tobytes()).decode()
