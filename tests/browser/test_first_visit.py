"""Somebody comes without a link: the first map waits neither for the server's answers nor for Gradio; in
Chromium."""

import pytest
from support.page import EXPLORER, PHONE, SECONDS, WIDE, state

DRAWN = "#explorer [data-ready=true][data-drawn]"
EARLY = "#early .vitx[data-ready=true][data-drawn]"


@pytest.fixture
def come(browser, site):
    """A visitor, and the addresses of the data that his browser fetched."""
    contexts, held = [], []

    def come(query: str = "", hold_answers: bool = False, **options):
        context = browser.new_context(**({"viewport": WIDE} | options))
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


# Before Gradio


@pytest.fixture
def before_gradio(browser, site):
    """A visitor to whom Gradio's own scripts come when `page.gradio_comes()` is called; and what his browser
    fetched, and what it complained about."""
    contexts = []

    def before_gradio(query: str = "", script: str = "", hold: str = "", **options):
        context = browser.new_context(**({"viewport": WIDE} | options))
        contexts.append(context)
        page, held = context.new_page(), []
        page.set_default_timeout(SECONDS * 1000)
        page.fetched, page.complaints = [], []
        page.on("request", lambda request: page.fetched.append(request.url))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on(
            "console",
            lambda message: message.type == "error" and page.complaints.append(message.text),
        )
        page.route("**/assets/*.js", lambda route: held.append(route))

        def gradio_comes() -> None:
            page.route("**/assets/*.js", lambda route: route.continue_())
            for route in held:
                route.continue_()

        late: list = []  # `hold`: addresses whose answers wait for `page.let_go()`
        if hold:
            page.route(hold, lambda route: late.append(route))

        def let_go() -> None:
            page.unroute(hold)
            for route in late:
                route.continue_()

        page.gradio_comes, page.let_go = gradio_comes, let_go
        page.add_init_script(script)
        page.goto(site.url + query, wait_until="commit")
        return page

    yield before_gradio
    for context in contexts:
        context.close()


def data_fetched(page) -> int:
    return sum(url.endswith(".bin") for url in page.fetched)


def point_at(page, root: str, across: float, down: float) -> None:
    place = page.locator(f"{root} canvas.vx-picture").bounding_box()
    page.mouse.move(place["x"] + across * place["width"], place["y"] + down * place["height"])


def test_the_first_map_is_there_before_gradio_and_stays_the_same(before_gradio):
    page = before_gradio()
    page.wait_for_selector(EARLY)
    assert page.locator("#explorer").count() == 0
    page.evaluate("window.before = document.querySelector('.vitx').explorer")
    asked = len(page.fetched)
    point_at(page, "#early", 0.3, 0.3)
    page.wait_for_selector("#early .vx-tip:visible")
    page.focus("#early .vx-layer input")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert len(page.fetched) == asked
    page.gradio_comes()
    page.wait_for_selector(DRAWN)
    assert page.evaluate(f"{EXPLORER}.explorer === window.before")
    assert page.locator("#early").count() == 0 and page.locator("[id=explorer]").count() == 1
    assert page.evaluate("document.activeElement.matches('#explorer .vx-layer input')")
    page.wait_for_function("document.documentElement.dataset.look === 'done'")
    page.wait_for_function("location.search.includes('layer=3')")  # of 0 to 5
    assert state(page)["layer"] == 3
    point_at(page, "#explorer", 0.6, 0.6)
    page.wait_for_selector("#explorer .vx-tip:visible")
    assert data_fetched(page) == 1 and page.complaints == []


