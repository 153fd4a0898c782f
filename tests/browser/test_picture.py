"""How a picture comes to the page: chosen, dropped, pasted, photographed, drawn; in Chromium."""

import base64
import io

import pytest
from PIL import Image
from support.page import (
    SECONDS,
    after_new_result,
    choose_example,
    label_names,
    shown_id,
    upload,
)

from vit_demo.ui.limits import FILE_BYTES

EXAMPLE = "[data-example][aria-pressed=true]"

DROP = """([name, type, data]) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], name, { type }));
    const fire = (target, kind) => target.dispatchEvent(
        new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    fire(document.querySelector("%s"), "dragenter");
    const sheet = document.querySelector("#sheet"), words = sheet.textContent;
    const covers = document.elementFromPoint(innerWidth / 2, innerHeight / 2) === sheet;
    fire(sheet, "dragover");
    fire(sheet, "drop");
    return [covers, words, sheet.hidden];
}"""

PASTE = """([name, type, data]) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], name, { type }));
    const event = new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true });
    document.querySelector("%s").dispatchEvent(event);
    return event.defaultPrevented;
}"""


def png(size=(300, 200), colour="teal") -> list[str]:
    stream = io.BytesIO()
    Image.new("RGB", size, colour).save(stream, "PNG")
    return ["mine.png", "image/png", base64.b64encode(stream.getvalue()).decode()]


def drawn_size(page) -> list[int]:
    return page.evaluate(
        "(({ naturalWidth: w, naturalHeight: h }) => [w, h])(document.querySelector('#picture img'))"
    )


def until_drawn(page, size) -> None:
    page.wait_for_function(
        "([w, h]) => { const image = document.querySelector('#picture img');"
        "return image.naturalWidth === w && image.naturalHeight === h"
        " && !image.src.startsWith('blob:'); }",
        arg=list(size),
    )


# Ways in


@pytest.mark.quick
def test_a_file(arrive, tmp_path):
    page = arrive()
    Image.new("RGB", (300, 200), "teal").save(tmp_path / "mine.png")
    after_new_result(page, lambda: upload(page, tmp_path / "mine.png"))
    until_drawn(page, (300, 200))
    assert page.locator(EXAMPLE).count() == 0
    page.click("[data-example=camel]")
    page.wait_for_selector("[data-example=camel][aria-pressed=true]")
    after_new_result(page, lambda: upload(page, tmp_path / "mine.png"))  # the same file once more


@pytest.mark.parametrize("where", ["#about", "#model input", "#explorer canvas"])
def test_dropped_anywhere(arrive, where):
    page = arrive()
    found = []
    after_new_result(page, lambda: found.append(page.evaluate(DROP % where, png())))
    assert found == [[True, "Drop it: it will be looked at", True]]
    until_drawn(page, (300, 200))
    assert page.locator(EXAMPLE).count() == 0


def test_a_drag_that_leaves_changes_nothing(arrive):
    page = arrive()
    before = shown_id(page)
    page.evaluate(
        """() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File(["x"], "x.png", { type: "image/png" }));
        const fire = (target, kind, data) => target.dispatchEvent(
            new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
        fire(document.body, "dragenter", transfer);
        fire(document.querySelector("#sheet"), "dragleave", transfer);
        const text = new DataTransfer();
        text.setData("text/plain", "a word that is dragged");
        fire(document.body, "dragenter", text);
    }"""
    )
    assert not page.locator("#sheet").is_visible()
    assert shown_id(page) == before


@pytest.mark.parametrize("where", ["body", "#model input"])
def test_pasted_anywhere(arrive, where):
    page = arrive()
    after_new_result(page, lambda: page.evaluate(PASTE % where, png((120, 160))))
    until_drawn(page, (120, 160))
    words = ["note.txt", "text/plain", base64.b64encode(b"words").decode()]
    assert not page.evaluate(PASTE % where, words)  # text goes where the cursor is


