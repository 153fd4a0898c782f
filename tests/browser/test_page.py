"""A visitor's whole way over the page, in Chromium."""

import json
import re
import threading

import pytest
from PIL import Image
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
    upload,
)

# The way of a newcomer


def test_first_screen_is_alive(arrive):
    page = arrive()
    assert len(label_names(page)) == 10
    assert page.locator("[data-example=koala]").get_attribute("aria-pressed") == "true"
    shares = [
        float(text.split()[0]) for text in page.locator("ol.answer .percent").all_inner_texts()
    ]
    assert shares == sorted(shares, reverse=True)
    assert 99 <= sum(shares) <= 101  # ten labels, all of them shown
    assert page.locator("#picture img").is_visible()


def test_example_then_own_picture(arrive, tmp_path):
    page = arrive()
    choose_example(page, "lion")
    assert page.locator("[data-example=lion]").get_attribute("aria-pressed") == "true"
    Image.new("RGB", (300, 200), "teal").save(tmp_path / "mine.png")
    after_new_result(page, lambda: upload(page, tmp_path / "mine.png"))
    assert page.locator("[data-example][aria-pressed=true]").count() == 0
    assert page.locator("#picture img").get_attribute("src").endswith("mine.png")


def test_frame_lies_on_what_the_model_saw(arrive, tmp_path):
    Image.new("RGB", (400, 200), "teal").save(tmp_path / "wide.png")
    page = arrive()
    after_new_result(page, lambda: upload(page, tmp_path / "wide.png"))
    frame, image = page.locator("#frame svg"), page.locator("#picture img")
    box = [float(number) for number in frame.get_attribute("data-box").split()]
    assert box == pytest.approx([100, 0, 300, 200], abs=1)
    page.wait_for_function("document.querySelector('#picture img')?.naturalWidth === 400")
    next_frames(page)
    place, shown = frame.bounding_box(), image.bounding_box()
    assert place["width"] / place["height"] == pytest.approx(2, rel=0.02)
    for axis, side in (("x", "width"), ("y", "height")):
        middle = place[axis] + place[side] / 2
        assert middle == pytest.approx(shown[axis] + shown[side] / 2, abs=2)


def test_each_fit_shows_the_whole_picture(arrive):
    page = arrive()
    for fit in ("pad", "stretch", "native"):
        after_new_result(page, lambda fit=fit: page.check(f"#fit input[value={fit}]", force=True))
        header = page.locator("#frame p").inner_text()
        assert "whole picture" in header
    assert re.search(r"\d+ × \d+", header)


def test_another_model_answers_and_keeps_the_picture(arrive, deit_tiny):
    page = arrive()
    choose_example(page, "lion")
    after_new_result(page, lambda: choose_model(page, "DeiT tiny"))
    assert label_names(page)[0].startswith("lion")
    assert state(page)["layer"] in (-1, 11)


def test_newest_wish_wins(arrive, site, monkeypatch):
    """Three clicks while the server is busy: the last one is what stays."""
    page, explain, go = arrive(), site.server.explain, threading.Event()

    def busy(*args):
        assert go.wait(SECONDS)
        return explain(*args)

    monkeypatch.setattr(site.server, "explain", busy)
    for name in ("espresso", "penguin", "shepherd"):
        page.click(f"[data-example={name}]")
        next_frames(page)
    page.wait_for_selector("#status .wrap:not(.hide)")
    go.set()
    page.wait_for_function(
        "JSON.parse(document.querySelector('#take .files').dataset.shown).example === 'shepherd'"
    )
    page.wait_for_selector("#status .wrap.hide", state="attached")  # and nothing else is on its way
    assert page.locator("[data-example=shepherd]").get_attribute("aria-pressed") == "true"
    assert "shepherd" in page.locator("#picture img").get_attribute("src")
    assert page.locator("#status .wrap.hide").count() == 1


def test_a_webcam_picture_is_looked_at_and_can_be_removed(arrive):
    page = arrive(permissions=["camera"])
    page.click("#picture .source-selection button:nth-child(2)")
    page.click("#picture button:has-text('Webcam')")
    page.wait_for_selector("#answer .empty")  # the picture made room for the camera
    page.wait_for_function("document.querySelector('#picture video')?.currentTime > 0")  # it plays
    before = shown_id(page)
    page.click("#picture .capture-button")
    page.wait_for_function(f"{EXPLORER}.dataset.id !== {json.dumps(before)}")
    page.click("#picture .icon-button-wrapper button:last-of-type")
    page.wait_for_selector("#answer .empty")
    choose_example(page, "bear")
    assert len(label_names(page)) == 10


