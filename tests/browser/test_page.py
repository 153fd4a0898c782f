"""A visitor's whole way over the page, in Chromium."""

import json
import re
import zipfile
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from PIL import Image
from support.page import EXPLORER, PHONE, SECONDS, WIDE, state
from support.shared import missing

DEIT = "deit_tiny_patch16_224.fb_in1k"


@pytest.fixture(scope="module")
def server(shared):
    """The page, served in this process. The model hub is out of reach."""
    from vit_demo.embedded import embedded

    for name in ("vit-cifar10", "vit-mnist"):
        if name not in embedded():
            missing(f"assets/{name}.safetensors is not here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIT_DEMO_WEIGHTS", str(shared / "weights"))
        patch.setattr("huggingface_hub.get_hf_file_metadata", unreachable)
        from vit_demo.ui import page

        demo = page.make(device="cpu")
        _, url, _ = demo.launch(
            server_name="127.0.0.1", prevent_thread_lock=True, **page.launch_options()
        )
        yield url
        demo.close(verbose=False)


def unreachable(*_, **__):
    raise OSError("there is no network")


@pytest.fixture
def arrive(visit, server):
    """A visitor who waits until the first picture is explained."""

    def arrive(query: str = "", **options):
        page = visit(server + query, **({"viewport": WIDE} | options))
        page.set_default_timeout(SECONDS * 1000)
        page.wait_for_selector("#explorer [data-ready=true][data-drawn]")
        page.wait_for_selector("ol.answer li")
        return page

    return arrive


def shown_id(page) -> str:
    return page.evaluate(f"{EXPLORER}.dataset.id")


def labels(page) -> list[str]:
    return [text.split("\n")[0] for text in page.locator("ol.answer .label").all_inner_texts()]


def after_new_result(page, act) -> None:
    """Do something, wait until its result is on the page, as numbers and as a picture."""
    before = shown_id(page)
    act()
    page.wait_for_function(f"{EXPLORER}.dataset.id !== {json.dumps(before)}")
    page.wait_for_function(
        "JSON.parse(document.querySelector('#take .files').dataset.shown).id === "
        f"{EXPLORER}.dataset.id"
    )


def example(page, name: str) -> None:
    after_new_result(page, lambda: page.click(f"[data-example={name}]"))


def upload(page, path) -> None:
    page.set_input_files("#picture input[type=file]", str(path))


def choose_model(page, text: str) -> None:
    page.click("#model input")
    page.click(f"ul[role=listbox] li:has-text('{text}')")


# The way of a newcomer


def test_first_screen_is_alive(arrive):
    page = arrive()
    assert len(labels(page)) == 10
    assert page.locator("[data-example=cat]").get_attribute("aria-pressed") == "true"
    shares = [
        float(text.split()[0]) for text in page.locator("ol.answer .percent").all_inner_texts()
    ]
    assert shares == sorted(shares, reverse=True)
    assert 99 <= sum(shares) <= 101  # ten labels, all of them shown
    assert page.locator("#picture img").is_visible()


def test_example_then_own_picture(arrive, tmp_path):
    page = arrive()
    example(page, "lion")
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
    page.wait_for_timeout(300)
    place, shown = frame.bounding_box(), image.bounding_box()
    assert place["width"] / place["height"] == pytest.approx(2, rel=0.02)
    for axis, side in (("x", "width"), ("y", "height")):
        middle = place[axis] + place[side] / 2
        assert middle == pytest.approx(shown[axis] + shown[side] / 2, abs=2)


def test_fit_modes(arrive):
    page = arrive()
    for fit in ("pad", "stretch", "native"):
        after_new_result(page, lambda fit=fit: page.check(f"#fit input[value={fit}]", force=True))
        header = page.locator("#frame p").inner_text()
        assert "whole picture" in header
    assert re.search(r"\d+ × \d+", header)


def test_other_model(arrive):
    page = arrive()
    example(page, "lion")
    after_new_result(page, lambda: choose_model(page, "DeiT tiny"))
    assert labels(page)[0].startswith("lion")
    assert state(page)["layer"] in (-1, 11)


def test_newest_wish_wins(arrive, monkeypatch):
    """Three clicks while the model is busy: the last one is what stays."""
    import time

    from vit_demo.ui import runner

    forward = runner.forward
    monkeypatch.setattr(runner, "forward", lambda *args: (time.sleep(1), forward(*args))[1])
    page = arrive()
    for name in ("coffee", "rocket", "horse"):
        page.click(f"[data-example={name}]")
        page.wait_for_timeout(150)
    page.wait_for_function(
        "JSON.parse(document.querySelector('#take .files').dataset.shown).example === 'horse'"
    )
    page.wait_for_timeout(500)
    assert page.locator("[data-example=horse]").get_attribute("aria-pressed") == "true"
    assert "horse" in page.locator("#picture img").get_attribute("src")
    assert page.locator("#status .wrap.hide").count() == 1


