"""Which model: the line about it, the chooser, the offer of an ImageNet model, hubs that fail."""

import json
import re
import threading

import pytest
from support.hub import TOY, simulated_hub
from support.page import (
    DEIT,
    MODEL,
    SECONDS,
    after_new_result,
    choose_example,
    choose_model,
    label_names,
    shown_id,
    state,
)

from vit_demo.ui import models

MODEL_SHOWN = "JSON.parse(document.querySelector('#take .files').dataset.shown).model"
NEWS = "#knows .news p"


@pytest.fixture
def toy_hub(site, monkeypatch, tmp_path):
    """A hub on this machine, whose only model is what the page offers."""
    monkeypatch.setattr("vit_demo.checkpoints.hub.CHUNK_BYTES", 2**12)
    monkeypatch.setattr(models, "IMAGENET", TOY)
    monkeypatch.setattr(models, "CURATED", (("imagenet", "Toy · patch 16 · 160", TOY, 1),))
    with simulated_hub(monkeypatch, tmp_path / "cache", patience=60) as hub:
        yield hub
    # A download that the test has left ends now, because the hub does; what came of it goes, too.
    loading = site.server.models.loading.get(TOY)
    if loading:
        loading.exception(SECONDS)
    site.server.models.kept.pop(TOY, None)


def no_hub(monkeypatch) -> None:
    def unreachable(*_, **__):
        raise OSError("there is no network")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", unreachable)
    monkeypatch.setattr("vit_demo.checkpoints.hub.ANSWERS", {})
    monkeypatch.delenv("VIT_DEMO_WEIGHTS", raising=False)


def title(page) -> str:
    return page.locator("#model input").input_value()


# The line


@pytest.mark.quick
def test_line_says_what_the_model_is(arrive, site):
    page, model = arrive(), site.server.models.get(MODEL)
    line = page.locator("#knows .line").inner_text()
    assert f"{len(model.labels)} things: {model.labels[0]} … {model.labels[-1]}" in line
    (height, width), (down, right) = model.preprocess.size, model.config.patch_size
    assert f"{model.config.depth} layers × {model.config.heads} heads" in line
    assert f"{height // down} × {width // right} patches" in line
    assert f"{width} × {height} px" in line
    page.click("#knows .all")
    page.wait_for_selector("#things li")
    assert page.locator("#things li").all_inner_texts() == model.labels
    page.keyboard.press("Escape")
    page.wait_for_selector("#things", state="hidden")
    after_new_result(page, lambda: choose_model(page, "digits"))
    page.wait_for_selector("#knows .line:has-text('10 things: 0 … 9')")


def test_line_of_a_model_without_labels(arrive):
    page = arrive("?model=headless")
    page.wait_for_selector("#knows .line:has-text('No labels, for maps only')")
    assert page.locator("#knows .offer").is_hidden()


# The chooser


def test_chooser_says_what_is_here_and_how_large_the_rest_is(arrive, deit_tiny):
    page = arrive()
    page.click("#model input")
    page.wait_for_selector("#model li")
    rows = {
        row.locator("small").inner_text(): row.locator("em").inner_text()
        for row in page.locator("#model li").all()
    }
    assert re.fullmatch(r"\d+ MB, here", rows[MODEL])
    assert rows[DEIT] == "23 MB, here"  # in VIT_DEMO_WEIGHTS
    assert rows["deit_small_patch16_224.fb_in1k"] == "88 MB to download"
    assert rows["vit_large_patch16_224.augreg_in21k_ft_in1k"] == "1.2 GB to download"


def test_chooser_finds_by_title_and_by_timm_name(arrive, deit_tiny):
    page = arrive()
    for text in ("tiny deit imagenet", "deit_tiny_patch16_224.f"):
        page.fill("#model input", text)
        page.wait_for_selector("#model p:empty", state="attached")  # the search is over
        assert page.locator("#model li small").all_inner_texts() == [DEIT]
    after_new_result(page, lambda: page.keyboard.press("Enter"))  # one match is taken
    assert page.evaluate(MODEL_SHOWN) == DEIT and title(page).startswith("ImageNet · DeiT tiny")
    page.fill("#model input", "tinyclip")  # in no list, but one of timm's
    page.wait_for_selector("#model li:has-text('tinyclip')")
    assert "MB or more to download" in page.locator("#model li em").first.inner_text()