def test_a_pasted_picture_is_looked_at(arrive):
    page = arrive(permissions=["clipboard-read", "clipboard-write"])
    page.evaluate("""async () => {
        const canvas = new OffscreenCanvas(64, 64);
        canvas.getContext("2d").fillRect(10, 10, 30, 30);
        const blob = await canvas.convertToBlob({type: "image/png"});
        await navigator.clipboard.write([new ClipboardItem({"image/png": blob})]);
    }""")
    after_new_result(page, lambda: page.click("#picture .source-selection button:nth-child(3)"))
    assert page.locator("[data-example][aria-pressed=true]").count() == 0


def test_digits_are_drawn(arrive):
    page = arrive("?model=vit-mnist")
    assert page.locator("[data-example=digit-two]").get_attribute("aria-pressed") == "true"
    pad = page.locator("#pad canvas").bounding_box()

    def draw() -> None:
        page.mouse.move(pad["x"] + pad["width"] / 2, pad["y"] + 20)
        page.mouse.down()
        page.mouse.move(pad["x"] + pad["width"] / 2, pad["y"] + pad["height"] - 20, steps=5)
        page.mouse.up()

    after_new_result(page, draw)
    assert sorted(label_names(page)) == [str(digit) for digit in range(10)]
    assert page.locator("[data-example][aria-pressed=true]").count() == 0
    pixels = "document.querySelector('#pad canvas').getContext('2d').getImageData(0,0,280,280).data"
    darkest = f"{pixels}.reduce((a, b) => Math.min(a, b))"
    assert page.evaluate(darkest) < 50
    page.click("#pad button")
    assert page.evaluate(darkest) == 255


# What goes wrong


def bad_files(folder):
    folder.joinpath("text.png").write_text("this is not a picture")
    folder.joinpath("empty.png").write_bytes(b"")
    Image.effect_noise((300, 300), 90).convert("RGB").save(folder / "whole.jpg")
    folder.joinpath("cut.jpg").write_bytes(folder.joinpath("whole.jpg").read_bytes()[:9000])
    Image.new("1", (10_000, 10_000)).save(folder / "huge.png")
    return {
        "text.png": "not a picture this demo can read",
        "empty.png": "empty (0 bytes)",
        "cut.jpg": "damaged or cut short",
        "huge.png": "100.0 megapixels",
    }


def test_bad_uploads_are_answered_in_words(arrive, tmp_path):
    page = arrive()
    before, answer = shown_id(page), label_names(page)
    for name, words in bad_files(tmp_path).items():
        upload(page, tmp_path / name)
        page.wait_for_selector(f"#message .message:has-text('{words}')")
        message = page.locator("#message").inner_text()
        assert name in message and str(tmp_path) not in message and "/tmp" not in message
        assert (shown_id(page), label_names(page)) == (before, answer)
        page.wait_for_function("document.querySelector('#picture img')?.src.endsWith('koala.jpg')")
    choose_example(page, "espresso")
    assert page.locator("#message .message").count() == 0


def test_hub_out_of_reach(arrive, monkeypatch):
    def unreachable(*_, **__):
        raise OSError("there is no network")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", unreachable)
    monkeypatch.delenv("VIT_DEMO_WEIGHTS", raising=False)
    page = arrive()
    before = page.locator("#model input").input_value()
    page.fill("#model input", "vit_tiny_patch16_224.augreg_in21k_ft_in1k")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message .message")
    message = page.locator("#message").inner_text()
    assert "the model hub cannot be reached" in message and "Still using" in message
    assert len(message) < 200 and "\n" not in message.strip()
    page.wait_for_function(f"document.querySelector('#model input').value === {json.dumps(before)}")
    choose_example(page, "espresso")


def test_a_path_is_no_model(arrive, shared):
    page = arrive()
    page.fill("#model input", str(shared / "weights" / f"{DEIT}.safetensors"))
    page.keyboard.press("Enter")
    page.wait_for_selector("#message .message:has-text('There is no model')")


# For everybody


def test_korean_from_the_browser_and_by_hand(arrive):
    page = arrive(locale="ko-KR")
    assert page.locator("#title p").inner_text().startswith("비전 트랜스포머")
    assert page.evaluate("document.documentElement.lang") == "ko"
    assert "헤드 롤아웃" in page.locator("#explorer").inner_text()
    before = shown_id(page)
    page.click("#language [data-language=en]")
    page.wait_for_selector("#title p:has-text('See how')")
    page.wait_for_selector("#explorer:has-text('Head rollout')")
    assert shown_id(page) == before  # another language is not another look
    page.reload()  # and the choice is remembered
    page.wait_for_selector("#title p:has-text('See how')")


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
