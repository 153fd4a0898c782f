"""A visitor's whole way over the page, in Chromium."""

import json
import threading

import pytest
from support.page import (
    DEIT,
    EXPLORER,
    PHONE,
    SECONDS,
    WIDE,
    after_new_result,
    choose_example,
    choose_model,
    label_names,
    next_frames,
    serious_axe_violations,
    shown_id,
    state,
)

# The way of a newcomer


@pytest.mark.quick
def test_first_screen_is_alive(arrive):
    page = arrive()
    assert len(label_names(page)) == 10
    assert page.locator("[data-example=shepherd]").get_attribute("aria-pressed") == "true"
    shares = [
        float(text.split()[0]) for text in page.locator("ol.answer .percent").all_inner_texts()
    ]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 100.5  # ten of more labels
    page.wait_for_selector("#picture img")  # visible


def test_each_fit_shows_the_whole_picture(arrive):
    page = arrive()
    for fit in ("pad", "stretch", "native"):
        after_new_result(page, lambda fit=fit: page.check(f"#fit input[value={fit}]", force=True))
        page.wait_for_selector("#picture .about:has-text('whole picture')")
    page.wait_for_function(
        r"/\d+ × \d+/.test(document.querySelector('#picture .about').textContent)"
    )


def test_another_model_answers_and_keeps_the_picture(arrive, deit_tiny):
    page = arrive()
    choose_example(page, "camel")
    after_new_result(page, lambda: choose_model(page, "DeiT tiny"))
    assert label_names(page)[0].startswith("Arabian camel")
    assert state(page)["layer"] in (-1, 11)


@pytest.mark.quick
def test_newest_wish_wins(arrive, site, monkeypatch):
    """Three clicks while the server is busy: the last one is what stays."""
    page, explain, go = arrive(), site.server.explain, threading.Event()

    def busy(*args):
        assert go.wait(SECONDS)
        return explain(*args)

    monkeypatch.setattr(site.server, "explain", busy)
    for name in ("espresso", "penguin", "koala"):
        page.click(f"[data-example={name}]")
        next_frames(page)
    page.wait_for_function("document.documentElement.dataset.look === 'running'")
    go.set()
    page.wait_for_function(
        "JSON.parse(document.querySelector('#take .files').dataset.shown).example === 'koala'"
    )
    page.wait_for_function("document.documentElement.dataset.look === 'done'")  # nothing else comes
    assert page.locator("[data-example=koala]").get_attribute("aria-pressed") == "true"
    page.wait_for_function(
        "JSON.parse(document.querySelector('#take .files').dataset.shown).id === "
        f"{EXPLORER}.dataset.id"
    )
    assert label_names(page)[0] == site.explanation(page).top(1)[0].label


# What goes wrong


def test_hub_out_of_reach(arrive, monkeypatch):
    def unreachable(*_, **__):
        raise OSError("there is no network")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", unreachable)
    monkeypatch.delenv("VIT_DEMO_WEIGHTS", raising=False)
    page = arrive()
    before = page.locator("#model input").input_value()
    page.fill("#model input", "vit_tiny_patch16_224.augreg_in21k_ft_in1k")
    page.keyboard.press("Enter")
    page.wait_for_selector("#knows .news.failed")
    message = page.locator("#knows .news p").inner_text()
    assert "the model hub cannot be reached" in message and "Still using" in message
    assert len(message) < 200 and "\n" not in message.strip()
    page.wait_for_function(f"document.querySelector('#model input').value === {json.dumps(before)}")
    choose_example(page, "espresso")


def test_a_path_is_no_model(arrive, shared):
    page = arrive()
    page.fill("#model input", str(shared / "weights" / f"{DEIT}.safetensors"))
    page.keyboard.press("Enter")
    page.wait_for_selector("#knows .news.failed:has-text('There is no model')")


# For everybody


def test_korean_from_the_browser_and_by_hand(arrive):
    page = arrive(locale="ko-KR")
    page.wait_for_selector("#title p:has-text('비전 트랜스포머')")
    page.wait_for_selector("#explorer:has-text('헤드 롤아웃')")
    assert page.evaluate("document.documentElement.lang") == "ko"
    before = shown_id(page)
    page.wait_for_function("location.search.includes('lang=ko')")
    page.click("#language [data-language=en]")
    assert "lang=en" in page.url
    page.wait_for_selector("#title p:has-text('See how')")
    page.wait_for_selector("#explorer:has-text('Head rollout')")
    assert shown_id(page) == before  # another language is not another look
    page.reload()  # and the choice is remembered
    page.wait_for_selector("#title p:has-text('See how')")
    page.wait_for_function("document.documentElement.dataset.look === 'done'")


def test_korean_labels_first_english_beside_them_and_both_are_found(arrive):
    page = arrive("?lang=ko&example=penguin")
    first = page.locator("ol.answer .label").first
    assert first.inner_text().startswith("킹펭귄")
    assert first.locator("small").inner_text() == "king penguin"
    for typed in ("킹펭", "king peng"):
        page.fill("#answer .search input", typed)
        page.wait_for_selector("#found li:has-text('킹펭귄'):has-text('king penguin')")
    page.evaluate("""() => {
        const toast = document.createElement("div");
        toast.dataset.testid = "toast-text";  // as Gradio's
        toast.textContent = "This application is currently busy. Please try again. ";
        document.body.append(toast);
    }""")
    page.wait_for_selector("#message .notice:has-text('지금은 요청이 많습니다')")


def test_on_a_phone_the_parts_stand_in_their_order(arrive):
    page = arrive(viewport=PHONE, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    tops = [
        page.locator(part).bounding_box()["y"]
        for part in ("#picture", "#answer", "#explorer .vx-picture", "#what", "#take", "#about")
    ]
    assert tops == sorted(tops)
    choose_example(page, "espresso")


def test_keyboard_alone(arrive):
    """From the top of the page with Tab and Enter: language, an example, the fit, a file."""
    page = arrive()

    def tab_to(selector: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.evaluate("(s) => document.activeElement.matches(s)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none" or selector.startswith("#fit"), f"{selector}: no focus"
                return
        pytest.fail(f"Tab never came to {selector}")

    tab_to("[data-example=espresso]")
    after_new_result(page, lambda: page.keyboard.press("Enter"))
    tab_to("#fit input[value=pad]")
    after_new_result(page, lambda: page.keyboard.press("Space"))
    tab_to("ol.answer .ask")
    tab_to("#explorer canvas.vx-picture")
    tab_to("#take [data-kind=json]")
    with page.expect_download():
        page.keyboard.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_axe_finds_nothing_serious(arrive, scheme, viewport):
    page = arrive(color_scheme=scheme, viewport=viewport)
    assert serious_axe_violations(page) == []