@pytest.mark.parametrize(
    "options",
    [
        {"viewport": WIDE},
        {"viewport": {"width": 900, "height": 900}},
        {"viewport": {"width": 1100, "height": 900}, "locale": "ko-KR"},
        {"viewport": PHONE, "has_touch": True, "is_mobile": True},
        {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
        {"viewport": WIDE, "color_scheme": "dark", "locale": "ko-KR"},
    ],
    ids=["wide", "middle", "middle-korean", "phone", "phone-dark", "dark-korean"],
)
def test_nothing_moves_when_gradio_comes(before_gradio, options):
    page = before_gradio(**options)
    page.wait_for_selector(EARLY)
    looks = """(around) => {
        const canvas = document.querySelector(".vitx .vx-picture"), place = canvas.getBoundingClientRect(),
            ground = getComputedStyle(document.querySelector(around)).backgroundColor;
        const colours = [".vitx", ".vitx .vx-play"].map((part) => getComputedStyle(document.querySelector(part)).color);
        return [[place.x, place.y, place.width, place.height], [ground, ...colours],
            document.querySelector(".vitx h2").textContent];
    }"""
    place, colours, words = page.evaluate(looks, "#early")
    page.gradio_comes()
    page.wait_for_selector(DRAWN)
    now = page.evaluate(looks, "body")
    assert now[0] == pytest.approx(place, abs=3) and now[1:] == [colours, words]
    page.wait_for_function("document.documentElement.dataset.look === 'done'")
    now = page.evaluate(looks, "body")
    assert now[0] == pytest.approx(place, abs=3) and now[1:] == [colours, words]


def test_what_needs_the_server_waits_for_gradio(before_gradio):
    page = before_gradio()
    page.wait_for_selector(EARLY)
    page.check("#early .vx-choice input[value=class]")
    page.gradio_comes()
    page.wait_for_selector(DRAWN)
    page.wait_for_function(f"{EXPLORER}.explorer.values?.some((value) => value < 0)")
    assert state(page)["label"] is not None and page.complaints == []


def test_an_example_that_is_asked_for_comes_after_gradio(before_gradio):
    page = before_gradio()
    page.wait_for_selector(EARLY)
    page.click("#early .vx-findings a[href*='example=camel']")
    page.gradio_comes()
    page.wait_for_function("location.search.includes('example=camel')")
    page.wait_for_selector("#explorer .vx-findings a[aria-current]")
    assert page.complaints == []


@pytest.mark.parametrize(
    ("query", "script"),
    [
        ("?example=camel", ""),
        ("?layer=2", ""),
        ("?tab=trust", ""),
        ("#inside/5", ""),
        ("", "history.replaceState({ upload: 'somewhere' }, '')"),
    ],
)
def test_a_link_shows_no_other_map_first(before_gradio, query, script):
    page = before_gradio(query, script)
    page.wait_for_selector("gradio-app", state="attached")
    page.wait_for_timeout(700)
    assert page.locator(".vitx").count() == 0 and page.locator("#early").count() == 0
    page.gradio_comes()
    page.wait_for_selector("#explorer .vitx[data-drawn]", state="attached")


GRADIO = "script[src*='assets/index']"
NEVER = """{
    const later = window.setTimeout;
    window.setTimeout = (call, ms, ...rest) => (ms === 1500 ? 0 : later(call, ms, ...rest));
}"""


def test_gradio_starts_after_the_first_map(before_gradio):
    """They would hold each other up."""
    page = before_gradio(script=NEVER, hold="**/*.bin")
    page.wait_for_selector("#early .vitx", state="attached")
    assert page.locator(GRADIO).count() == 0
    page.let_go()
    page.wait_for_selector(EARLY)
    page.wait_for_selector(GRADIO, state="attached")


def test_gradio_does_not_wait_for_a_map_that_does_not_come(before_gradio):
    page = before_gradio(hold="**/*.bin")
    page.wait_for_selector(GRADIO, state="attached")
    assert page.locator(EARLY).count() == 0
    page.let_go()


@pytest.mark.parametrize("part", ["Element.prototype.attachShadow", "window.ResizeObserver"])
def test_without_it_the_page_is_as_ever(before_gradio, part):
    """Something that is needed early fails, once."""
    breaks = f"""{{
        const whole = {part};
        {part} = function () {{ {part} = whole; throw new Error("broken"); }};
    }}"""
    page = before_gradio(script=breaks)
    page.wait_for_timeout(700)
    assert page.locator("#early").count() == 0
    page.gradio_comes()
    page.wait_for_selector(DRAWN)
    page.wait_for_selector("ol.answer li")
    assert page.locator(".script-failed").count() == 0


def test_it_is_said_when_the_rest_of_the_page_does_not_come(before_gradio):
    page = before_gradio("?lang=ko", script="""
        const later = window.setTimeout;
        window.setTimeout = (call, ms, ...rest) => later(call, ms === 20_000 ? 1_000 : ms, ...rest);
    """)  # fmt: skip
    page.wait_for_selector(EARLY)
    assert not page.locator("#early #late").is_visible()
    page.wait_for_selector("#early #late:has-text('새로고침')")
    before = page.locator("#early .well").bounding_box()
    page.gradio_comes()
    page.wait_for_selector(DRAWN)
    assert page.locator("#late").count() == 0
    after = page.locator("#picture .well").bounding_box()
    assert after == pytest.approx(before, abs=1)  # nothing has moved
