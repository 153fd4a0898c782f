"""The interface for programs: what the page does, as public endpoints.

Every endpoint is a function; its parameters name the hidden components that Gradio needs for each of
them, and its docstring is the description that programs read ("Use via API", and the tools of MCP).
"""

import inspect
import io
import logging
import math
import time
from collections.abc import Callable
from contextlib import contextmanager

import gradio as gr
from PIL import Image

from vit_demo import compare as side_by_side
from vit_demo import export
from vit_demo import trust as faithful
from vit_demo.checkpoints import CheckpointError
from vit_demo.explain import Explanation
from vit_demo.image import ImageError
from vit_demo.labels import read_label
from vit_demo.map_settings import CLASS_MAPS, FITS, PLAIN_MAPS, MapSettings, settings_from
from vit_demo.trust import charts
from vit_demo.ui.folder import saved
from vit_demo.ui.html import Picture
from vit_demo.ui.questions import SECONDS
from vit_demo.ui.runner import TooSlow
from vit_demo.ui.server_functions import BUSY
from vit_demo.ui.store import Server
from vit_demo.ui.texts import one_sentence, words
from vit_demo.validate import shown

log = logging.getLogger("vit_demo")


def add_api(server: Server, default: str) -> None:
    """The public endpoints. Their parts are never shown; they give names, kinds and defaults."""
    with gr.Column(visible=False):
        parts = components(default)
        outputs = {
            "labels": gr.JSON(label="labels"),
            "description": gr.JSON(label="description"),
            "picture": gr.File(label="picture.png"),
            "maps": gr.File(label="maps.npz"),
        }
        button = gr.Button()
    folder = outputs["maps"].GRADIO_CACHE
    shared = {"concurrency_id": "api", "concurrency_limit": 16}
    alone = {"concurrency_id": "trust", "concurrency_limit": 1}  # with the page's long questions
    why = parts | {"method": parts["class_map"]}
    for function, inputs, names, queue in (
        (classifying(server, default), parts, ["labels"], shared),
        (explaining(server, default, folder), parts, ["description", "maps"], shared),
        (asking_why(server, default, folder), why, ["description", "picture", "maps"], shared),
        (testing(server, default, folder), parts, ["description", "picture"], alone),
        (comparing(server, default, folder), parts, ["description", "picture", "maps"], shared),
    ):
        parameters = inspect.signature(function).parameters
        given = [inputs[name] for name in parameters if name in inputs]
        results = [outputs[name] for name in names]
        button.click(function, given, results, api_name=function.__name__, **queue)


def components(default: str) -> dict[str, gr.components.Component]:
    """One for each name that a parameter of an endpoint has."""
    return {
        "image": Picture(type="filepath", label="image"),
        "other_image": Picture(type="filepath", label="other_image"),
        "model": gr.Textbox(default, label="model"),
        "other_model": gr.Textbox("", label="other_model"),
        "fit": gr.Radio(list(FITS), value="crop", label="fit"),
        "top": gr.Number(10, label="top", precision=0),
        "row": gr.Number(None, label="row", precision=0),
        "column": gr.Number(None, label="column", precision=0),
        "layer": gr.Number(-1, label="layer", precision=0),
        "head": gr.Number(None, label="head", precision=0),
        "residual": gr.Number(0.5, label="residual"),
        "discard": gr.Number(0.0, label="discard"),
        "below": gr.Radio(["mean", "same"], value="mean", label="below"),
        "label": gr.Textbox("", label="label"),
        "minus": gr.Textbox("", label="minus"),
        "class_map": gr.Radio(list(CLASS_MAPS), value=CLASS_MAPS[0], label="class_map"),
        "method": gr.Radio([*PLAIN_MAPS, *CLASS_MAPS], value="rollout", label="method"),
        "methods": gr.Textbox("", label="methods"),
        "remove": gr.Radio(list(faithful.REMOVALS), value="tokens", label="remove"),
        "thorough": gr.Checkbox(False, label="thorough"),
    }


# The endpoints


def classifying(server: Server, default: str) -> Callable:
    def classify(
        image: str,
        model: str = default,
        fit: str = "crop",
        top: float = 10,
        request: gr.Request | None = None,
    ) -> dict:
        """Name what is in a picture.

        Args:
            image: A picture file (JPEG, PNG, WebP, GIF, TIFF or BMP), never an address.
            model: An embedded model or any plain timm ViT, such as deit_tiny_patch16_224.fb_in1k.
            fit: How the picture meets the model: crop, pad, stretch or native.
            top: How many labels.

        Returns:
            {"model": name, "labels": [{"label", "probability", "index"}, ...]}, best first
        """
        with friendly():
            check_model(server, model, request)
            return server.classify(image, model, fit or "crop", int(number("top", top, 10)))

    return classify