def test_the_button_that_pastes(arrive):
    page = arrive(permissions=["clipboard-read", "clipboard-write"])
    page.evaluate("navigator.clipboard.writeText('only words')")
    page.click("#picture [data-do=paste]")
    page.wait_for_selector("#message .notice:has-text('no picture in the clipboard')")
    page.evaluate("""async () => {
        const canvas = new OffscreenCanvas(64, 48);
        canvas.getContext("2d").fillRect(10, 10, 30, 30);
        const blob = await canvas.convertToBlob({type: "image/png"});
        await navigator.clipboard.write([new ClipboardItem({"image/png": blob})]);
    }""")
    after_new_result(page, lambda: page.click("#picture [data-do=paste]"))
    until_drawn(page, (64, 48))
    assert not page.locator("#message .notice").is_visible()


def test_the_camera(arrive):
    page = arrive(permissions=["camera"])
    before = label_names(page)
    page.click("#picture [data-do=camera]")
    page.wait_for_function("document.querySelector('#picture video').currentTime > 0")  # it plays
    assert label_names(page) == before  # nothing is lost before a photograph is taken
    page.click("#picture .remove")
    page.wait_for_selector("#picture img")
    assert not page.evaluate("document.querySelector('#picture video').srcObject")
    page.click("#picture [data-do=camera]")
    page.wait_for_function("document.querySelector('#picture video').videoWidth > 0")
    size = page.evaluate(
        "(({ videoWidth: w, videoHeight: h }) => [w, h])(document.querySelector('#picture video'))"
    )
    after_new_result(page, lambda: page.click("#picture .shutter"))
    page.wait_for_selector("#picture img")
    assert drawn_size(page)[0] / drawn_size(page)[1] == pytest.approx(size[0] / size[1], rel=0.02)


def test_a_camera_that_may_not_be_used(arrive):
    page = arrive()
    refuse = "navigator.mediaDevices.getUserMedia = () => Promise.reject(new Error('no'))"
    page.evaluate(f"() => {{ {refuse}; }}")
    page.click("#picture [data-do=camera]")
    page.wait_for_selector("#message .notice:has-text('no camera')")
    assert page.locator("#picture img").is_visible()


# Out again


@pytest.mark.parametrize("size", [(600, 400), (200, 600)])
def test_the_cross_lies_above_any_picture(arrive, tmp_path, size):
    page = arrive()
    Image.new("RGB", size, "teal").save(tmp_path / "long.png")
    after_new_result(page, lambda: upload(page, tmp_path / "long.png"))
    page.click("#picture .remove", timeout=10_000)
    page.wait_for_selector("#answer .empty")


def test_the_cross_empties_the_page(arrive):
    page = arrive()
    page.click("#picture .remove")
    page.wait_for_selector("#answer .empty")
    page.wait_for_function("document.documentElement.dataset.look === 'empty'")
    page.wait_for_selector("#explorer .vx-note:has-text('Choose a picture')")
    assert not page.locator("#picture img").is_visible()
    assert page.locator("#picture .pick").is_visible()
    assert page.locator(EXAMPLE).count() == 0
    assert page.locator("#take [data-kind=npz]").is_disabled()
    page.click("[data-example=shepherd]")  # the very one that was there
    page.wait_for_selector("ol.answer li")
    page.wait_for_selector("#picture img")


def test_digits_are_drawn_and_erased(arrive):
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
    assert page.locator(EXAMPLE).count() == 0
    pixels = "document.querySelector('#pad canvas').getContext('2d').getImageData(0,0,280,280).data"
    darkest = f"{pixels}.reduce((a, b) => Math.min(a, b))"
    assert page.evaluate(darkest) < 50
    page.click("#pad button")
    assert page.evaluate(darkest) == 255
    page.wait_for_selector("#answer .empty")  # no drawing, no answer
    after_new_result(page, draw)
    assert len(label_names(page)) == 10


