"""Files and links that a visitor takes away, in Chromium, against the library."""

import json
import shlex
import zipfile
from base64 import b64decode
from io import BytesIO
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from PIL import Image
from support.page import (
    DEIT,
    EXPLORER,
    MODEL,
    WIDE,
    after_new_result,
    choose_example,
    choose_model,
    label_names,
    map_values,
    next_frames,
    state,
    upload,
)
from support.paths import ROOT

from vit_demo import cli
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
        assert sorted(maps) == sorted([*arrays, "map", "map_prefix"])
        for name, array in arrays.items():
            np.testing.assert_allclose(maps[name], array, rtol=1e-4, atol=1e-6)
    assert zipfile.is_zipfile(paths["npz"])
    about = json.loads(paths["json"].read_text(encoding="utf-8"))
    assert about["model"] == DEIT and about["fit"] == "pad"
    assert about["settings"] == {
        "map": "head_rollout", "layer": 5, "head": 1, "query": [3, 4], "direction": "from",
        "below": "mean", "part": "whole", "fusion": "mean", "residual": 0.4, "discard": 0.0,
    }  # fmt: skip
    for kind in ("gif", "webp"):
        with Image.open(paths[kind]) as animation:
            assert animation.n_frames == 12
    alone = visit(paths["html"].as_uri(), viewport=WIDE)
    alone.wait_for_selector(".vitx[data-ready=true]")
    saved = json.loads(alone.evaluate("document.querySelector('.vitx').dataset.state"))
    assert (saved["layer"], saved["head"], saved["query"]) == (5, 1, [3, 4])


def test_every_frame_of_an_animation_is_what_its_layer_shows(arrive, tmp_path):
    """The attention of a patch: the colours of all patches go with the numbers on the screen."""
    page = arrive("?example=koala&map=attention&layer=2&head=1&query=3,4&opacity=1")
    shown = page.evaluate(f"""(() => {{ const {{ maps, state }} = {EXPLORER}.explorer;
        return Array.from({{ length: maps.L }}, (_, layer) =>
            Array.from(maps.mapOf({{ ...state, layer }}, state.query).subarray(maps.P)));
    }})()""")
    np.testing.assert_array_equal(shown[2], map_values(page))
    others = np.arange(12 * 12) != 3 * 12 + 4  # the colours do not reach up to the patch itself
    for kind in ("gif", "webp"):
        with Image.open(saved(page, kind, tmp_path)) as animation:
            assert animation.n_frames == len(shown)
            for layer, values in enumerate(shown):
                animation.seek(layer)
                middles = ((np.arange(12) + 0.5) * animation.width / 12).astype(int)
                grey = np.asarray(animation.convert("L"))[np.ix_(middles, middles)].ravel()
                assert np.corrcoef(grey[others], np.array(values)[others])[0, 1] > 0.97, layer


VIEWS = {
    "what is special": {"map": "head_rollout", "layer": 2, "head": 3, "part": "special"},
    "to a patch": {"map": "attention", "layer": 1, "head": 2, "query": [3, 4], "direction": "to"},
    "strongest": {"map": "rollout", "head": "max", "residual": 0.25, "discard": 0.3},
    "same head": {"map": "head_rollout", "head": 1, "below": "same", "query": [0, 11]},
    "label": {"map": "relevance", "label": 44},
    "labels": {"map": "contribution", "label": 44, "minus": 64},
}


def test_files_and_command_follow_the_view(arrive, tmp_path, monkeypatch, capsys):
    """Whatever is on the screen: the numbers of the file, those that the command writes, and those
    that are drawn are the same; the description names the settings."""
    page = arrive("?example=koala&fit=stretch")
    for name, view in VIEWS.items():
        usual = {"layer": 5, "head": "mean", "query": None, "direction": "from", "below": "mean"}
        usual |= {"part": "whole", "residual": 0.5, "discard": 0, "label": None, "minus": None}
        page.evaluate(f"{EXPLORER}.explorer.set({json.dumps(usual | view)})")
        next_frames(page)
        shown = map_values(page)
        path, about = (saved(page, kind, tmp_path) for kind in ("npz", "json"))
        with np.load(path) as maps:
            assert_same_map(maps["map"], shown)
            assert ("attention" in maps) == (view["map"] == "attention")
        settings = json.loads(about.read_text(encoding="utf-8"))["settings"]
        assert {key: settings[key] for key in view} == view, name
        command = page.locator("#take code").inner_text()
        assert command.startswith(f"vit-demo explain assets/examples/koala.jpg --model {MODEL} ")
        assert "--fit stretch" in command and command.endswith("--out maps")
        out = tmp_path / name.replace(" ", "-")
        words = shlex.split(command.replace("--out maps", f"--out {out}"))
        with monkeypatch.context() as patch:
            patch.chdir(ROOT)
            assert cli.main([*words[1:], "--device", "cpu"]) == 0, capsys.readouterr().err
        with np.load(out / "maps.npz") as maps:
            assert_same_map(maps["map"], shown)