def test_several_matches_are_offered_and_a_click_elsewhere_changes_nothing(arrive, deit_tiny):
    page = arrive()
    before, id = title(page), shown_id(page)
    page.fill("#model input", "deit tiny")
    page.keyboard.press("Enter")
    page.wait_for_selector("#model p:has-text('models are called that. Click one.')")
    assert page.locator("#model li").count() > 1
    page.mouse.click(5, 500)
    page.wait_for_selector("#model .list", state="hidden")
    assert (title(page), shown_id(page)) == (before, id)
    page.fill("#model input", "deit_tiny_patch16_224.fb_in1k")
    page.wait_for_selector("#model p:empty", state="attached")
    page.mouse.click(5, 500)  # also when only one is left
    page.wait_for_selector("#model .list", state="hidden")
    choose_example(page, "camel")
    assert title(page) == before and page.evaluate(MODEL_SHOWN) == MODEL
    page.fill("#model input", "deit tiny")
    after_new_result(page, lambda: page.click(f"#model li:has-text('{DEIT}')"))
    assert page.evaluate(MODEL_SHOWN) == DEIT


def test_chooser_with_the_keyboard(arrive):
    page = arrive()
    page.focus("#model input")
    page.wait_for_selector("#model li")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#model li[aria-selected=true] small").inner_text() == "vit-mnist"
    page.keyboard.press("Escape")
    assert page.locator("#model .list").is_hidden() and page.evaluate(MODEL_SHOWN) == MODEL
    page.keyboard.press("Tab")
    page.focus("#model input")
    page.wait_for_selector("#model li")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    after_new_result(page, lambda: page.keyboard.press("Enter"))
    assert page.evaluate(MODEL_SHOWN) == "vit-mnist"


# The offer, and how far it is


def test_offer_downloads_with_a_true_percentage(arrive, toy_hub):
    toy_hub.fault = "portions"
    page = arrive()
    page.click(
        "#knows .offer button:has-text('Use an ImageNet model: Toy, 1,000 labels, 1 MB, once')"
    )
    for portion in range(1, 10):
        toy_hub.portions.release()
        page.wait_for_function(
            f"""(() => {{ const words = document.querySelector({json.dumps(NEWS)})?.textContent ?? '';
            const percent = +words.match(/: (\\d+) %/)?.[1];
            return percent >= {10 * portion - 1} && percent <= {10 * portion + 1}; }})()"""
        )
        assert 10 * portion - 1 <= 100 * page.evaluate("document.querySelector('progress').value")
    assert re.fullmatch(rf"Downloading {TOY}: (89|9\d) % of 1 MB", page.locator(NEWS).inner_text())
    assert page.evaluate(MODEL_SHOWN) == MODEL  # the page goes on with what it has
    after_new_result(page, lambda: toy_hub.portions.release())
    assert page.evaluate(MODEL_SHOWN) == TOY
    page.wait_for_selector(NEWS, state="detached")
    assert page.locator("#knows .offer").is_hidden()
    assert page.locator("#knows .line").inner_text().startswith("1,000 things: tench …")
    page.click("#model input")
    assert page.locator(f"#model li:has-text('{TOY}') em").inner_text() == "1 MB, here"


def test_newest_model_wins_while_another_one_is_downloaded(arrive, toy_hub):
    toy_hub.fault = "portions"
    page = arrive()
    page.click("#knows .offer button:not(:empty)")
    toy_hub.portions.release(3)
    page.wait_for_selector(f"{NEWS}:has-text('%')")
    after_new_result(page, lambda: choose_model(page, "digits"))  # it does not wait for the hub
    assert page.evaluate(MODEL_SHOWN) == "vit-mnist"
    page.wait_for_selector(NEWS, state="detached")
    toy_hub.portions.release(7)
    choose_example(page, "digit-seven")
    assert page.evaluate(MODEL_SHOWN) == "vit-mnist" and title(page) == "Embedded · digits"


