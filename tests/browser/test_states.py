"""Every state of a picture has a look: empty, sent, waiting, running, done, failed; in Chromium."""

import threading

import pytest
from PIL import Image
from support.app import App
from support.page import (
    SECONDS,
    choose_example,
    come_to_the_methods,
    open_tab,
    shown_id,
    upload,
)

LOOK = "document.documentElement.dataset.look"
OLD = ("#answer", "#panel-explore")


def opacity(page, selector: str) -> float:
    return float(page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).opacity"))


@pytest.fixture
def held(site, monkeypatch):
    """Pictures are looked at only when `held` is set."""
    go, explain = threading.Event(), site.server.explain

    def busy(*args):
        assert go.wait(SECONDS)
        return explain(*args)

    monkeypatch.setattr(site.server, "explain", busy)
    yield go
    go.set()


def test_what_is_old_is_seen_to_be_old(arrive, held):
    held.set()
    page = arrive()
    assert page.evaluate(LOOK) == "done"
    held.clear()
    before = shown_id(page)
    page.click("[data-example=camel]")
    page.wait_for_function(f"{LOOK} === 'running'")
    page.wait_for_selector("#status .status:has-text('looking')")
    for part in OLD:
        page.wait_for_function(f"getComputedStyle(document.querySelector('{part}')).opacity < 0.5")
    assert page.locator("#stage").get_attribute("aria-busy") == "true"
    assert not page.locator("#picture .frame").is_visible()
    assert shown_id(page) == before
    open_tab(page, "learn")  # where that picture plays no part
    assert opacity(page, "#panel-learn") == 1
    open_tab(page, "explore")
    held.set()
    page.wait_for_function(f"{LOOK} === 'done'")
    for part in OLD:
        page.wait_for_function(
            f"getComputedStyle(document.querySelector('{part}')).opacity === '1'"
        )
    assert page.locator("#status .status").inner_text() == ""
    assert page.locator("#stage").get_attribute("aria-busy") == "false"


@pytest.mark.parametrize(
    ("language", "words"), [("en", "waiting, place 2/3"), ("ko", "대기 중, 순서 2/3")]
)
def test_the_place_in_the_queue_is_said(arrive, language, words):
    """As Gradio writes it (test_gradio_seams.py): the page says it in its own words."""
    page = arrive(f"?lang={language}")
    page.evaluate("""() => {
        const tracker = document.querySelector("#status [data-testid=status-tracker]");
        tracker.classList.remove("hide");
        tracker.innerHTML = '<div class="meta-text">queue: 2/3 | 0.4s</div>';
    }""")
    page.wait_for_function(f"{LOOK} === 'waiting'")
    page.wait_for_selector(f"#status .status:has-text('{words}')")


def test_a_failure_has_a_look_and_one_sentence(arrive, site, monkeypatch):
    page = arrive()
    before = shown_id(page)

    def broken(*_):
        raise RuntimeError("a test breaks it")

    with monkeypatch.context() as patch:
        patch.setattr(site.server, "explain", broken)
        page.click("[data-example=camel]")
        page.wait_for_function(f"{LOOK} === 'failed'")
        page.wait_for_selector("#message .notice:has-text('Something went wrong in step 1')")
    assert page.get_by_text("Something went wrong").count() == 1
    assert shown_id(page) == before and opacity(page, "#answer") > 0.5
    choose_example(page, "camel")  # the same one again
    assert page.evaluate(LOOK) == "done"
    assert not page.locator("#message .notice").is_visible()