def explaining(server: Server, default: str, folder: str) -> Callable:
    def explain(
        image: str,
        model: str = default,
        fit: str = "crop",
        row: float | None = None,
        column: float | None = None,
        residual: float = 0.5,
        discard: float = 0.0,
        below: str = "mean",
        request: gr.Request | None = None,
    ) -> tuple[dict, str]:
        """Show where in a picture the answer came from: attention rollout, one map for each head.

        Args:
            image: A picture file (JPEG, PNG, WebP, GIF, TIFF or BMP), never an address.
            model: An embedded model or any plain timm ViT, such as deit_tiny_patch16_224.fb_in1k.
            fit: How the picture meets the model: crop, pad, stretch or native.
            row: With column: the patch that asks, from 0. Without: the answer asks.
            column: See row.
            residual: The share that passes a layer unchanged, 0 to 1.
            discard: The share of weak links that is dropped, 0 to 1.
            below: Below a head: "mean" of the heads, or the head of the "same" number.

        Returns:
            the description (labels, grid, crop box, settings)
            maps.npz (rollout, head_rollouts, logits, prefix_mass, head_prefix_mass)
        """
        with friendly():
            check_model(server, model, request)
            shares = {
                "residual": number("residual", residual, 0.5),
                "discard": number("discard", discard, 0.0),
            }
            state = shares | {"query": patch(row, column), "below": below or "mean"}
            about, file = server.maps(image, model, fit or "crop", settings_from(state))
            return about, saved(file, "maps.npz", folder)

    return explain


def asking_why(server: Server, default: str, folder: str) -> Callable:
    def why(
        image: str,
        model: str = default,
        fit: str = "crop",
        label: str = "",
        minus: str = "",
        method: str = CLASS_MAPS[0],
        request: gr.Request | None = None,
    ) -> tuple[dict, str, str]:
        """Show what in a picture speaks for a label, or for one label rather than another.

        Args:
            image: A picture file (JPEG, PNG, WebP, GIF, TIFF or BMP), never an address.
            model: An embedded model or any plain timm ViT, such as deit_tiny_patch16_224.fb_in1k.
            fit: How the picture meets the model: crop, pad, stretch or native.
            label: The label in question, by its name or number; empty for the answer.
            minus: Rather than this label, by its name or number; empty for none.
            method: The class map: contribution, relevance, gradient_rollout or grad_cam.

        Returns:
            the description (labels, grid, crop box, settings, and as "why" the label in question)
            the map over the picture as a PNG
            maps.npz (map, map_prefix, and what explain gives)
        """
        with friendly():
            check_model(server, model, request)
            e = server.explanation(image, model, fit or "crop")
            less = read_label(minus or "")
            settings = MapSettings(
                map=method or CLASS_MAPS[0],
                label=e.label_index(read_label(label or "")),
                minus=None if less is None else e.label_index(less),
            )
            if settings.label == settings.minus:
                raise ValueError("label and minus name the same label; give two different ones.")
            with BUSY:
                arrays = export.arrays_of(e, settings)
                about = export.description(e, settings) | {"why": named(e, settings.label)}
                if settings.minus is not None:
                    about["minus"] = named(e, settings.minus)
                drawn = export.class_map_picture(e, settings, arrays["map"])
            file = saved(export.npz_bytes(arrays), "maps.npz", folder)
            return about, picture_file(drawn, "why.png", folder), file

    return why


def testing(server: Server, default: str, folder: str) -> Callable:
    def trust(
        image: str,
        model: str = default,
        fit: str = "crop",
        label: str = "",
        methods: str = "",
        remove: str = "tokens",
        thorough: bool = False,
        request: gr.Request | None = None,
    ) -> tuple[dict, str]:
        """Test whether maps are true: does a label fall faster without what a map marks than by chance?

        Args:
            image: A picture file (JPEG, PNG, WebP, GIF, TIFF or BMP), never an address.
            model: An embedded model or any plain timm ViT, such as deit_tiny_patch16_224.fb_in1k.
            fit: How the picture meets the model: crop, pad, stretch or native.
            label: The label in question, by its name or number; empty for the answer.
            methods: Which maps, with commas between them; empty for all, with a random one beside them.
            remove: How patches go: their "tokens" are dropped, or they are painted "black" or "blur".
            thorough: 20 steps, 30 random orders, patches dropped and painted over: slow, and surer.

        Returns:
            for each method its score, the band in which chance lies, a sentence and the curves
            as "best" the method that did best on this picture
            a drawing of all as a PNG
        """
        with friendly():
            check_model(server, model, request)
            names = [name.strip() for name in (methods or "").split(",") if name.strip()]
            e = server.explanation(image, model, fit or "crop")
            found = faithful.check(
                e,
                list(dict.fromkeys(names or faithful.METHODS)),
                read_label(label or ""),
                remove=remove or "tokens",
                thorough=bool(thorough),
                progress=time_limit(SECONDS),
            )
            drawn = charts.trust(e, found.maps, found.trusts)
            return found.describe(), picture_file(drawn, "trust.png", folder)

    return trust