def assert_same_map(exact, shown: np.ndarray) -> None:
    """The browser has attention in eight bits."""
    exact = np.asarray(exact).ravel()
    np.testing.assert_allclose(shown, exact, atol=0.02 * np.abs(exact).max())
    assert np.corrcoef(shown, exact)[0, 1] > 0.999


def saved(page, kind: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.click(f"#take [data-kind={kind}]")
    waiting.value.save_as(folder / waiting.value.suggested_filename)
    return folder / waiting.value.suggested_filename


def test_png_is_named_after_the_view(arrive):
    page = arrive("?map=attention&layer=2&head=1&query=4,5&direction=to&fit=pad")
    with page.expect_download() as waiting:
        page.click("#explorer button:has-text('PNG')")
    name = waiting.value.suggested_filename
    assert name == f"{MODEL}-attention-layer3-head-2-to-row5-column6-pad.png"
    page.evaluate(
        f"{EXPLORER}.explorer.set({{ map: 'head_rollout', part: 'special', query: null }})"
    )
    next_frames(page)
    with page.expect_download() as waiting:
        page.click("#explorer button:has-text('PNG')")
    name = waiting.value.suggested_filename
    assert name == f"{MODEL}-head_rollout-special-layer3-head-2-pad.png"


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_legend_of_a_png_is_whole(arrive, language):
    """Also where the numbers have a sign and their note is long: nothing is drawn on the rim."""
    view = "map=head_rollout&part=special&layer=5&head=2&query=5,6"
    page = arrive(f"?example=shepherd&lang={language}&{view}")
    url = page.evaluate(f"{EXPLORER}.explorer.sheet().toDataURL()")
    sheet = np.asarray(Image.open(BytesIO(b64decode(url.split(",")[1]))).convert("L"))
    below = sheet[32 + 896 + 10 :]
    assert (below[:, -24:] == 255).all() and (below[-24:] == 255).all()
    assert (below < 128).sum() > 1000


def test_copied_python_names_the_file_and_runs(arrive, tmp_path, monkeypatch):
    page = arrive("?example=koala&map=attention&layer=2&head=1&query=4,5")
    code, shown = page.evaluate(f"{EXPLORER}.explorer.python()"), map_values(page)
    assert 'classifier.explain("assets/examples/koala.jpg", fit="crop")' in code
    monkeypatch.chdir(ROOT)
    made = {}
    exec(code.replace("attention.png", str(tmp_path / "attention.png")), made)  # noqa: S102
    assert_same_map(made["heat"], shown)
    assert (tmp_path / "attention.png").exists()
    Image.new("RGB", (80, 80), "teal").save(tmp_path / "my cat's.png")
    after_new_result(page, lambda: upload(page, tmp_path / "my cat's.png"))
    code = page.evaluate(f"{EXPLORER}.explorer.python()")
    file = code.split("classifier.explain(")[1].split(", fit")[0]
    assert json.loads(file).startswith("my cat") and "/" not in file  # as the visitor calls it
    words = shlex.split(page.locator("#take code").inner_text())
    assert words[2] == json.loads(file)  # one word for a shell, whatever is in it


@pytest.mark.quick
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
    for value in ("01", "007", "00.5", "%D9%A1", "1e999", "%00"):  # each in a link of its own
        arrive(f"?layer={value}&head={value}&query={value},{value}&residual={value}&label={value}")
    assert page.locator("[data-example=shepherd]").get_attribute("aria-pressed") == "true"
    assert page.locator("#fit input[value=crop]").is_checked()
