"""The address follows the page: reload and Back keep model, tab, picture and settings; in Chromium."""

from PIL import Image
from support.page import (
    EXPLORER,
    after_new_result,
    choose_example,
    choose_model,
    label_names,
    open_tab,
    state,
    until_state,
    upload,
)


def until_address(page, *parts: str) -> None:
    for part in parts:
        page.wait_for_function("(part) => location.href.includes(part)", arg=part)


def until_shown(page, example: str) -> None:
    page.wait_for_selector(f"[data-example={example}][aria-pressed=true]")
    page.wait_for_function("document.documentElement.dataset.look === 'done'")


def ready(page) -> None:
    page.wait_for_selector("#explorer [data-ready=true][data-drawn]", state="attached")
    page.wait_for_selector("ol.answer li")


def test_reload_keeps_model_tab_and_settings(arrive):
    page = arrive("?model=many&example=camel")
    page.evaluate(
        f"{EXPLORER}.explorer.set({{ map: 'attention', layer: 1, head: 2, query: [1, 2] }})"
    )
    open_tab(page, "trust")
    until_address(page, "tab=trust", "map=attention", "query=1%2C2")
    before, labels = state(page), label_names(page)
    page.reload()
    ready(page)
    page.wait_for_selector("#panel-trust")
    until_shown(page, "camel")
    until_state(page, "s.map === 'attention'")
    assert state(page) == before and label_names(page) == labels
    assert "model=many" in page.url


def test_back_and_forward_walk_through_pictures_and_tabs(arrive):
    page = arrive("?example=camel")
    until_address(page, "example=camel", "tab=explore")
    choose_example(page, "espresso")
    until_address(page, "example=espresso")
    open_tab(page, "trust")
    until_address(page, "tab=trust")
    page.go_back()
    page.wait_for_selector("#panel-explore")
    until_shown(page, "espresso")
    page.go_back()
    until_shown(page, "camel")
    until_address(page, "example=camel")
    page.go_forward()
    until_shown(page, "espresso")
    page.go_forward()
    page.wait_for_selector("#panel-trust")
    until_address(page, "tab=trust", "example=espresso")


def test_back_leaves_a_tab_that_writes_its_place_into_the_address(arrive):
    """The entry that is left keeps its own address; Back and forward find the place in the tab again."""
    page = arrive("?example=camel")
    until_address(page, "tab=explore")
    open_tab(page, "inside")
    until_address(page, "tab=inside", "#inside/1")
    page.click("#inside .ins-go.next")
    until_address(page, "tab=inside", "#inside/2")
    open_tab(page, "trust")
    until_address(page, "tab=trust")
    open_tab(page, "learn")
    page.wait_for_selector("#learn .learn-time")
    until_address(page, "tab=learn", "#learn/1")
    open_tab(page, "compare")
    until_address(page, "tab=compare")
    assert "#" not in page.url
    walk = [
        ("compare",),
        ("learn", "#learn/1"),
        ("trust",),
        ("inside", "#inside/2"),
        ("explore",),
    ]
    for way, places in ((page.go_back, walk[1:]), (page.go_forward, walk[-2::-1])):
        for tab, *place in places:
            way()
            page.wait_for_function(f"document.documentElement.dataset.tab === '{tab}'")
            page.wait_for_timeout(600)  # whoever writes the address has written it
            until_address(page, f"tab={tab}", *place)
            assert place or "#" not in page.url


def test_who_goes_back_twice_in_a_moment_is_heard_twice(arrive):
    page = arrive("?example=camel")
    until_address(page, "example=camel", "tab=explore")
    for example in ("espresso", "koala"):
        choose_example(page, example)
        until_address(page, f"example={example}")
    page.route("**/run/*", lambda route: (page.wait_for_timeout(300), route.continue_()))
    page.evaluate("addEventListener('popstate', () => history.back(), { once: true })")
    page.go_back()
    until_shown(page, "camel")
    until_address(page, "example=camel")


def test_back_and_forward_bring_model_and_settings(arrive):
    page = arrive("?model=many&example=camel")
    page.evaluate(
        f"{EXPLORER}.explorer.set({{ map: 'attention', layer: 1, head: 2, query: [1, 2] }})"
    )
    until_address(page, "model=many", "map=attention", "query=1%2C2")
    before, labels = state(page), label_names(page)
    open_tab(page, "trust")
    until_address(page, "tab=trust")
    page.evaluate(f"{EXPLORER}.explorer.set({{ map: 'rollout', layer: 0, query: null }})")
    until_address(page, "map=rollout", "layer=0")
    there = state(page)
    after_new_result(page, lambda: choose_model(page, "digits"))
    until_address(page, "model=vit-mnist")
    page.go_back()  # the model, as it was left
    until_address(page, "model=many", "tab=trust")
    until_shown(page, "camel")
    until_state(page, "s.layer === 0")
    assert state(page) == there and label_names(page) == labels
    assert page.locator("#model input").input_value() == "many"
    page.go_back()  # the tab, with the settings of then
    page.wait_for_selector("#panel-explore")
    until_state(page, "s.map === 'attention'")
    assert state(page) == before and label_names(page) == labels
    page.go_forward()
    until_state(page, "s.map === 'rollout'")
    assert state(page) == there
    page.go_forward()
    until_address(page, "model=vit-mnist")
    page.wait_for_selector("#knows .line[data-model=vit-mnist]")


