"""The page, served in this process, and what several browser tests do on it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from support.models import small_classifier
from support.ports import free_port
from support.shared import SHARED, missing

from vit_demo.embedded import embedded

MODEL, DEIT = "vit-photos", "deit_tiny_patch16_224.fb_in1k"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 800}
EXPLORER = "document.querySelector('#explorer .vitx')"
WHY = "document.querySelector('#why .why')"
SECONDS = 60  # patience on a busy machine


class Site:
    """The address of the page, and the server behind it."""

    def __init__(self, url: str, server, demo):
        self.url, self.server, self.demo = url, server, demo

    def explanation(self, page):
        return self.server.store.get(shown_id(page))


@contextmanager
def served() -> Iterator[Site]:
    """The page with the embedded models, two small random ones ("many" labels and "headless"), and
    DeiT-tiny if its weights are there."""
    from vit_demo.ui import page
    from vit_demo.ui.store import Server

    for name in ("vit-photos", "vit-mnist"):
        if name not in embedded():
            missing(f"assets/{name}.safetensors is not here")
    server = Server(device="cpu")
    server.models.kept["many"] = small_classifier(num_classes=40)
    server.models.kept["headless"] = small_classifier(num_classes=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIT_DEMO_WEIGHTS", str(SHARED / "weights"))
        for name in [MODEL] + [DEIT] * (SHARED / "weights" / f"{DEIT}.safetensors").exists():
            server.models.get(name)
    demo = page.build(server, MODEL)
    options = {"server_name": "127.0.0.1", "server_port": free_port(), "prevent_thread_lock": True}
    _, url, _ = demo.launch(**options, **page.launch_options())
    yield Site(url, server, demo)
    demo.close(verbose=False)
    server.close()


# What the page shows


def state(page) -> dict:
    return json.loads(page.evaluate(f"{EXPLORER}.dataset.state"))


def shown_id(page) -> str:
    return page.evaluate(f"{EXPLORER}.dataset.id")


def label_names(page) -> list[str]:
    """Without what else they are called."""
    texts = page.locator("ol.answer .label").all_inner_texts()
    return [re.split(r"\n|, ", text)[0] for text in texts]


def label_indices(page) -> list[int]:
    rows = page.locator("ol.answer li").all()
    return [int(row.get_attribute("data-index")) for row in rows]


def map_values(page) -> np.ndarray:
    """The map in the explorer, as numbers."""
    page.wait_for_function(f"{EXPLORER}.explorer.values")
    return np.array(page.evaluate(f"Array.from({EXPLORER}.explorer.values)"))


def assert_map(page, expected, atol: float = 1e-6) -> None:
    flat = np.asarray(expected).ravel()
    np.testing.assert_allclose(map_values(page), flat, rtol=1e-4, atol=atol)


FADED_IN = """document.getAnimations().every(
    (one) => one.effect.getComputedTiming().endTime === Infinity)"""


def serious_axe_violations(page) -> list[tuple[str, list[str]]]:
    """What axe finds that keeps somebody from using the page."""
    # What fades in has not its own colours yet.
    page.wait_for_function(FADED_IN)
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-playwright-python is not installed; pip install -r requirements-dev.txt")
    return [
        (rule["id"], [node["html"][:120] for node in rule["nodes"]])
        for rule in Axe().run(page).response["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


# What a visitor does


def after_new_result(page, act: Callable) -> None:
    """Do something, wait until its result is on the page, as numbers and as a picture."""
    before = shown_id(page)
    act()
    page.wait_for_function(f"{EXPLORER}.dataset.id !== {json.dumps(before)}")
    page.wait_for_function(
        "JSON.parse(document.querySelector('#take .files').dataset.shown).id === "
        f"{EXPLORER}.dataset.id"
    )
    page.wait_for_function(f"!{EXPLORER}.classList.contains('vx-busy')")


def choose_example(page, name: str) -> None:
    after_new_result(page, lambda: page.click(f"[data-example={name}]"))


def upload(page, path) -> None:
    page.set_input_files("#picture input[type=file]", str(path))


def choose_model(page, text: str) -> None:
    page.click("#model input")
    page.click(f"#model li:has-text('{text}')")


def ask_why(page, row: int, button: str = "ask") -> None:
    page.click(f"ol.answer li:nth-child({row}) .{button}")


def until_state(page, condition: str) -> None:
    """Wait until the state of the explorer, s, is as it should be."""
    page.wait_for_function(
        f"(() => {{ const s = {EXPLORER}.explorer.state; return {condition}; }})()"
    )


def open_tab(page, name: str) -> None:
    page.click(f"#tab-{name}")
    page.wait_for_selector(f"#panel-{name}")


def come_to_the_methods(page) -> None:
    """Open the tab with the strip of methods; its maps come by themselves."""
    open_tab(page, "trust")
    page.wait_for_selector("#why .why-tile[data-method=relevance]:not(:disabled)")


def until_done(page, kind: str) -> None:
    page.wait_for_selector(f"#why [data-job={kind}][data-state=done]")


def next_frames(page) -> None:
    """What was asked for is on the screen: the page draws in the next frame."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