def test_late_news_of_an_older_wish_is_not_shown(arrive, toy_hub, monkeypatch):
    gate, said = threading.Event(), models.on_its_way
    gate.set()

    def late(name):
        news = said(name)
        if name == TOY:
            gate.wait(60)
        return news

    monkeypatch.setattr("vit_demo.ui.events.on_its_way", late)
    toy_hub.fault = "portions"
    page = arrive()
    page.click("#knows .offer button:not(:empty)")
    toy_hub.portions.release(3)
    page.wait_for_selector(f"{NEWS}:has-text('%')")
    gate.clear()
    toy_hub.portions.release(3)
    page.wait_for_timeout(600)  # it has been asked once more, and holds its answer back
    after_new_result(page, lambda: choose_model(page, "digits"))
    page.wait_for_selector(NEWS, state="detached")
    gate.set()
    page.wait_for_timeout(600)
    assert page.locator(NEWS).count() == 0


def test_offer_is_grey_with_the_reason_while_the_hub_is_away(arrive, toy_hub, monkeypatch):
    monkeypatch.setattr("vit_demo.checkpoints.hub.ASK_AGAIN_SECONDS", 0)
    toy_hub.fault = "refuses"
    page = arrive()
    page.wait_for_selector("#knows .offer button:disabled:has-text('Toy')")
    assert "cannot be reached" in page.locator("#knows .reason").inner_text()
    toy_hub.fault = "none"
    page.evaluate("dispatchEvent(new Event('focus'))")  # somebody comes back to the page
    page.wait_for_selector("#knows .offer button:enabled:has-text('Toy')")
    assert page.locator("#knows .reason").inner_text() == ""


def test_offer_stays_when_its_line_is_drawn_once_more(arrive, toy_hub):
    """Gradio does so when a value arrives, at times after everything has been filled in."""
    page = arrive()
    page.wait_for_selector("#knows .offer button:has-text('Toy')")
    page.evaluate("""() => {
        const offer = document.querySelector("#knows .offer"), empty = offer.cloneNode(true);
        for (const button of empty.querySelectorAll("button")) {
            button.textContent = "";
            delete button.dataset.name;
        }
        offer.replaceWith(empty);
    }""")
    page.wait_for_selector("#knows .offer button[data-name]:has-text('Toy')")


def test_offer_survives_a_line_that_is_drawn_again_while_it_is_asked_for(browser, site, toy_hub):
    """An answer on its way is thrown away for a newer question only, not for a line that is missing."""
    page = browser.new_page()
    page.add_init_script("""
        const ask = window.fetch;
        window.fetch = (address, options) => {
            if (String(options?.body).includes("imagenet_offer") && !window.asked) {
                window.asked = true;
                const line = document.querySelector("#knows .line"), place = line.parentElement;
                line.remove();
                window.dispatchEvent(new Event("online")); // as anything that has it shown again
                place.prepend(line);
            }
            return ask(address, options);
        };
    """)
    page.goto(site.url)
    page.wait_for_selector("#knows .offer button[data-name]:has-text('Toy')")
    assert page.evaluate("window.asked")
    page.close()


def test_offer_without_a_network(arrive, monkeypatch, site):
    monkeypatch.delitem(site.server.models.kept, DEIT, raising=False)
    no_hub(monkeypatch)
    page = arrive()
    text = "Use an ImageNet model: DeiT small, 1,000 labels, 88 MB, once"
    page.wait_for_selector(f"#knows .offer button:disabled:has-text('{text}')")


def test_offer_takes_what_is_already_here(arrive, deit_tiny):
    page = arrive()
    button = "#knows .offer button:has-text('DeiT tiny, 1,000 labels, already here')"
    after_new_result(page, lambda: page.click(button))
    assert page.evaluate(MODEL_SHOWN) == DEIT


# Models that cannot be had


