"""One Chromium for all browser tests, and pages that must stay clean."""

import shutil
from urllib.parse import urlsplit

import pytest
from support.page import SECONDS, WHY, WIDE
from support.shared import missing

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
]


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, driven by Playwright."""
    chromium = shutil.which("chromium")
    if chromium is None:
        missing("chromium is not installed; CONTRIBUTING.md says how")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed; pip install -r requirements-dev.txt")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open an address as a new visitor. In the end: no error was logged, no other host was asked."""
    contexts, complaints = [], []

    def visit(address: str, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        home = urlsplit(address).netloc

        def asked(request) -> None:
            there = urlsplit(request.url)
            if there.scheme in ("http", "https", "ws", "wss") and there.netloc != home:
                complaints.append(f"asked another host: {request.url}")

        def logged(message) -> None:
            if message.type == "error":
                complaints.append(f"console: {message.text}")

        page.on("request", asked)
        page.on("console", logged)
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def arrive(visit, site):
    """A visitor who waits until the first picture is explained."""

    def arrive(query: str = "", **options):
        page = visit(site.url + query, **({"viewport": WIDE} | options))
        page.set_default_timeout(SECONDS * 1000)
        page.wait_for_selector("#explorer [data-ready=true][data-drawn]", state="attached")
        page.wait_for_selector("ol.answer li, #answer p")
        page.wait_for_function(f"{WHY}?.dataset.state !== 'waiting'")
        return page

    return arrive