def test_a_server_that_has_stopped_is_said_in_a_sentence(tmp_path, browser):
    app = App(tmp_path)
    page = browser.new_page()
    page.set_default_timeout(SECONDS * 1000)
    try:
        page.goto(app.url)
        page.wait_for_selector("#explorer [data-ready=true][data-drawn]")
        page.wait_for_selector("ol.answer li:nth-child(2)")
    finally:
        app.stop()
    lost = "The server does not answer"
    page.fill("#model input", "deit")
    page.wait_for_selector(f"#model .list p:has-text('{lost}')")
    page.keyboard.press("Enter")  # it does not say that there is no such model
    page.wait_for_selector(f"#model .list p:has-text('{lost}')")
    page.keyboard.press("Escape")
    page.fill("#answer .search input", "cat")
    page.wait_for_selector(f"#answer .search p:has-text('{lost}')")
    page.click("#knows .all")
    page.wait_for_selector(f"#things p:has-text('{lost}')")
    page.keyboard.press("Escape")
    page.click("ol.answer li:nth-child(2) .ask")  # a short question
    page.wait_for_selector(f"#explorer .vx-say:has-text('{lost}')")
    page.click("[data-example=camel]")
    page.wait_for_selector("#message .notice:has-text('The server does not answer')")
    assert page.locator("[data-testid=toast-body]:visible").count() == 0
    page.wait_for_function(f"!['running', 'waiting'].includes({LOOK})")
    page.wait_for_selector("[data-example=shepherd][aria-pressed=true]")  # which is still shown
    assert page.locator("[data-example][aria-pressed=true]").count() == 1
    page.click("#language [data-language=en]")
    assert page.locator("#message .notice").is_visible()  # until it answers again
    page.close()


def learn(page) -> None:
    open_tab(page, "learn")
    page.wait_for_selector("#learn [data-digit]")
    page.wait_for_selector("#learn [data-state=ready]:not([aria-busy])")


def compare(page) -> None:
    open_tab(page, "compare")
    page.wait_for_selector("#compare .cmp[data-state=ready]")


def inside(page) -> None:
    open_tab(page, "inside")
    page.wait_for_selector("#inside [data-state=ready]")


def long_check(page) -> None:
    come_to_the_methods(page)
    page.click("#why button:has-text('Check thoroughly')")
    page.wait_for_selector("#why [data-job=trust][data-state=running]")


JOB = "#why [data-job=trust][data-state=failed]"
CHECK = "#why button:has-text('Check all seven')"
LOST = {  # what was open when the server stopped, what is clicked then, and where it is said
    "compare": (
        compare,
        "#compare .cmp-examples button:nth-child(5)",
        "#compare [data-state=failed] .cmp-status",
    ),
    "check": (come_to_the_methods, CHECK, JOB),
    "head": (come_to_the_methods, "#why [data-at='1,0']", "#why .why-said"),
    "learn": (learn, "#learn [data-digit=digit-five]", "#learn .learn-note"),
    "inside": (inside, "#inside .ins-go.next", "#inside .ins-trouble"),
    "take": (None, "#take [data-kind=npz]", "#take .note"),
    "running": (long_check, None, JOB),  # last: it ends by itself
}


def test_every_tab_says_that_the_server_has_stopped(tmp_path, browser):
    """In the page's one sentence about it; and nothing waits for ever, also when asked again. One server,
    and a page for each case: a start takes longer than the rest."""
    app, pages, lost = App(tmp_path), {}, "The server does not answer"
    try:
        for case in ("picture", *LOST):
            page = pages[case] = browser.new_page()
            page.set_default_timeout(SECONDS * 1000)
            page.goto(app.url)
            page.wait_for_selector("ol.answer li:nth-child(2)")
            page.wait_for_selector("#explorer [data-ready=true][data-drawn]")
            before, *_ = LOST.get(case, [None])
            if before:
                before(page)
    finally:
        app.stop()
    for case, (_, click, said) in LOST.items():
        page = pages[case]
        if click:
            page.click(click)
        page.wait_for_selector(f"{said}:has-text('{lost}')")
        if case in ("compare", "check"):  # Gradio knows by now, and sends nothing
            page.click(click)
            page.wait_for_selector(f"{said}:has-text('{lost}')")
        assert page.locator("[aria-busy=true]:visible").count() == 0, case
    page = pages["picture"]
    Image.new("RGB", (30, 20)).save(tmp_path / "mine.png")
    upload(page, tmp_path / "mine.png")
    page.wait_for_selector(f"#message .notice:has-text('{lost}')")
    page.wait_for_function(f"{LOOK} === 'done'")
    for page in pages.values():
        page.close()
