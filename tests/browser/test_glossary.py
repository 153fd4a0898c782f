"""The "?" beside a word: by pointer, keys and thumb, in both languages, also in a file, in every tab."""

import pytest
from support.explorer import ROOT
from support.page import come_to_the_methods, open_tab, serious_axe_violations

from vit_demo.ui.texts import GLOSSARY

pytestmark = pytest.mark.usefixtures("one_thread")

CARD = ".gloss-card"


def entries(page) -> list[str]:
    return page.locator(f"{CARD} b").all_inner_texts()


def test_every_question_is_answered(open_page):
    page = open_page()
    page.evaluate("document.querySelector('.vx-more').open = true")
    asked = set()
    for map in ("head_rollout", "rollout", "attention", "contribution", "relevance"):
        page.evaluate(f"{ROOT}.explorer.set({{ map: '{map}' }})")
        for button in page.locator(".gloss:visible").all():
            words = button.get_attribute("data-words").split()
            names = [GLOSSARY["en"]["words"][word][0] for word in words]
            button.click()
            assert entries(page) == names
            assert all(name in button.get_attribute("aria-label") for name in names)
            box = page.locator(CARD).bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= 1280
            button.click()
            assert not page.locator(CARD).is_visible()
            asked |= set(words)
    expected = {"rollout", "class_token", "residual", "discard", "entropy", "special", "distance"}
    assert expected <= asked, expected - asked


def test_keyboard_and_a_click_elsewhere(open_page):
    page = open_page()
    first, second = page.locator(".gloss").first, page.locator(".vx-wall .gloss").first
    first.focus()
    page.keyboard.press("Enter")
    assert first.get_attribute("aria-expanded") == "true" and len(entries(page)) == 4
    page.keyboard.press("Escape")
    assert not page.locator(CARD).is_visible()
    assert page.evaluate("document.activeElement.className") == "gloss"
    page.keyboard.press("Space")
    assert page.locator(CARD).is_visible()
    second.click()  # another one
    assert entries(page) == ["Head", "Layer"] and first.get_attribute("aria-expanded") == "false"
    page.locator("h1").click()
    assert not page.locator(CARD).is_visible()
    first.click()
    page.keyboard.press("Tab")  # away
    assert not page.locator(CARD).is_visible()


def test_korean_on_a_phone(open_page):
    page = open_page(
        "korean", viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    for button in page.locator(".gloss:visible").all():
        button.tap()
        words = button.get_attribute("data-words").split()
        assert entries(page) == [GLOSSARY["ko"]["words"][word][0] for word in words]
        box = page.locator(CARD).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
        button.tap()  # the card goes away
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def asked_in(page, panel: str) -> set[str]:
    """The words that have a "?" in this part of the page; each of these is round, and equally large."""
    shown = page.locator(f"{panel} .gloss:visible").all()
    looks = "(one) => [one.offsetWidth, one.offsetHeight, getComputedStyle(one).borderRadius]"
    assert all(button.evaluate(looks) == [17, 17, "50%"] for button in shown)
    return {word for button in shown for word in button.get_attribute("data-words").split()}


WORDS = {
    "explore": "rollout attention class_token residual discard entropy distance layer head",
    "trust": "attention rollout contribution relevance grad_cam random correlation",
    "compare": "head_rollout rollout attention class_map correlation",
    "learn": "epoch accuracy loss label_smoothing confusion cosine head",
}
WORDS_INSIDE = {  # of each step
    "2": "patch embedding component",
    "3": "class_token cosine",
    "4": "layer_norm",
    "5": "qkv",
    "6": "softmax temperature entropy",
    "7": "head",
    "8": "residual_stream mlp",
    "9": "layer logit_lens logit",
    "10": "logit softmax log_p",
    "anatomy": "distance entropy cosine component",
}


def test_hard_words_are_asked_about_in_every_tab(arrive, digits_history):
    page = arrive()
    assert asked_in(page, "#knows") == {"layer", "head", "patch"}
    page.wait_for_selector("#picture .gloss")
    assert asked_in(page, "#picture") == {"crop", "pad", "stretch", "native"}
    page.evaluate("document.querySelector('#explorer .vx-more').open = true")
    page.click("#knows .gloss")  # made by the server
    assert entries(page) == ["Layer", "Head", "Patch"]
    page.keyboard.press("Escape")
    for tab, words in WORDS.items():
        come_to_the_methods(page) if tab == "trust" else open_tab(page, tab)
        page.wait_for_selector(f"#panel-{tab} .gloss")
        missed = set(words.split()) - asked_in(page, f"#panel-{tab}")
        assert not missed, (tab, missed)
    open_tab(page, "inside")
    for step, words in WORDS_INSIDE.items():
        where = f"[data-page={step}]" if step == "anatomy" else f"[data-step='{step}']"
        page.click(f"#inside {where}")
        page.wait_for_selector("#inside .ins-card .gloss")
        missed = set(words.split()) - asked_in(page, "#inside")
        assert not missed, (step, missed)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_is_silent(open_page, scheme):
    page = open_page("small", color_scheme=scheme)
    page.evaluate("document.querySelector('.vx-more').open = true")
    assert serious_axe_violations(page) == []
    page.locator(".gloss").first.click()
    assert serious_axe_violations(page) == []
