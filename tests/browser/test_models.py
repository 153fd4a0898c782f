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
    serious_axe_violations,
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


@pytest.mark.parametrize("width", [1440, 1100, 900, 390])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_line_breaks_where_a_fact_ends(arrive, width, language):
    page = arrive(f"?lang={language}", viewport={"width": width, "height": 900})
    facts = page.locator("#knows .line > span")
    assert facts.count() == 3
    for fact in facts.all():
        assert not fact.inner_text().startswith("·")
        assert fact.evaluate("(fact) => getComputedStyle(fact).whiteSpace") == "nowrap"
        edge = page.locator("#knows").bounding_box()
        place = fact.bounding_box()
        assert place["x"] + place["width"] <= edge["x"] + edge["width"] + 1
    last, question = facts.last.bounding_box(), facts.last.locator(".gloss").bounding_box()
    assert last["y"] <= question["y"] + question["height"] / 2 <= last["y"] + last["height"]
    assert question["x"] > last["x"] + 20  # after a word


@pytest.mark.parametrize("size", [(1440, 900), (1000, 700), (390, 844)])
def test_nothing_is_printed_over_the_list_of_labels(arrive, size):
    page = arrive(viewport={"width": size[0], "height": size[1]})
    page.click("#knows .all")
    page.wait_for_selector("#things li")
    page.locator("#things").scroll_into_view_if_needed()
    strangers = page.evaluate("""() => {
        const things = document.querySelector("#things"), place = things.getBoundingClientRect();
        const seen = [], at = (share, from, to) => from + share * (to - from);
        for (let down = 0.02; down < 1; down += 0.04)
            for (let across = 0.02; across < 1; across += 0.08) {
                const [x, y] = [at(across, place.left, place.right), at(down, place.top, place.bottom)];
                if (y < 0 || y > innerHeight) seen.push(`out of sight: ${y}`);
                else if (!things.contains(document.elementFromPoint(x, y)))
                    seen.push(document.elementFromPoint(x, y).outerHTML.slice(0, 80));
            }
        return seen;
    }""")
    assert strangers == []


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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("DeiT-tiny", DEIT),
        ("deit-small", "deit_small_patch16_224.fb_in1k"),
        ("ViT-base", "vit_base_patch16_224.augreg2_in21k_ft_in1k"),
        ("DeiT-III", "deit3_small_patch16_224.fb_in22k_ft_in1k"),
    ],
)
def test_chooser_finds_names_with_a_hyphen(arrive, text, name):
    page = arrive()
    page.click("#model input")
    page.wait_for_selector("#model li")
    page.route("**/component_server*", lambda route: route.abort())
    page.fill("#model input", text)  # what is in the list already needs no answer
    page.wait_for_selector(f"#model li:has-text('{name}')")


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_offer_that_cannot_be_taken_looks_so_and_can_be_read(arrive, toy_hub, scheme):
    toy_hub.fault = "refuses"
    page = arrive(color_scheme=scheme)
    page.wait_for_selector("#knows .offer button:disabled:has-text('Toy')")
    look = """(off) => {
        const button = document.querySelector("#knows .offer button");
        button.disabled = off;
        const { backgroundColor, borderStyle, color, cursor } = getComputedStyle(button);
        return { backgroundColor, borderStyle, color, cursor };
    }"""
    on, off = page.evaluate(look, False), page.evaluate(look, True)
    assert all(on[part] != off[part] for part in on)
    page.locator("#knows .offer").scroll_into_view_if_needed()
    assert [rule for rule, _ in serious_axe_violations(page) if rule == "color-contrast"] == []


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
        == f"{TOY} could not be downloaded: the model hub cannot be reached. Still using {before}."
    )
    assert title(page) == before and page.locator("[data-testid=toast-body]").count() == 0
    assert page.locator("#message .message").count() == 0
    assert page.locator("#knows .offer").is_visible()  # it may work the next time
    choose_example(page, "camel")  # life goes on
    assert page.locator(NEWS).count() == 0


def mistype(page, name: str = "deit_tiny_patch16_224.fb_in1") -> None:
    page.fill("#model input", name)
    page.wait_for_selector("#model p:has-text('is called that')")
    page.keyboard.press("Enter")
    page.wait_for_selector("#knows .news.failed")


@pytest.mark.parametrize("name", ["deit_tiny_patch16_224.fb_in2k", "resnet50"])
def test_a_wrong_name_brings_models_that_can_be_had(arrive, deit_tiny, name):
    page = arrive()
    before = title(page)
    mistype(page, name)
    words = page.locator(NEWS).inner_text()
    assert name in words and words.endswith(f"Still using {before}.")
    assert "python" not in words and "vit-photos" not in words
    assert page.locator("#knows .offer").is_visible()
    page.click("#language [data-language=ko]")
    page.wait_for_selector("#knows .instead:has-text('대신 쓸 수 있는 모델')")
    assert "python" not in page.locator(NEWS).inner_text()
    page.click("#language [data-language=en]")
    page.wait_for_selector("#knows .instead:has-text('Use instead:')")
    offered = page.locator("#knows .instead button:has-text('ImageNet · DeiT tiny')").first
    after_new_result(page, offered.click)
    assert page.evaluate(MODEL_SHOWN) == DEIT and title(page).startswith("ImageNet · DeiT tiny")
    assert page.locator(NEWS).count() == 0


def test_a_wrong_name_is_forgotten_with_the_next_step(arrive):
    page = arrive()
    steps = {
        "picture": lambda: page.click("[data-example=camel]"),
        "fit": lambda: page.click("#fit label:has-text('Pad')"),
        "model": lambda: choose_model(page, "digits"),
    }
    for step in steps.values():
        mistype(page, "vit_nonsense")
        after_new_result(page, step)
        page.wait_for_selector(NEWS, state="detached")
    mistype(page, "vit_nonsense")
    page.click("#knows .news .close")
    assert page.locator(NEWS).count() == 0
    mistype(page, "vit_nonsense")  # and it is said as often as it is asked


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
    news = page.locator("#knows .news").bounding_box()  # it can be seen, whatever has been scrolled
    assert news["y"] > 0 and news["y"] + news["height"] <= page.viewport_size["height"]
    left = page.locator("#left").bounding_box()  # and it lies over the left column
    assert news["x"] >= left["x"] and news["x"] + news["width"] <= left["x"] + left["width"]
    first = page.locator("ol.answer li:nth-child(3)").bounding_box()  # below the first answers
    assert first["y"] + first["height"] <= news["y"]


def test_link_to_a_model_that_cannot_be_had(arrive, monkeypatch):
    no_hub(monkeypatch)
    page = arrive("?model=vit_tiny_patch16_384.augreg_in21k_ft_in1k&example=camel&map=attention")
    page.wait_for_selector(f"{NEWS}:has-text('could not be downloaded')")
    page.wait_for_selector("#status .wrap.hide", state="attached")  # and nothing else is on its way
    assert f"Still using {title(page)}." in page.locator(NEWS).inner_text()
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