def test_a_setting_is_no_step_of_its_own(arrive):
    page = arrive()
    until_address(page, "tab=explore")
    steps = page.evaluate("history.length")
    for layer in (0, 1, 2):
        page.evaluate(f"{EXPLORER}.explorer.set({{ map: 'attention', layer: {layer} }})")
        until_address(page, f"layer={layer}")
    assert page.evaluate("history.length") == steps


def test_back_to_an_upload_and_reload_of_it(arrive, tmp_path):
    """The address names no upload, for it stays with the visitor; his own browser remembers it."""
    page = arrive("?model=many")
    Image.effect_noise((300, 200), 90).convert("RGB").save(tmp_path / "mine.png")
    after_new_result(page, lambda: upload(page, tmp_path / "mine.png"))
    page.wait_for_function("history.state?.upload")
    labels = label_names(page)
    assert "example=" not in page.url and "mine" not in page.url
    choose_example(page, "camel")
    until_address(page, "example=camel")
    page.go_back()
    page.wait_for_function("!document.querySelector('[data-example][aria-pressed=true]')")
    page.wait_for_function("document.documentElement.dataset.look === 'done'")
    assert label_names(page) == labels
    page.reload()
    ready(page)
    assert label_names(page) == labels
    assert page.locator("[data-example][aria-pressed=true]").count() == 0


def test_an_upload_that_is_gone_gives_way_to_an_example(arrive, tmp_path):
    page = arrive()
    for path in (str(tmp_path / "mine.png"), "/etc/passwd"):
        page.evaluate("(upload) => history.replaceState({ upload }, '')", path)
        page.reload()
        ready(page)
        assert page.locator("[data-example][aria-pressed=true]").count() == 1
        assert not page.locator("#message .notice").is_visible()


def until_empty(page) -> None:
    page.wait_for_selector("#answer .empty")
    page.wait_for_function("document.documentElement.dataset.look === 'empty'")
    page.wait_for_selector("#explorer .vx-note:has-text('Choose a picture')")
    until_address(page, "example=none")
    assert not page.locator("#picture img").is_visible()
    assert page.locator("[data-example][aria-pressed=true]").count() == 0


def reload_empty(page) -> None:
    """Until the server has answered: before it does, every page is empty."""
    page.evaluate("history.replaceState({ ...history.state, old: true }, '')")
    page.reload()
    page.wait_for_function("!history.state.old")
    until_empty(page)


def test_an_empty_page_is_a_step_of_its_own_and_stays_empty(arrive):
    page = arrive("?example=camel")
    until_address(page, "tab=explore")
    choose_example(page, "espresso")
    until_address(page, "example=espresso")
    page.click("#picture .remove")
    until_empty(page)
    open_tab(page, "learn")
    until_address(page, "tab=learn")
    page.go_back()  # a tab of an empty page
    page.wait_for_selector("#panel-explore")
    page.click("#link .link")
    page.wait_for_selector("#link .note:has-text('copied')")
    copied = page.locator("#link .link").get_attribute("data-address")
    assert "example=none" in copied and "espresso" not in copied
    drawn = "() => window.drawn = document.querySelector('#early') !== null"
    page.add_init_script(f"addEventListener('DOMContentLoaded', {drawn})")
    reload_empty(page)
    assert not page.evaluate("window.drawn")  # no first picture before the page is there
    page.go_back()  # the picture that was taken away
    until_shown(page, "espresso")
    ready(page)
    page.go_forward()
    until_empty(page)
    page.go_back()
    until_shown(page, "espresso")
    page.go_back()
    until_shown(page, "camel")


def test_an_upload_that_was_taken_away_stays_away(arrive, tmp_path):
    page = arrive("?model=many")
    Image.effect_noise((300, 200), 90).convert("RGB").save(tmp_path / "mine.png")
    after_new_result(page, lambda: upload(page, tmp_path / "mine.png"))
    page.wait_for_function("history.state?.upload")
    labels = label_names(page)
    page.click("#picture .remove")
    until_empty(page)
    assert page.evaluate("history.state.upload") is None
    reload_empty(page)
    page.go_back()
    ready(page)
    page.wait_for_function("document.documentElement.dataset.look === 'done'")
    assert label_names(page) == labels
    assert page.locator("[data-example][aria-pressed=true]").count() == 0


def test_an_empty_page_has_what_its_model_needs(arrive, visit, site):
    """The pad of a model of digits, and its examples, also without a picture."""
    page = visit(f"{site.url}?model=vit-mnist&example=none")
    page.wait_for_selector("#pad canvas")
    page.wait_for_selector("#strip [data-example=digit-two]")
    page.wait_for_selector("#knows .line[data-model=vit-mnist]")
    until_empty(page)
    after = "document.querySelector('ol.answer li')"
    page.click("[data-example=digit-three]")
    page.wait_for_function(after)
    until_address(page, "example=digit-three", "model=vit-mnist")
