"""The interface for programs: two public endpoints."""

import logging
from contextlib import contextmanager

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache

from vit_demo.checkpoints import CheckpointError
from vit_demo.image import ImageError
from vit_demo.map_settings import FITS, settings_from
from vit_demo.ui.html import Picture
from vit_demo.ui.store import Server
from vit_demo.ui.texts import one_sentence, words

log = logging.getLogger("vit_demo")


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
            return server.classify(image, model, fit or "crop", int(number("top", top, 10)))

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
            shares = {
                "residual": number("residual", residual, 0.5),
                "discard": number("discard", discard, 0.0),
            }
            state = shares | {"query": query, "below": below or "mean"}
            about, file = server.maps(image, model, fit or "crop", settings_from(state))
            return about, save_bytes_to_cache(file, "maps.npz", maps.GRADIO_CACHE)

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
    shared = {"concurrency_id": "api", "concurrency_limit": 16}
    button.click(classify, [image, model, fit, top], labels, api_name="classify", **shared)
    settings = [row, column, residual, discard, below]
    button.click(
        explain, [image, model, fit, *settings], [about, maps], api_name="explain", **shared
    )


def number(name: str, value: object, default: float) -> float:
    """A setting as a number; what a program leaves empty is the default."""
    try:
        return default if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {str(value)[:40]!r}; give a number.") from None


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
