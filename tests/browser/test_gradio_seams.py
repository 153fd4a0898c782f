"""What static/gradio.js expects of Gradio, function by function: an update of Gradio breaks here first."""

import asyncio
import threading

import gradio as gr
import pytest
from starlette.middleware import Middleware
from support.models import small_classifier
from support.page import SECONDS, WIDE, open_tab

from vit_demo.ui import page as page_module
from vit_demo.ui import questions
from vit_demo.ui.modules import script_route
from vit_demo.ui.static import address
from vit_demo.ui.store import Server
from vit_demo.ui.visitors import Visitors, limit_queue

SEAMS = f"import(new URL('{address()}', document.baseURI)).then((all) => all.modules['gradio.js'])"


def launch(demo, **options) -> str:
    _, url, _ = demo.launch(server_name="127.0.0.1", prevent_thread_lock=True, **options)
    return url


@pytest.fixture
def arrive(visit):
    def arrive(url: str, ready: str, **options):
        page = visit(url, **({"viewport": WIDE} | options))
        page.set_default_timeout(SECONDS * 1000)
        page.wait_for_selector(ready)
        page.evaluate(f"{SEAMS}.then((seams) => {{ window.seams = seams; }})")
        return page

    return arrive


# What a component's script is given


@pytest.fixture(scope="module")
def component():
    """A page with one component, whose script keeps what it was given."""

    def echo(request: dict) -> dict:
        return {"heard": request}

    def unwilling(request: dict) -> dict:
        return {"error": "not today"}

    def broken(request: dict) -> dict:
        raise RuntimeError("nobody sees this")

    keep = "window.given = { element, props, trigger, watch, server };"
    with gr.Blocks() as demo:
        part = gr.HTML(
            {"a": 1},
            html_template="<p>${JSON.stringify(value)}</p>",
            js_on_load=keep,
            server_functions=[echo, unwilling, broken],
            elem_id="part",
        )
        heard = gr.Textbox(elem_id="heard")
        change = gr.Button("change", elem_id="change")
        part.input(str, part, heard)
        change.click(lambda: {"b": 2}, None, part)
    yield launch(demo, quiet=True, run_history=False, app_kwargs={"routes": [script_route()]})
    demo.close(verbose=False)


@pytest.fixture
def given(arrive, component):
    page = arrive(component, "#part p")
    page.wait_for_function("window.given")
    return page


def test_component_value_is_an_object_or_its_json(given):
    assert given.evaluate("seams.componentValue(given.props)") == {"a": 1}
    assert given.evaluate("""seams.componentValue({ value: '{"a": 1}' })""") == {"a": 1}
    assert given.evaluate("seams.componentValue({ value: null })") is None
    assert given.evaluate("seams.componentValue({ value: '' })") == ""


def test_sent_value_reaches_the_server(given):
    given.evaluate("seams.sendValue(given, 'from the browser')")
    given.wait_for_function(
        "document.querySelector('#heard textarea').value === 'from the browser'"
    )


def test_after_render_comes_when_the_new_html_is_there(given):
    given.evaluate(
        "seams.afterRender(given.watch, () => { window.seen = given.element.textContent.trim(); })"
    )
    given.click("#change")
    given.wait_for_function("""window.seen === '{"b":2}'""")


def test_answer_of_a_server_function(given):
    assert given.evaluate("seams.answerOf(given.server.echo, { x: 3 }, '')") == {"heard": {"x": 3}}
    failure = "({ name }) => seams.answerOf(given.server[name], {}, '').catch((e) => e.message)"
    assert given.evaluate(failure, {"name": "unwilling"}) == "not today"


def test_answer_of_a_server_function_that_fails(given, browser):
    """Gradio answers with an error of HTTP, and the script gets nothing that says so."""
    page = browser.new_page()
    page.goto(given.url)
    page.wait_for_function("window.given")
    call = f"{SEAMS}.then((s) => s.answerOf(given.server.broken, {{}}, 'silence'))"
    assert page.evaluate(f"{call}.catch((e) => e.message)") == "silence"
    page.close()


def test_when_mounted_waits_for_a_component(given):
    given.evaluate("seams.whenMounted('late', (element) => { window.late = element.id; })")
    assert given.evaluate("window.late ?? null") is None
    given.evaluate(
        "document.body.append(Object.assign(document.createElement('i'), { id: 'late' }))"
    )
    given.wait_for_function("window.late === 'late'")


def test_gradio_speaks_the_language_of_the_page(given):
    """Its footer is in English, in Korean, and in English again."""
    footer = "document.querySelector('footer').textContent"
    english, korean = given.evaluate(footer), f"/[가-힣]/.test({footer})"
    assert not given.evaluate(korean)
    given.evaluate("seams.speakGradio('ko')")
    given.wait_for_function(korean)
    given.evaluate("seams.speakGradio('en')")
    given.wait_for_function(f"(english) => {footer} === english", arg=english)


@pytest.mark.parametrize("query", ["", "?__theme=dark", "?__theme=light", "?__theme=system"])
@pytest.mark.parametrize("prefers", ["dark", "light"])
def test_it_is_known_whether_gradio_will_be_dark(arrive, component, query, prefers):
    page = arrive(component + query, "#part p", color_scheme=prefers)
    assert page.evaluate("seams.isDark() === document.body.classList.contains('dark')")


# The inner structure of the page


