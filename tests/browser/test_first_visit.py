"""Somebody comes without a link: the first map does not wait for the server's answers; in Chromium."""

import pytest
from support.page import EXPLORER, SECONDS, WIDE

DRAWN = "#explorer [data-ready=true][data-drawn]"


@pytest.fixture
def come(browser, site):
    """A visitor, and the addresses of the data that his browser fetched."""
    contexts, held = [], []

    def come(query: str = "", hold_answers: bool = False):
        context = browser.new_context(viewport=WIDE)
        contexts.append(context)
        page, fetched = context.new_page(), []
        page.set_default_timeout(SECONDS * 1000)
        if hold_answers:
            page.route("**/gradio_api/run/**", lambda route: held.append(route))
        page.on(
            "request",
            lambda request: request.url.endswith(".bin") and fetched.append(request.url),
        )
        page.goto(site.url + query)
        return page, fetched

    yield come
    for route in held:
        route.abort()
    for context in contexts:
        context.close()


def test_the_first_map_needs_no_answer(come):
    page, fetched = come(hold_answers=True)
    page.wait_for_selector(DRAWN)
    assert len(fetched) == 1
    assert page.evaluate(f"{EXPLORER}.explorer.values.some((value) => value > 0)")


def test_the_answer_brings_the_same_picture_and_no_second_fetch(come):
    page, fetched = come("?lang=ko")
    page.wait_for_selector("ol.answer li")
    page.wait_for_function("document.documentElement.dataset.look === 'done'")
    page.wait_for_selector(DRAWN)
    assert len(fetched) == 1
    page.wait_for_function("location.search.includes('example=')")  # both agree on the picture


def test_a_link_does_not_show_the_first_picture_first(come):
    page, fetched = come("?example=camel", hold_answers=True)
    page.wait_for_selector("#explorer .vitx button", state="attached")
    page.wait_for_timeout(500)
    assert fetched == [] and page.locator(DRAWN).count() == 0


def test_a_first_picture_that_is_gone_comes_again_without_a_word(come, site):
    """Others needed the room."""
    site.server.store.drop(site.server.first["id"])
    page, fetched = come()
    page.wait_for_selector(DRAWN)
    page.wait_for_function("document.documentElement.dataset.look === 'done'")
    assert len(fetched) == 2 and fetched[0] == fetched[1]  # under the name that the page knows
    again, fetched = come()
    again.wait_for_selector(DRAWN)
    assert len(fetched) == 1
    assert page.locator("#message:visible .message").count() == 0
