"""Watch a model learn to read digits: the tab "Learn". The browser's side is in `static/learn/`.

The first time the tab is shown, one question brings all that is known of the training; another brings
one drawing at every moment. After that the slider asks nobody.
"""

import base64
import inspect
import io
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import gradio as gr
import torch
from PIL import Image
from torch import Tensor

from vit_demo.embedded import PACKAGE, example_path
from vit_demo.explain import Explanation
from vit_demo.image import ImageError
from vit_demo.inside import position_similarity
from vit_demo.learning import History, load_history
from vit_demo.ui.html import EXAMPLES, HTML, thumbnail
from vit_demo.ui.server_functions import BUSY, guarded
from vit_demo.ui.static import mount_script
from vit_demo.ui.store import Server
from vit_demo.ui.texts import LEARN_TEXTS, example_name

COMMAND = "vit-demo train mnist --out runs/mnist --epochs 14 --snapshots 16"
MAPS = ("head_rollout", "attention")
MOST_SIDE = 1024  # pixels of a drawing; the pad has 280


def make_tab(server: Server) -> gr.HTML:
    """The tab. It shows a model and pictures of its own, whatever is chosen elsewhere on the page."""
    names = EXAMPLES["digit"]
    examples = {
        language: [[name, example_name(name, language), thumbnail(name)] for name in names]
        for language in LEARN_TEXTS
    }
    setup = {"texts": LEARN_TEXTS, "examples": examples, "maps": MAPS}
    return HTML(
        None,
        html_template='<div class="learn"></div>',
        js_on_load=mount_script("learn/index.js", json.dumps(setup, ensure_ascii=False)),
        server_functions=[guarded(training_history), guarded(digit_over_time)],
        elem_id="learn",
        language="en",
    )


def tab_value(server: Server, id: str, explanation: Explanation) -> None:
    """The picture on the left is not looked at here."""


def training_history(request: dict) -> dict:
    """What does not depend on a drawing: curves, confusion, positions, the command, the code."""
    history = the_history()
    kept = ("step", "epoch", "train_loss", "test_loss", "accuracy", "confusion")
    positions = torch.stack([position_similarity(m.classifier.model) for m in history.moments])
    return {
        "moments": [{name: getattr(moment, name) for name in kept} for moment in history.moments],
        "labels": history.labels,
        "steps": history.steps,
        "epochs": history.epochs,
        "batch_size": history.batch_size,
        "test_pictures": history.test_pictures,
        "grid": history.moments[0].classifier.config.grid,
        "positions": packed(positions),
        "command": COMMAND,
        "code": sources(),
    }


def digit_over_time(request: dict) -> dict:
    """An example or a drawing at every moment: the answers, and the maps of all heads."""
    name = request.get("example")
    if name is not None and name not in EXAMPLES["digit"]:
        raise ImageError("There is no such example; choose one of the digits below the pad.")
    picture = example_path(name) if name else decoded(request.get("drawing"))
    with BUSY:
        found = the_history().explain(picture)
    seen = found[0].view.picture.convert("L")
    maps = {
        "head_rollout": [one.head_rollouts(None) for one in found],
        "attention": [
            torch.stack([one.attention(layer) for layer in range(one.layers)]) for one in found
        ],
    }
    return {
        "probabilities": [one.logits.softmax(dim=-1).tolist() for one in found],
        "layers": found[0].layers,
        "heads": found[0].heads,
        "maps": {name: packed(torch.stack(maps[name])) for name in MAPS},
        "size": seen.size,
        "pixels": base64.b64encode(seen.tobytes()).decode(),
    }


def decoded(drawing: object) -> bytes:
    """A drawing pad's data URL as the bytes of a PNG file."""
    try:
        data = base64.b64decode(str(drawing or "").partition(",")[2], validate=True)
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            fine = max(picture.size) <= MOST_SIDE
    except (ValueError, OSError, SyntaxError) as error:
        raise ImageError("The drawing did not arrive; draw it again.") from error
    if not fine:
        raise ImageError("The drawing is larger than the pad; draw it again.")
    return data


@cache
def the_history() -> History:
    """Small enough to stay, and for the CPU."""
    return load_history(device="cpu")


def packed(numbers: Tensor) -> str:
    """Numbers as 32 bits each, in base64."""
    return base64.b64encode(numbers.contiguous().numpy().astype("<f4").tobytes()).decode()


@cache
def sources() -> list[dict]:
    """The functions that did it, as they stand in the files: never a copy."""
    from vit_demo.training import data, evaluation, loop

    parts = {
        "loaders": (data.load_dataset, loop.batches, loop.make_batch),
        "epoch": (loop.train_epoch,),
        "evaluate": (evaluation.measure,),
        "loop": (loop.train,),
    }
    return [
        {"part": part, "functions": [source(function) for function in functions]}
        for part, functions in parts.items()
    ]


def source(function: Callable) -> dict:
    function = inspect.unwrap(function)
    lines, first = inspect.getsourcelines(function)
    file = Path(inspect.getsourcefile(function)).relative_to(PACKAGE.parent).as_posix()
    return {"name": function.__name__, "file": file, "first": first, "code": "".join(lines)}