@pytest.mark.parametrize("fault", ["refuses", "mute", "silence"])
def test_a_hub_that_fails_is_told_once_and_in_one_place(arrive, toy_hub, monkeypatch, fault):
    monkeypatch.setattr("vit_demo.checkpoints.hub.HUB_SECONDS", 2)  # the same way, only sooner
    monkeypatch.setattr("vit_demo.checkpoints.hub.STALL_SECONDS", 3)
    toy_hub.fault = fault
    page = arrive()
    before, place = title(page), "document.querySelector('#answer').getBoundingClientRect().y"
    page.wait_for_selector("#knows .offer button:not(:empty)")
    page.evaluate("scrollTo(0, 0)")
    at = page.evaluate(place)
    page.fill("#model input", TOY)
    page.keyboard.press("Enter")
    page.wait_for_selector("#knows .news.failed")
    assert page.evaluate(place) == at  # it moves nothing
    words = page.locator(NEWS).inner_text()
    assert (
        words
        == f"{TOY} could not be downloaded: the model hub cannot be reached. Still using {MODEL}."
    )
    assert title(page) == before and page.locator("[data-testid=toast-body]").count() == 0
    assert page.locator("#message .message").count() == 0
    choose_example(page, "camel")  # another picture does not take it away
    page.wait_for_selector("#knows .news.failed")
    after_new_result(page, lambda: choose_model(page, "digits"))  # another model does
    assert page.locator(NEWS).count() == 0


def test_news_moves_nothing_where_no_offer_stood(arrive, monkeypatch, deit_tiny, shared):
    no_hub(monkeypatch)
    monkeypatch.setenv("VIT_DEMO_WEIGHTS", str(shared / "weights"))
    page = arrive(f"?model={DEIT}")
    assert page.locator("#knows .offer").is_hidden()
    place = "['fit', 'answer'].map((id) => document.getElementById(id).getBoundingClientRect().y)"
    page.evaluate("scrollTo(0, 0)")
    at = page.evaluate(place)
    page.fill("#model input", "vit_tiny_patch16_384.augreg_in21k_ft_in1k")
    page.keyboard.press("Enter")
    page.wait_for_selector("#knows .news.failed")
    assert page.evaluate(place) == at
    parts = ("#strip button >> nth=0", "#knows .news", "#fit")
    strip, news, fit = (page.locator(part).bounding_box() for part in parts)
    assert strip["y"] + strip["height"] <= news["y"]  # and it covers only the line
    assert news["y"] + news["height"] <= fit["y"]


def test_link_to_a_model_that_cannot_be_had(arrive, monkeypatch):
    no_hub(monkeypatch)
    page = arrive("?model=vit_tiny_patch16_384.augreg_in21k_ft_in1k&example=camel&map=attention")
    page.wait_for_selector(f"{NEWS}:has-text('could not be downloaded')")
    page.wait_for_selector("#status .wrap.hide", state="attached")  # and nothing else is on its way
    assert f"Still using {MODEL}." in page.locator(NEWS).inner_text()
    assert page.evaluate(MODEL_SHOWN) == MODEL and len(label_names(page)) == 10
    page.click("#language [data-language=ko]")  # in the visitor's language, whenever he changes it
    page.wait_for_selector(f"{NEWS}:has-text('다운로드하지 못했습니다')")


def test_settings_in_a_link_wait_for_its_model(arrive, toy_hub):
    """While it is downloaded the first model is shown; what the link sets belongs to the other one."""
    toy_hub.fault = "portions"
    page = arrive(f"?model={TOY}&map=attention&head=1&layer=2")
    assert page.evaluate(MODEL_SHOWN) == MODEL and state(page)["map"] != "attention"
    after_new_result(page, lambda: toy_hub.portions.release(10))
    assert page.evaluate(MODEL_SHOWN) == TOY
    assert (state(page)["map"], state(page)["head"], state(page)["layer"]) == ("attention", 1, 2)


@pytest.mark.parametrize("name", ["<img src=http://example.org/x.png>", "<form><input name=q>"])
def test_a_name_is_never_html(arrive, name):
    """The visitor fixture notices a request to another host."""
    page = arrive(f"?model={name}")
    page.wait_for_selector("#knows .news.failed")
    assert name in page.locator(NEWS).inner_text()
    assert page.locator(".news img, .news form, [data-testid=toast-body]").count() == 0
    page.fill("#model input", name + "2")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{NEWS}:has-text('2')")
    assert page.locator(".news img, .news form, [data-testid=toast-body]").count() == 0
