"""The page, ready to launch: a server with its first model, and the page around it."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import gradio as gr
from gradio.utils import get_upload_folder

from vit_demo.checkpoints import DEFAULT, SUFFIXES, CheckpointError, example_path
from vit_demo.ui import mcp
from vit_demo.ui.api import add_api
from vit_demo.ui.early import early_parts
from vit_demo.ui.events import connect
from vit_demo.ui.guard import Blocks
from vit_demo.ui.html import EXAMPLES, image_of
from vit_demo.ui.layout import lay_out
from vit_demo.ui.limits import MOST_WAITING
from vit_demo.ui.models import kind_of
from vit_demo.ui.store import Server
from vit_demo.ui.theme import launch_options  # noqa: F401 (what the page is launched with)
from vit_demo.ui.visitors import limit_queue

SPACES_DEFAULT = "deit_small_patch16_224.fb_in1k"


def default_model() -> str:
    return SPACES_DEFAULT if os.environ.get("SYSTEM") == "spaces" else DEFAULT


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
    demo = build(server, default)
    where = classifier.device
    say(f"  {classifier.name} ready on {where} in {time.perf_counter() - began:.1f} s")
    return demo


def finish_tools(demo: gr.Blocks) -> None:
    """The tools for assistants, as `launch` began them with `mcp`: pictures come inside of the calls."""
    if demo.mcp_server_obj is None:
        raise ValueError(
            "The tools for assistants could not be made with these versions of the packages; "
            "pip install -r requirements-mcp.txt, and start again."
        )
    mcp.adapt(demo.mcp_server_obj, get_upload_folder())


class Forgetful(set):
    """Gradio remembers the path of every upload, to remove them at some time; here `folder.py` does."""

    def update(self, *paths: object) -> None:
        pass


def build(server: Server, default: str) -> gr.Blocks:
    """The whole page, ready to launch with `launch_options`."""
    gr.set_static_paths([server.store.folder])
    server.first = first_view(server, default)
    with Blocks(title="ViT Demo", analytics_enabled=False, fill_width=True) as demo:
        ui = lay_out(server, default)
        connect(demo, ui, server, default)
        add_api(server, default)
    demo.upload_file_set = Forgetful()
    demo.early = early_parts(server.first)
    demo.queue(max_size=MOST_WAITING, api_open=False)  # False: nobody passes by the queue
    limit_queue(demo._queue)
    return demo


def first_view(server: Server, model: str) -> dict:
    """What the explorer shows to somebody who comes without a link: looked at before the first comes."""
    classifier = server.models.get(model)
    example = EXAMPLES[kind_of(classifier)][0]
    id, _ = server.look(classifier, str(example_path(example)), "crop", example)
    shown = {"model": model, "example": example, "fit": "crop"}
    return shown | {"id": id, "url": server.url(id), "image": image_of(shown)}
