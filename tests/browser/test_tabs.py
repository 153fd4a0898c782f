"""The tabs: ways to look at the same picture, in Chromium."""

from urllib.parse import parse_qs, urlsplit

import pytest
from support.page import EXPLORER, open_tab

from vit_demo.ui.layout import TABS
from vit_demo.ui.texts import words


def shown_panels(page) -> list[str]:
    return [name for name in TABS if page.locator(f"#panel-{name}").is_visible()]


@pytest.mark.quick
def test_one_panel_is_shown_and_all_are_mounted(arrive):
    page = arrive()
    assert shown_panels(page) == ["explore"]
    names = [words("en")[f"tab_{name}"] for name in TABS]
    assert page.locator("#tabs [role=tab]").all_inner_texts() == names
    page.evaluate(
        "document.addEventListener('vit-tab', (event) => { window.news = event.detail; })"
    )
    open_tab(page, "trust")
    assert shown_panels(page) == ["trust"]
    assert (
        page.evaluate("[document.documentElement.dataset.tab, window.news.name]") == ["trust"] * 2
    )
    assert page.locator("#panel-trust").get_attribute("aria-labelledby") == "tab-trust"
    selected = page.locator("#tabs [role=tab][aria-selected=true]")
    assert selected.count() == 1 and selected.get_attribute("id") == "tab-trust"


def test_arrow_keys_walk_along_the_tabs(arrive):
    page = arrive()
    page.focus("#tab-explore")
    first, second, *_, last = TABS
    for key, name in (
        ("ArrowRight", second),
        ("ArrowLeft", first),
        ("ArrowLeft", last),
        ("ArrowRight", first),
        ("End", last),
        ("Home", first),
    ):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == f"tab-{name}"
        assert shown_panels(page) == [name]


def test_a_link_opens_its_tab(arrive):
    page = arrive("?tab=trust", permissions=["clipboard-read", "clipboard-write"])
    assert shown_panels(page) == ["trust"]
    page.click("#link button")
    page.wait_for_selector("#link .note:has-text('Link copied')")
    link = page.evaluate("navigator.clipboard.readText()")
    assert parse_qs(urlsplit(link).query)["tab"] == ["trust"]
    page.click("#language [data-language=ko]")
    page.wait_for_selector("[role=tab]:has-text('탐색')")
    assert page.locator("#tab-trust").get_attribute("aria-selected") == "true"
    assert shown_panels(arrive("#trust/5")) == ["trust"]
    assert shown_panels(arrive("?tab=nonsense")) == ["explore"]


def test_a_page_that_may_not_copy_says_so(arrive):
    """Over plain http from another machine browsers have no clipboard for pages."""
    page = arrive("?tab=trust")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.click("#link button")
    page.wait_for_selector("#link .note:has-text('does not let this page copy')")
    assert "tab=trust" in page.url


def test_the_explorer_is_drawn_when_its_tab_opens(arrive):
    page = arrive("?tab=trust")
    open_tab(page, "explore")
    page.wait_for_function(f"{EXPLORER}.querySelector('canvas.vx-picture').width > 100")
    page.wait_for_function(f"{EXPLORER}.querySelector('canvas.vx-tiles').width > 100")