def test_a_drawing_is_kept_as_an_upload_is(arrive):
    page = arrive("?model=vit-mnist")
    pad = page.locator("#pad canvas").bounding_box()
    x, y = pad["x"] + pad["width"] / 2, pad["y"]

    def draw() -> None:
        page.mouse.move(x, y + 20)
        page.mouse.down()
        page.mouse.move(x, y + pad["height"] - 20, steps=5)
        page.mouse.up()

    drawn = "document.querySelector('#picture img')?.naturalWidth === 280"
    pixels = "document.querySelector('#pad canvas').getContext('2d').getImageData(0,0,280,280).data"
    blank = f"{pixels}.every((value) => value === 255)"
    after_new_result(page, draw)
    page.wait_for_function(drawn)
    assert not page.evaluate(blank)
    page.wait_for_function("!!history.state?.upload")
    page.reload()
    page.wait_for_function(drawn)
    page.wait_for_selector("#explorer [data-ready=true][data-drawn]")
    page.wait_for_function("document.documentElement.dataset.look === 'done'")
    after_new_result(page, draw)
    choose_example(page, "digit-two")
    assert page.evaluate(blank)  # the pad and the picture are never of two minds
    page.wait_for_function("location.search.includes('digit-two')")
    page.go_back()
    page.wait_for_function(drawn)
    page.wait_for_selector("#strip:not(:has([aria-pressed=true]))", state="attached")


# Picture and frame


def test_frame_lies_on_what_the_model_saw(arrive, tmp_path):
    Image.new("RGB", (400, 200), "teal").save(tmp_path / "wide.png")
    page = arrive()
    after_new_result(page, lambda: upload(page, tmp_path / "wide.png"))
    until_drawn(page, (400, 200))
    frame, image = page.locator("#picture .frame"), page.locator("#picture img")
    box = [float(number) for number in frame.get_attribute("data-box").split()]
    assert box == pytest.approx([100, 0, 300, 200], abs=1)
    assert frame.bounding_box() == pytest.approx(image.bounding_box())
    seen = page.locator("#picture .seen").evaluate("(path) => path.getBBox().width")
    assert seen == pytest.approx(200, abs=1)  # in pixels of the picture


def test_picture_and_frame_are_never_mixed(arrive, tmp_path):
    """In every single frame that the browser draws: the frame, where it is seen, has the picture's
    own shape."""
    shapes = ((400, 100), (100, 400), (300, 300))
    for k, size in enumerate(shapes):
        Image.effect_noise(size, 80).convert("RGB").save(tmp_path / f"{k}.png")
    page = arrive()
    page.evaluate("""() => {
        window.mixed = [];
        window.seen = 0;
        const watch = () => {
            const image = document.querySelector("#picture img");
            const frame = document.querySelector("#picture .frame");
            const [, , w, h] = frame.getAttribute("viewBox").split(" ").map(Number);
            const visible = getComputedStyle(frame).visibility === "visible" && frame.children.length;
            const box = image.getBoundingClientRect();
            const shape = image.naturalWidth / image.naturalHeight;
            if (visible) window.seen += 1;
            if (visible && Math.abs(Math.log(shape * h / w)) > 0.05) window.mixed.push([shape, w / h]);
            if (box.width && Math.abs(Math.log(shape * box.height / box.width)) > 0.05)
                window.mixed.push([shape, box.width / box.height, "distorted"]);
            requestAnimationFrame(watch);
        };
        watch();
    }""")
    for k, size in enumerate(shapes):
        after_new_result(page, lambda k=k: upload(page, tmp_path / f"{k}.png"))
        until_drawn(page, size)
        choose_example(page, "espresso" if k else "camel")
    assert page.evaluate("window.mixed") == []
    assert page.evaluate("window.seen") > 3


def test_what_browsers_cannot_draw_is_shown_all_the_same(arrive, tmp_path):
    page = arrive()
    Image.new("RGB", (240, 180), "orange").save(tmp_path / "scan.tiff")
    after_new_result(page, lambda: upload(page, tmp_path / "scan.tiff"))
    until_drawn(page, (240, 180))


# What goes wrong


