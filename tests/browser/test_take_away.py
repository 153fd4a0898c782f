"""Files and links that a visitor takes away, in Chromium, against the library."""

import json
import zipfile
from urllib.parse import parse_qs, urlsplit

import numpy as np
from PIL import Image
from support.page import (
    DEIT,
    EXPLORER,
    WIDE,
    after_new_result,
    choose_example,
    choose_model,
    label_names,
    state,
)

from vit_demo.embedded import example_path


def test_every_file_to_take_away_is_what_is_shown(arrive, deit_tiny, tmp_path, visit):
    expected = deit_tiny.explain(example_path("goldfish"), "pad")
    view = "&map=head_rollout&head=1&layer=5&query=3,4&residual=0.4"
    page = arrive(f"?model={DEIT}&example=goldfish&fit=pad{view}")
    paths = {}
    for kind in ("npz", "json", "gif", "webp", "html"):
        with page.expect_download() as waiting:
            page.click(f"#take [data-kind={kind}]")
        paths[kind] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(paths[kind])
        page.wait_for_selector(f"#take .note:has-text('{paths[kind].name}')")
    with np.load(paths["npz"]) as maps:
        arrays = expected.arrays(query=(3, 4), residual=0.4)
        assert sorted(maps) == sorted(arrays)
        for name, array in arrays.items():
            np.testing.assert_allclose(maps[name], array, rtol=1e-4, atol=1e-6)
    assert zipfile.is_zipfile(paths["npz"])
    about = json.loads(paths["json"].read_text(encoding="utf-8"))
    assert about["model"] == DEIT and about["fit"] == "pad"
    assert about["settings"] == {
        "fusion": "mean", "residual": 0.4, "discard": 0.0, "layer": 5, "head": 1,
        "query": [3, 4], "below": "mean",
    }  # fmt: skip
    for kind in ("gif", "webp"):
        with Image.open(paths[kind]) as animation:
            assert animation.n_frames == 12
    alone = visit(paths["html"].as_uri(), viewport=WIDE)
    alone.wait_for_selector(".vitx[data-ready=true]")
    saved = json.loads(alone.evaluate("document.querySelector('.vitx').dataset.state"))
    assert (saved["layer"], saved["head"], saved["query"]) == (5, 1, [3, 4])


def test_link_brings_everything_back(arrive, deit_tiny):
    page = arrive(permissions=["clipboard-read", "clipboard-write"])
    after_new_result(page, lambda: choose_model(page, "DeiT tiny"))
    choose_example(page, "camel")
    after_new_result(page, lambda: page.check("#fit input[value=stretch]", force=True))
    page.click("#explorer label:has-text('Rollout') >> nth=1")
    page.wait_for_function(f"JSON.parse({EXPLORER}.dataset.state).map === 'rollout'")
    page.click("#link button")
    page.wait_for_selector("#link .note:has-text('Link copied')")
    link = page.evaluate("navigator.clipboard.readText()")
    asked = {key: values[0] for key, values in parse_qs(urlsplit(link).query).items()}
    assert asked["model"] == DEIT and asked["example"] == "camel" and asked["fit"] == "stretch"
    other = arrive("?" + urlsplit(link).query)
    assert other.locator("#model input").input_value() == page.locator("#model input").input_value()
    assert label_names(other) == label_names(page)
    assert other.locator("#fit input[value=stretch]").is_checked()
    assert state(other) == state(page)


def test_nonsense_in_a_link_is_harmless(arrive):
    page = arrive("?example=../../x&fit=sideways&layer=99999&map=%3Cscript%3E&query=a,b&lang=xx")
    assert page.locator("[data-example=koala]").get_attribute("aria-pressed") == "true"
    assert page.locator("#fit input[value=crop]").is_checked()
