"""The explorer on the page: shapes, the visitor's own picture, findings, hard words."""

import json

import numpy as np
import pytest
from PIL import Image
from support.explorer import pixels
from support.page import (
    EXPLORER,
    MODEL,
    after_new_result,
    assert_map,
    choose_example,
    next_frames,
    state,
    until_state,
    upload,
)

from vit_demo.export import shown_map
from vit_demo.findings import FINDINGS
from vit_demo.map_settings import MapSettings
from vit_demo.ui.texts import EXPLORER_TEXTS, GLOSSARY


def shape(page) -> float:
    box = page.locator("#explorer .vx-picture").bounding_box()
    return box["width"] / box["height"]


def model_shape(page) -> float:
    width, height = page.evaluate(f"{EXPLORER}.explorer.data.picture.size")
    return width / height


def test_the_picture_has_its_own_shape_after_native_and_after_crop(arrive, tmp_path):
    Image.effect_noise((600, 300), 50).save(tmp_path / "wide.png")
    page = arrive()
    after_new_result(page, lambda: upload(page, tmp_path / "wide.png"))
    for fit, expected in (("Native", 2), ("Crop", 1), ("Native", 2)):
        after_new_result(page, lambda fit=fit: page.click(f"#fit label:has-text('{fit}')"))
        next_frames(page)
        assert shape(page) == pytest.approx(model_shape(page), rel=0.01)
        assert model_shape(page) == pytest.approx(expected, rel=0.15)
    page.click("[data-language=ko]")  # the explorer is built anew
    page.wait_for_selector("#explorer .vitx:lang(ko)")
    next_frames(page)
    assert shape(page) == pytest.approx(model_shape(page), rel=0.01)


def test_the_visitors_own_picture_lies_under_the_map(arrive, tmp_path):
    """Fine stripes: the model's 60 pixels know nothing of them."""
    stripes = np.zeros((480, 480, 3), np.uint8)
    stripes[:, ::4] = stripes[:, 1::4] = 255
    Image.fromarray(stripes).save(tmp_path / "stripes.png")
    page = arrive()
    after_new_result(page, lambda: upload(page, tmp_path / "stripes.png"))
    page.evaluate(f"{EXPLORER}.explorer.set({{ opacity: 0 }})")
    next_frames(page)
    contrast = []
    for _ in range(2):
        shown = pixels(page, "#explorer .vx-picture").astype(float)
        contrast.append(np.abs(np.diff(shown[..., 0], axis=1)).mean())
        requests = []
        page.on("request", lambda request, requests=requests: requests.append(request.url))
        page.locator("#explorer").get_by_role("switch").check()  # as the model saw it
        next_frames(page)
        assert requests == []
    assert contrast[0] > 20 > 3 * contrast[1], contrast
    assert state(page)["picture"] == "seen"
    assert "60 × 60 px" in page.locator("#explorer .vx-switch").inner_text()


def test_findings_open_what_they_say(arrive, site):
    page = arrive()
    links = page.locator("#explorer .vx-findings a")
    assert links.count() == len(FINDINGS[MODEL])
    page.evaluate(
        f"{EXPLORER}.explorer.set({{ residual: 0.1, query: [0, 0], colours: 'viridis' }})"
    )
    for k, finding in enumerate(FINDINGS[MODEL]):
        links.nth(k).click()
        page.wait_for_selector(f"[data-example={finding.example}][aria-pressed=true]")
        page.wait_for_selector(
            f"#explorer .vx-findings li:nth-child({k + 1}) a[aria-current=true]", timeout=60_000
        )
        found = state(page)
        expected = json.loads(json.dumps(finding.settings))
        assert {key: found[key] for key in expected} == expected
        assert found["residual"] == 0.5 and found["colours"] == "viridis"
        settings = MapSettings(**finding.settings)
        peak = float(shown_map(site.explanation(page), settings).abs().max())
        assert_map(page, shown_map(site.explanation(page), settings), atol=0.01 * peak)


SCREENS = [(1440, 900), (1000, 800), (390, 800)]