def bad_files(folder):
    folder.joinpath("text.png").write_text("this is not a picture")
    folder.joinpath("words.txt").write_text("neither is this")
    folder.joinpath("paper.pdf").write_bytes(b"%PDF-1.4 nor this")
    folder.joinpath("empty.png").write_bytes(b"")
    Image.effect_noise((300, 300), 90).convert("RGB").save(folder / "whole.jpg")
    folder.joinpath("cut.jpg").write_bytes(folder.joinpath("whole.jpg").read_bytes()[:9000])
    Image.new("1", (10_000, 10_000)).save(folder / "huge.png")
    folder.joinpath("large.png").write_bytes(bytes(FILE_BYTES + 5 * 2**20))
    return {
        "text.png": "not a picture this demo can read",
        "words.txt": "not a picture this demo can read",
        "paper.pdf": "not a picture this demo can read",
        "empty.png": "empty (0 bytes)",
        "cut.jpg": "damaged or cut short",
        "huge.png": "100.0 megapixels",
        "large.png": "has 25.0 MB. Send a picture of at most 20 MB",
    }


def test_bad_files_are_answered_in_words_once_in_one_place(arrive, tmp_path):
    page = arrive()
    before, answer = shown_id(page), label_names(page)
    place = "document.querySelector('#answer').getBoundingClientRect().y"
    page.evaluate("scrollTo(0, 0)")
    at = page.evaluate(place)
    for name, words in bad_files(tmp_path).items():
        upload(page, tmp_path / name)
        page.wait_for_selector(f"#message .notice:has-text('{words}')")
        page.wait_for_function(
            "!['running', 'sending'].includes(document.documentElement.dataset.look)"
        )
        message = page.locator("#message p").inner_text()
        assert name in message and str(tmp_path) not in message and "/tmp" not in message
        assert page.get_by_text(words).count() == 1  # once
        assert page.locator("[data-testid=toast-body]:visible").count() == 0
        assert page.evaluate(place) == pytest.approx(at, abs=1)  # and it moves nothing
        assert (shown_id(page), label_names(page)) == (before, answer)
        page.wait_for_function(
            "!document.querySelector('#picture img').src.startsWith('blob:')"
        )  # the picture of the answer is back
    page.click("#message button")
    assert not page.locator("#message .notice").is_visible()
    upload(page, tmp_path / "text.png")  # the same words are news again
    page.wait_for_selector("#message .notice:has-text('not a picture')")
    choose_example(page, "espresso")
    assert not page.locator("#message .notice").is_visible()  # it is over
    upload(page, tmp_path / "large.png")  # refused in the browser: the server hears nothing of it
    page.wait_for_selector("#message .notice:has-text('at most 20 MB')")
    page.click("[data-example=espresso]")  # the same one again
    page.wait_for_selector("#message .notice", state="hidden")


def test_an_upload_that_does_not_arrive_is_said(arrive, tmp_path, site, browser):
    """Without the fixture's check that the console is clean: the failure is in it."""
    page = browser.new_page()
    page.set_default_timeout(SECONDS * 1000)
    page.goto(site.url)
    page.wait_for_selector("ol.answer li")
    page.route("**/gradio_api/upload*", lambda route: route.abort())
    Image.new("RGB", (30, 20)).save(tmp_path / "mine.png")
    upload(page, tmp_path / "mine.png")
    page.wait_for_selector("#message .notice:has-text('mine.png could not be sent')")
    page.wait_for_function("document.documentElement.dataset.look === 'done'")
    page.close()


def test_the_last_choice_wins_over_an_upload_on_its_way(arrive, tmp_path):
    page = arrive()
    Image.new("RGB", (30, 20)).save(tmp_path / "mine.png")
    waiting = []
    page.route("**/gradio_api/upload*", lambda route: waiting.append(route))
    upload(page, tmp_path / "mine.png")
    page.wait_for_function("document.documentElement.dataset.look === 'sending'")
    choose_example(page, "camel")
    with page.expect_response("**/gradio_api/upload*"):
        waiting[0].continue_()
    choose_example(page, "espresso")  # a whole turn later the upload has not come back
    assert page.locator("[data-example=espresso]").get_attribute("aria-pressed") == "true"