def test_camera_and_removal(arrive):
    page = arrive(permissions=["camera"])
    page.click("#picture .source-selection button:nth-child(2)")
    page.click("#picture button:has-text('Webcam')")
    page.wait_for_selector("#answer .empty")  # the picture made room for the camera
    page.wait_for_function("document.querySelector('#picture video')?.videoWidth > 0")
    page.wait_for_timeout(500)
    before = shown_id(page)
    page.click("#picture .capture-button")
    page.wait_for_function(f"{EXPLORER}.dataset.id !== {json.dumps(before)}")
    page.click("#picture .icon-button-wrapper button:last-of-type")
    page.wait_for_selector("#answer .empty")
    example(page, "tower")
    assert len(labels(page)) == 10


def test_clipboard(arrive):
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
    assert sorted(labels(page)) == [str(digit) for digit in range(10)]
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
    before, answer = shown_id(page), labels(page)
    for name, words in bad_files(tmp_path).items():
        upload(page, tmp_path / name)
        page.wait_for_selector(f"#message .message:has-text('{words}')")
        message = page.locator("#message").inner_text()
        assert name in message and str(tmp_path) not in message and "/tmp" not in message
        assert (shown_id(page), labels(page)) == (before, answer)
        page.wait_for_function("document.querySelector('#picture img')?.src.endsWith('cat.jpg')")
    example(page, "coffee")
    assert page.locator("#message .message").count() == 0


def test_hub_out_of_reach(arrive):
    page = arrive()
    before = page.locator("#model input").input_value()
    page.fill("#model input", "vit_tiny_patch16_224.augreg_in21k_ft_in1k")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message .message")
    message = page.locator("#message").inner_text()
    assert "the model hub cannot be reached" in message and "Still using" in message
    assert len(message) < 200 and "\n" not in message.strip()
    page.wait_for_function(f"document.querySelector('#model input').value === {json.dumps(before)}")
    example(page, "coffee")


def test_a_path_is_no_model(arrive, shared):
    page = arrive()
    page.fill("#model input", str(shared / "weights" / f"{DEIT}.safetensors"))
    page.keyboard.press("Enter")
    page.wait_for_selector("#message .message:has-text('There is no model')")


# What is taken away


@pytest.fixture(scope="module")
def expected(server, shared):
    """The library's own answer for the picture and model of the download tests."""
    import vit_demo
    from vit_demo.embedded import example_path

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIT_DEMO_WEIGHTS", str(shared / "weights"))
        return vit_demo.load(DEIT, device="cpu").explain(example_path("cheetah"), "pad")


def test_files(arrive, expected, tmp_path, visit):
    view = "&map=head_rollout&head=1&layer=5&query=3,4&residual=0.4"
    page = arrive(f"?model={DEIT}&example=cheetah&fit=pad{view}")
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


def test_link_brings_everything_back(arrive, server):
    page = arrive(permissions=["clipboard-read", "clipboard-write"])
    after_new_result(page, lambda: choose_model(page, "DeiT tiny"))
    example(page, "lion")
    after_new_result(page, lambda: page.check("#fit input[value=stretch]", force=True))
    page.click("#explorer label:has-text('Rollout') >> nth=1")
    page.wait_for_function(f"JSON.parse({EXPLORER}.dataset.state).map === 'rollout'")
    page.click("#link button")
    page.wait_for_selector("#link .note:has-text('Link copied')")
    link = page.evaluate("navigator.clipboard.readText()")
    asked = {key: values[0] for key, values in parse_qs(urlsplit(link).query).items()}
    assert asked["model"] == DEIT and asked["example"] == "lion" and asked["fit"] == "stretch"
    other = arrive("?" + urlsplit(link).query)
    assert other.locator("#model input").input_value() == page.locator("#model input").input_value()
    assert labels(other) == labels(page)
    assert other.locator("#fit input[value=stretch]").is_checked()
    assert state(other) == state(page)


def test_nonsense_in_a_link_is_harmless(arrive):
    page = arrive("?example=../../x&fit=sideways&layer=99999&map=%3Cscript%3E&query=a,b&lang=xx")
    assert page.locator("[data-example=cat]").get_attribute("aria-pressed") == "true"
    assert page.locator("#fit input[value=crop]").is_checked()


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


def test_every_text_is_translated():
    from vit_demo.ui import texts

    assert texts.ENGLISH.keys() == texts.KOREAN.keys()
    fields = re.compile(r"\{\w+\}")
    for key, english in texts.ENGLISH.items():
        assert sorted(fields.findall(english)) == sorted(fields.findall(texts.KOREAN[key])), key


def test_phone(arrive):
    page = arrive(viewport=PHONE, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    tops = [
        page.locator(part).bounding_box()["y"]
        for part in ("#picture", "#answer", "#explorer .vx-picture", "#what", "#take", "#about")
    ]
    assert tops == sorted(tops)
    example(page, "coffee")


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

    tab_to("[data-example=coffee]")
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
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-playwright-python is not installed")
    page = arrive(color_scheme=scheme, viewport=viewport)
    found = Axe().run(page).response["violations"]
    serious = [
        (rule["id"], [node["html"][:120] for node in rule["nodes"]])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