@pytest.mark.parametrize("screen", SCREENS, ids=str)
def test_a_finding_brings_the_picture_into_view_and_its_kind_to_the_wall(arrive, screen):
    """Also of another example. The framed tile is the map that is shown."""
    page = arrive(viewport=dict(zip(("width", "height"), screen, strict=True)))
    links = page.locator("#explorer .vx-findings a")
    for k, finding in enumerate(FINDINGS[MODEL]):
        links.nth(k).evaluate("(link) => link.scrollIntoView({ block: 'center' })")
        links.nth(k).click()
        page.wait_for_function("""() => {
            const { top, bottom, height } =
                document.querySelector('#explorer .vx-picture').getBoundingClientRect();
            return Math.min(bottom, innerHeight) - Math.max(top, 0) >= 0.9 * Math.min(height, innerHeight);
        }""")
        page.wait_for_selector(f"#explorer .vx-findings li:nth-child({k + 1}) a[aria-current=true]")
        if finding.settings["map"] == "attention":
            assert page.locator("#explorer [name$=wall][value=attention]").is_checked()
    linked = arrive("?example=camel&map=head_rollout&part=special&head=1&layer=3")
    assert state(linked)["wall"] == "special"
    kept = arrive("?example=camel&map=attention&head=1&layer=3&wall=whole")
    assert state(kept)["wall"] == "whole"  # a link that says so


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("screen", SCREENS, ids=str)
def test_links_stay_where_they_are_whatever_is_chosen(arrive, screen, language):
    """A patch, a head, a class, two classes: what is said of them has its room."""
    page = arrive(f"?lang={language}", viewport=dict(zip(("width", "height"), screen, strict=True)))
    offset = """(() => {
        const [links, all] = ['.vx-findings', '.vitx'].map((part) =>
            document.querySelector(`#explorer ${part}`).getBoundingClientRect().top);
        return links - all;
    })()"""
    before = page.evaluate(offset)
    plain = {"query": None, "head": 2, "layer": 5, "direction": "from", "part": "whole"}
    for view in (
        {"map": "rollout", "head": "mean", "query": [11, 10]},
        {"map": "head_rollout", "query": [11, 10]},
        {"map": "head_rollout", "part": "special"},
        {"map": "head_rollout", "part": "special", "query": [10, 10]},
        {"map": "attention"},
        {"map": "attention", "direction": "to", "query": [10, 10]},
        *(finding.settings for finding in FINDINGS[MODEL]),
    ):
        page.evaluate(f"{EXPLORER}.explorer.set({json.dumps(plain | view)})")
        page.wait_for_function(f"{EXPLORER}.explorer.values")
        next_frames(page)
        assert page.evaluate(offset) == pytest.approx(before, abs=1), view


def test_a_finding_is_a_link(arrive, site):
    page = arrive()
    link = page.locator("#explorer .vx-findings a").first
    address, words = link.get_attribute("href"), link.inner_text()
    finding = FINDINGS[MODEL][0]
    layer, head = finding.settings["layer"] + 1, finding.settings["head"] + 1
    text = EXPLORER_TEXTS["en"][f"finding_{finding.name}"]
    assert words == text.format(layer=layer, head=head)
    other = arrive(address)
    until_state(other, f"s.layer === {finding.settings['layer']} && s.map === 'attention'")
    assert (
        other.locator(f"[data-example={finding.example}]").get_attribute("aria-pressed") == "true"
    )
    assert other.locator("#explorer .vx-findings a[aria-current=true]").inner_text() == words


def test_findings_are_hidden_for_other_models_and_fits(arrive):
    page = arrive()
    findings = page.locator("#explorer .vx-findings")
    findings.wait_for()
    after_new_result(page, lambda: page.click("#fit label:has-text('Stretch')"))
    findings.wait_for(state="hidden")
    after_new_result(page, lambda: page.click("#fit label:has-text('Crop')"))
    findings.wait_for()
    choose_example(page, "camel")
    findings.wait_for()
    arrive("?model=many").locator("#explorer .vx-findings").wait_for(state="hidden")


def test_how_the_picture_meets_the_model_is_explained(arrive):
    page = arrive()
    for fit in ("Native", "Pad"):
        after_new_result(page, lambda fit=fit: page.click(f"#fit label:has-text('{fit}')"))
        page.click(f"#picture .gloss[data-words^='{fit.lower()} ']")
        first, *others = page.locator(".gloss-card p").all_inner_texts()
        name, sentence = GLOSSARY["en"]["words"][fit.lower()]
        assert first.split() == f"{name} {sentence}".split() and len(others) == 3
        page.keyboard.press("Escape")