def comparing(server: Server, default: str, folder: str) -> Callable:
    def compare(
        image: str,
        model: str = default,
        other_image: str | None = None,
        other_model: str = "",
        fit: str = "crop",
        method: str = "rollout",
        layer: float = -1,
        head: float | None = None,
        row: float | None = None,
        column: float | None = None,
        label: str = "",
        minus: str = "",
        request: gr.Request | None = None,
    ) -> tuple[dict, str, str]:
        """Compare two models on one picture, or two pictures in one model: answers and maps.

        Args:
            image: A picture file (JPEG, PNG, WebP, GIF, TIFF or BMP), never an address.
            model: An embedded model or any plain timm ViT, such as deit_tiny_patch16_224.fb_in1k.
            other_image: A second picture for the same model. Give this or other_model.
            other_model: A second model for the same picture. Give this or other_image.
            fit: How the picture meets the model: crop, pad, stretch or native.
            method: The map: rollout, head_rollout, attention, contribution, relevance,
                gradient_rollout or grad_cam.
            layer: Of the first, from 0; -1 is the last. The second follows by relative depth.
            head: Of the first, from 0; empty for all heads. For head_rollout and attention.
            row: With column: the patch of the first that asks, from 0. Without: the answer asks.
            column: See row.
            label: For class maps: a label by its name or number; empty for each one's own answer.
            minus: For class maps: rather than this label; empty for none.

        Returns:
            both descriptions, and whether they agree
            the labels on which they are furthest apart
            the rank correlation of the maps
            a drawing as a PNG
            maps.npz (first, second; on the common grid first_common, second_common, difference, seen)
        """
        with friendly():
            if bool(other_image) == bool(other_model):
                raise ValueError(
                    "Give a second picture (other_image) or a second model (other_model), not both."
                )
            for name in filter(None, (model, other_model)):
                check_model(server, name, request)
            first = server.explanation(image, model, fit or "crop")
            second = server.explanation(other_image or image, other_model or model, fit or "crop")
            settings = side_by_side.question(
                first,
                method or "rollout",
                layer=int(number("layer", layer, -1)),
                head=None if head is None else int(number("head", head, 0)),
                query=patch(row, column),
                label=read_label(label or ""),
                minus=read_label(minus or ""),
            )
            with BUSY:
                found = side_by_side.compare(first, second, settings)
                drawn = side_by_side.figure(found)
            file = saved(export.npz_bytes(found.arrays()), "maps.npz", folder)
            return found.describe(), picture_file(drawn, "compare.png", folder), file

    return compare


# What they share


def check_model(server: Server, name: str, request: gr.Request | None) -> None:
    """A tool of MCP, which nobody watches, downloads nothing."""
    if request is None or request.headers.get("x-gradio-user") != "mcp" or server.is_here(name):
        return
    raise ValueError(
        f"{name[:200]!r} is not on this server's disk; choose an embedded model, or download this one "
        "first by opening it on the page."
    )


def named(explanation: Explanation, index: int) -> dict:
    probability = float(explanation.logits.softmax(dim=-1)[index])
    return {"label": explanation.labels[index], "index": index, "probability": probability}


def patch(row: float | None, column: float | None) -> tuple[int, int] | None:
    return None if row is None or column is None else (int(row), int(column))


def time_limit(seconds: float) -> faithful.Progress:
    """A progress that ends what takes too long."""
    began = time.monotonic()

    def progress(done: int, total: int) -> None:
        if time.monotonic() - began > seconds:
            raise TooSlow(
                f"Stopped after {seconds:.0f} s; choose a smaller model, or fewer methods."
            )

    return progress


def picture_file(drawn: Image.Image, name: str, folder: str) -> str:
    stream = io.BytesIO()
    drawn.save(stream, "PNG")
    return saved(stream.getvalue(), name, folder)


def number(name: str, value: object, default: float) -> float:
    """A setting as a number; what a program leaves empty is the default."""
    try:
        found = default if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{name} is {shown(value)}; give a number.")
    return found


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
