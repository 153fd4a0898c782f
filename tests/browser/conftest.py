"""One Chromium for all browser tests, and pages that must stay clean."""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.explorer import BIG, SMALL, look
from support.page import SECONDS, WHY, WIDE, next_frames
from support.shared import missing

HERE = Path(__file__).parent
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items) -> None:
    """A page takes seconds to load: without `-m ""`, one or two tests of each part are enough."""
    for item in items:
        if item.path.parent == HERE and not item.get_closest_marker("quick"):
            item.add_marker("slow")


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
        page.wait_for_function("/done|failed/.test(document.documentElement.dataset.look)")
        page.wait_for_function("!document.querySelector('#stage[aria-busy=true]')")
        page.wait_for_function(f"{WHY}?.dataset.state !== 'waiting'")
        return page

    return arrive


@pytest.fixture(scope="session")
def explorer_files(tmp_path_factory):
    """The explorer as files, of a ViT-B-shaped (12 layers, 12 heads, 14 x 14 patches) and of a tiny
    model."""
    from vit_demo.ui.explorer import standalone_html

    folder = tmp_path_factory.mktemp("explorer")
    big, small = look(BIG), look(SMALL)
    small.relevance([0, 1])  # somebody has asked: these class maps are in the file
    made = {"big": (big, "en"), "korean": (big, "ko"), "small": (small, "en")}
    for name, (e, language) in made.items():
        folder.joinpath(f"{name}.html").write_text(standalone_html(e, language), encoding="utf-8")
    return folder


@pytest.fixture
def open_page(visit, explorer_files):
    """One of these files, drawn."""

    def open_page(name: str = "big", **options):
        options = {"viewport": {"width": 1280, "height": 900}} | options
        page = visit(explorer_files.joinpath(f"{name}.html").as_uri(), **options)
        page.wait_for_selector(".vitx[data-ready=true][data-wall][data-drawn]")
        next_frames(page)  # what follows the first drawing
        return page

    return open_page