@pytest.fixture(scope="module")
def site():
    server = Server(device="cpu")
    server.models.kept["small"] = small_classifier()
    demo = page_module.build(server, "small")
    yield launch(demo, **page_module.launch_options())
    demo.close(verbose=False)
    server.close()


@pytest.fixture
def visitor(arrive, site):
    def visitor(query: str = "", **options):
        page = arrive(site + query, "#explorer [data-ready=true][data-drawn]", **options)
        page.wait_for_selector("#why [data-state=ready]", state="attached")
        return page

    return visitor


def test_a_file_is_sent_and_too_much_is_refused(visitor, browser):
    page = visitor()
    send = "(size) => seams.uploadFile(new File([new Uint8Array(size)], 'a b.png'))"
    assert page.evaluate(send, 100).endswith("/a b.png")
    other = browser.new_page()  # whose console need not be clean
    other.goto(page.url)
    failure = f"{SEAMS}.then((seams) => ({send})(23 * 2 ** 20)).catch((error) => error.message)"
    assert "at most 20 MB" in other.evaluate(failure)
    other.close()


def test_toasts_are_mirrored(visitor):
    page = visitor()
    page.evaluate(
        "window.heard = []; seams.mirrorToasts((words, lost) => window.heard.push([words, lost]))"
    )
    page.evaluate("""async () => {
        const toast = document.createElement("div");
        toast.dataset.testid = "toast-text";
        for (const words of ["Queue is full.", "Connection to the server was lost."]) {
            toast.textContent = words;
            document.body.append(toast);
            await new Promise(requestAnimationFrame);
        }
        toast.remove();
    }""")
    page.wait_for_function("window.heard.length === 3")
    expected = [
        ["Queue is full.", False],
        ["Connection to the server was lost.", True],
        ["", False],
    ]
    assert page.evaluate("window.heard") == expected


def test_queue_is_mirrored(visitor, monkeypatch):
    """One works, one waits: Gradio tells the second his place, and that the work failed."""
    working, finish = threading.Event(), threading.Event()

    def slow(explanation, request, progress) -> dict:
        working.set()
        finish.wait(SECONDS)
        return {}

    monkeypatch.setitem(questions.QUESTIONS, "wall", slow)
    first, second = visitor(), visitor()
    second.evaluate(
        "window.news = []; seams.mirrorProgress('working', (news) => window.news.push(news))"
    )
    for page in (first, second):
        open_tab(page, "trust")
    first.click("#why button:has-text('Which head matters')")
    assert working.wait(SECONDS)
    second.click("#why button:has-text('Which head matters')")
    second.wait_for_function("window.news.some(({ place }) => /^[1-9]\\/[1-9]$/.test(place))")
    assert not second.evaluate("window.news.some(({ failed }) => failed)")
    assert second.evaluate("window.news.at(-1).pending")

    def broken(*_):
        raise RuntimeError("outside of the work, where only Gradio sees it")
        yield

    monkeypatch.setattr(questions, "work", broken)
    finish.set()
    second.wait_for_function("window.news.some(({ failed }) => failed)")


class SlowToClose:
    """ASGI middleware: that a connection is closed, the browser hears a little late."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        async def late(message) -> None:
            if b"close_stream" in message.get("body", b""):
                await asyncio.sleep(0.08)
            await send(message)

        await self.app(scope, receive, late)


def test_who_asks_again_while_the_connection_is_closed_gets_an_answer(visit):
    """Gradio's client takes a connection that is about to be closed for open, and would wait for ever."""
    with gr.Blocks() as demo:
        number = gr.Textbox("0", elem_id="number")
        gr.Button("more", elem_id="more").click(lambda n: str(int(n) + 1), number, number)
    demo.queue(max_size=100)
    limit_queue(demo._queue)
    url = launch(
        demo,
        quiet=True,
        run_history=False,
        app_kwargs={"middleware": [Middleware(SlowToClose), Middleware(Visitors)]},
    )
    page = visit(url)
    page.wait_for_selector("#more")
    page.evaluate("""() => {
        const number = document.querySelector("#number textarea"), more = document.querySelector("#more");
        let last = "0";
        const again = () => {
            if (number.value !== last && +number.value < 6) more.click();
            last = number.value;
            requestAnimationFrame(again);
        };
        again();
        more.click();
    }""")
    page.wait_for_function("document.querySelector('#number textarea').value === '6'")
    demo.close(verbose=False)


def test_a_script_that_does_not_load_is_said_once(site, browser):
    page = browser.new_page()
    page.route("**/static/*.js", lambda route: route.abort())
    page.goto(site)
    sentence = ".script-failed:has-text('did not load; reload the page'):visible"
    page.wait_for_selector(sentence)
    page.wait_for_selector("ol.answer li")  # what needs no script is there
    assert page.locator(sentence).count() == 1
    page.close()


def test_a_component_that_fails_says_so_and_the_others_work(site, browser):
    page = browser.new_page()
    page.add_init_script("window.IntersectionObserver = class { observe() { throw new Error(); } }")
    page.goto(site)
    page.wait_for_selector("#explorer [data-ready=true][data-drawn]")
    page.wait_for_selector(".script-failed", state="attached")
    page.close()


def test_theme_is_a_class_of_the_body(visitor):
    page = visitor("?__theme=dark")
    assert page.evaluate("document.body.classList.contains('dark')")
    page.evaluate("window.calls = 0; seams.onTheme(() => { window.calls += 1; })")
    page.evaluate("document.body.classList.remove('dark')")
    page.wait_for_function("window.calls === 1")
