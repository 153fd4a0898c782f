"""What several browser tests ask of the page."""

import json

WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 800}
EXPLORER = "document.querySelector('#explorer .vitx')"
SECONDS = 60  # patience on a busy machine


def state(page) -> dict:
    return json.loads(page.evaluate(f"{EXPLORER}.dataset.state"))
