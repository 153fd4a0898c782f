"""The explorer as a page of its own, as browser tests see it."""

import base64
import io
import json

import numpy as np
from PIL import Image
from support.models import noise, small_classifier

from vit_demo.explain import Explanation

ROOT = "document.querySelector('.vitx')"
BIG = {"image_size": 224, "patch_size": 16, "embed_dim": 96, "depth": 12, "heads": 12}
SMALL = {"depth": 4, "image_size": (16, 48), "registers": 2}


def look(shape: dict) -> Explanation:
    """A random model that looks at a picture with more detail than it sees."""
    return small_classifier(**shape).explain(noise().resize((900, 600)))


def state(page) -> dict:
    return json.loads(page.evaluate(f"{ROOT}.dataset.state"))


def drawn(page) -> int:
    return int(page.evaluate(f"{ROOT}.dataset.drawn"))


def pixels(page, canvas: str) -> np.ndarray:
    url = page.evaluate(f"document.querySelector('{canvas}').toDataURL()")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.split(",")[1]))).convert("RGB"))


def patch_point(page, row: int, col: int, grid=(14, 14)) -> tuple[float, float]:
    box = page.locator(".vx-picture").bounding_box()
    return (
        box["x"] + (col + 0.5) * box["width"] / grid[1],
        box["y"] + (row + 0.5) * box["height"] / grid[0],
    )


def after_drawing(page, act) -> None:
    before = drawn(page)
    act()
    page.wait_for_function(f"Number({ROOT}.dataset.drawn) > {before}")


def swipe(page, x: float, y: float, way: float) -> None:
    """A thumb that moves up or down."""
    devtools, steps = page.context.new_cdp_session(page), 15

    def send(kind: str, points: list[dict]) -> None:
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", [{"x": x, "y": y}])
    for step in range(1, steps + 1):
        send("touchMove", [{"x": x, "y": y + way * step / steps}])
    send("touchEnd", [])
