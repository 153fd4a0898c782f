"""What stands where at every width, and that nothing moves; in Chromium."""

from itertools import pairwise

import pytest
from support.models import noise, small_classifier
from support.page import (
    DEIT,
    PHONE,
    WIDE,
    after_new_result,
    choose_example,
    come_to_the_methods,
    label_names,
    open_tab,
    upload,
)

MIDDLE = {"width": 1000, "height": 900}
HAND = {"viewport": PHONE, "has_touch": True, "is_mobile": True}

SHIFT = """new Promise((done) => {
    let sum = 0;
    const count = (list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
    };
    new PerformanceObserver(count).observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => setTimeout(() => done(sum), 100));
})"""


def box(page, selector: str) -> dict:
    return page.locator(selector).first.bounding_box()


# Nothing moves


@pytest.mark.parametrize(
    "options",
    [{"viewport": WIDE}, {"viewport": MIDDLE}, HAND, {"viewport": WIDE, "locale": "ko-KR"}],
    ids=["wide", "middle", "phone", "korean"],
)
def test_loading_moves_nothing(arrive, options):
    page = arrive(**options)
    page.wait_for_function("document.documentElement.dataset.look === 'done'")
    assert page.evaluate(SHIFT) < 0.1


def test_another_picture_moves_nothing(arrive):
    page = arrive()
    parts = ("#picture", "#strip", "#fit", "#answer", "#tabs", "#explorer .vx-picture", "#what")
    before = [box(page, part)["y"] for part in parts]
    choose_example(page, "camel")
    assert [box(page, part)["y"] for part in parts] == pytest.approx(before, abs=2)


# Picture and answer stay in view


LAPTOPS = [(1440, 900), (1366, 650), (1280, 720), (1000, 900), (1000, 700), (900, 800), (768, 1024)]


def assert_in_view(page, *parts: str) -> None:
    for part in parts:
        place = box(page, part)
        bottom = place["y"] + place["height"]
        assert place["y"] >= 0 and bottom <= page.viewport_size["height"], (part, place)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_picture_and_answer_stay_in_view(arrive, language):
    page = arrive(f"?tab=trust&lang={language}", viewport=WIDE)
    parts = ["#picture img", *(f"ol.answer li:nth-child({row})" for row in (1, 2, 3))]
    assert page.evaluate("scrollY") == 0
    page.wait_for_selector("#picture img")
    for width, height in LAPTOPS:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scrollTo(0, 0)")
        assert_in_view(page, *parts, "ol.answer li:first-child .bar")
        assert box(page, "#picture img")["height"] >= 115
        page.locator("#why .why-changes").scroll_into_view_if_needed()
        assert page.evaluate("scrollY") > 400
        assert_in_view(page, *parts)
        tabs = box(page, "#tabs")
        assert 0 <= tabs["y"] < 60, (width, height)  # and so do the tabs


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_line_about_the_model_is_where_people_look(arrive, language):
    page = arrive(f"?lang={language}", viewport=WIDE)
    page.wait_for_selector("#knows .offer button:not(:empty)")
    for width, height in (*LAPTOPS, (390, 844), (375, 667)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scrollTo(0, 0)")
        assert_in_view(page, "#knows .line", "#knows .offer button")
        line = box(page, "#knows")
        assert line["y"] + line["height"] <= box(page, "#left")["y"], (width, height)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_pad_and_picture_of_the_digits_model(arrive, language):
    page = arrive(f"?model=vit-mnist&lang={language}", viewport=WIDE)
    page.wait_for_selector("#picture img")
    for width in (1440, 1000, 390):
        page.set_viewport_size({"width": width, "height": 900})
        about, left = box(page, "#picture .about"), box(page, "#left")
        assert about["width"] >= 90 and about["height"] <= 110  # no column of single words
        for part in ("#pad", "#picture figure", "#picture .remove", "#picture .ways", "#strip"):
            place = box(page, part)
            assert place["x"] >= left["x"], (part, width)
            assert place["x"] + place["width"] <= left["x"] + left["width"], (part, width)


def test_what_is_too_tall_scrolls_by_itself(arrive):
    page = arrive(viewport={"width": 1280, "height": 560})
    last = page.locator("ol.answer li:last-child")
    assert last.bounding_box()["y"] > 560
    page.hover("#answer")
    page.mouse.wheel(0, 2000)
    page.wait_for_function(
        "document.querySelector('ol.answer li:last-child').getBoundingClientRect().bottom <= 560"
    )
    assert box(page, "#tabs")["y"] < 100  # the rest of the page has hardly moved


def test_a_tab_opens_at_its_top(arrive):
    page = arrive("?tab=trust")
    page.locator("#why .why-changes").scroll_into_view_if_needed()
    open_tab(page, "explore")
    page.wait_for_function("document.querySelector('#right').getBoundingClientRect().top >= 0")
    assert 0 <= box(page, "#panel-explore")["y"] < 200


@pytest.mark.parametrize("width", [900, 1000, 1100])
def test_the_middle_width_has_no_blank_screen(arrive, width):
    page = arrive(viewport={"width": width, "height": 900})
    left, right = box(page, "#left"), box(page, "#right")
    assert left["x"] + left["width"] < right["x"]  # side by side
    assert left["y"] == pytest.approx(right["y"], abs=2) and right["y"] < 160
    assert right["width"] > 0.6 * width
    picture = box(page, "#explorer .vx-picture")
    assert picture["y"] < 400 and picture["width"] > 300
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("viewport", "size"), [(WIDE, (300, 900)), (MIDDLE, (900, 300)), (PHONE, (300, 900))]
)
def test_a_native_picture_of_any_shape_fits_in_every_tab(arrive, tmp_path, viewport, size):
    """Compare is in test_compare.py."""
    noise().resize(size).save(tmp_path / "mine.png")
    page = arrive("?fit=native", viewport=viewport)
    after_new_result(page, lambda: upload(page, tmp_path / "mine.png"))
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(fits)
    come_to_the_methods(page)
    page.locator("#why .why-tiles").scroll_into_view_if_needed()  # they are drawn when seen
    page.wait_for_selector("#why .why-tile[data-method=contribution] canvas")
    assert page.evaluate(fits)
    open_tab(page, "inside")
    ready = "document.querySelector('#inside .ins')?.dataset.state === 'ready'"
    for step in range(1, 11):
        page.click(f"#inside [data-step='{step}']")
        page.wait_for_function(f"location.hash === '#inside/{step}' && {ready}")
        assert page.evaluate(fits), step


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_header_is_one_row(arrive, language):
    page = arrive(f"?lang={language}", viewport=WIDE)
    for width in (768, 900, 1000, 1180, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        parts = [box(page, part) for part in ("#title", "#model", "#language", "#link")]
        middles = [part["y"] + part["height"] / 2 for part in parts]
        assert middles == pytest.approx([middles[0]] * 4, abs=3), width
        for one, next_one in pairwise(parts):
            assert one["x"] + one["width"] <= next_one["x"], width
        assert box(page, "#left")["y"] < 165, width  # below them, the line about the model


# A phone


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("width", [390, 360])
def test_a_phone_shows_every_tab(arrive, width, language):
    page = arrive(f"?lang={language}", **HAND | {"viewport": {"width": width, "height": 800}})
    right = box(page, "#right")
    for tab in page.locator("#tabs [role=tab]").all():
        place = tab.bounding_box()
        assert place["x"] >= right["x"]
        assert place["x"] + place["width"] <= right["x"] + right["width"]
        assert place["width"] >= 40  # for a thumb
    assert page.locator("#tabs [role=tab]").count() == 5


@pytest.mark.parametrize("size", [(390, 844), (360, 740), (375, 667)])
def test_a_phone_shows_picture_and_answer_first(arrive, size):
    viewport = {"width": size[0], "height": size[1]}
    page = arrive(viewport=viewport, has_touch=True, is_mobile=True)
    first = "ol.answer li:first-child"
    assert_in_view(page, "#picture img", f"{first} .label", f"{first} .bar")


TELL = """{
    const Real = IntersectionObserver;
    window.IntersectionObserver = class extends Real {
        constructor(told, options) { super(told, options); this.told = told; }
        observe(target) {
            super.observe(target);
            if (target.id === "picture") window.tell = this.told;
        }
    };
}"""


def test_the_bar_on_a_slow_phone(visit, site):
    """There the browser tells of several crossings at once: the last one counts."""
    page = visit(site.url + "gradio_api/app_id", **HAND)
    page.add_init_script(TELL)
    page.goto(site.url)
    page.wait_for_function("window.tell && document.documentElement.dataset.look === 'done'")
    page.wait_for_selector("#explorer [data-ready=true][data-drawn]")
    page.evaluate("tell([{ isIntersecting: true }, { isIntersecting: false }])")
    assert page.locator("#bar button").is_visible()
    page.evaluate("tell([{ isIntersecting: false }, { isIntersecting: true }])")
    assert not page.locator("#bar button").is_visible()


def test_the_bar_on_a_phone(arrive):
    page = arrive(**HAND)
    assert not page.locator("#bar button").is_visible()  # the picture itself is there
    page.locator("#explorer .vx-picture").scroll_into_view_if_needed()
    page.wait_for_selector("#bar button")
    place = box(page, "#bar")
    assert place["y"] == 0 and place["height"] < 70
    assert page.locator("#bar .label").inner_text() == label_names(page)[0]
    share = page.locator("ol.answer li:first-child .percent").inner_text()
    assert page.locator("#bar .percent").inner_text() == share
    page.wait_for_function("document.querySelector('#bar img').naturalWidth > 0")
    page.tap("#bar button")
    page.wait_for_selector("#bar button", state="hidden")
    page.wait_for_function("scrollY === 0")


def test_there_is_no_bar_where_the_left_side_stays(arrive):
    page = arrive()
    page.locator("#about").scroll_into_view_if_needed()
    assert not page.locator("#bar button").is_visible()


def test_a_thumb_scrolls_the_page(arrive):
    page = arrive("?model=many", **HAND)
    for tab, part in (
        ("explore", "#explorer .vx-picture"),
        ("explore", "#explorer .vx-tiles"),
        ("trust", "#why .why-paint"),
    ):
        open_tab(page, tab)
        page.locator(part).scroll_into_view_if_needed()
        page.evaluate(f"document.querySelector('{part}').scrollIntoView({{ block: 'center' }})")
        before, place = page.evaluate("scrollY"), box(page, part)
        swipe(page, place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
        page.wait_for_function("(before) => scrollY < before - 40", arg=before)
    assert "patches painted over" not in page.locator("#why-painted").inner_text()


@pytest.mark.parametrize(
    ("tab", "ready", "part"),
    [
        ("inside", "#inside [data-state=ready]", "#inside .ins-stage canvas"),
        ("compare", "#compare [data-state=ready]", "#compare .cmp-side canvas"),
        (
            "learn",
            "#learn [data-state=ready]:not([aria-busy])",
            "#learn canvas[title]",
        ),
    ],
)
def test_a_thumb_scrolls_the_page_in_every_tab(arrive, tab, ready, part):
    """With a thumb on a picture."""
    page = arrive(f"?tab={tab}", **HAND)
    page.wait_for_selector(ready)
    page.locator(part).first.evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    before, place = page.evaluate("scrollY"), box(page, part)
    swipe(page, place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.wait_for_function("(before) => scrollY < before - 40", arg=before)


def test_a_tap_on_the_wall_brings_the_picture_below_the_bar(arrive):
    page = arrive(**HAND | {"viewport": {"width": 390, "height": 844}})
    page.locator("#explorer .vx-tiles").evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    page.wait_for_selector("#bar button")
    assert box(page, "#explorer .vx-picture")["y"] < 0
    wall = box(page, "#explorer .vx-tiles")
    page.touchscreen.tap(wall["x"] + wall["width"] / 2, wall["y"] + wall["height"] / 2)
    page.wait_for_function("""() => {
        const place = (part) => document.querySelector(part).getBoundingClientRect();
        const picture = place("#explorer .vx-picture"), above = ["#bar button", "#tabs"].map(place);
        return above.every(({ bottom }) => picture.top >= bottom - 1) && picture.bottom <= innerHeight;
    }""")


def test_a_finger_paints(arrive):
    page = arrive("?model=many&tab=trust", **HAND)
    page.wait_for_selector("#why [data-state=ready]")
    page.evaluate("document.querySelector('#why .why-paint').scrollIntoView({ block: 'center' })")
    place = box(page, "#why .why-paint")
    page.touchscreen.tap(place["x"] + 10, place["y"] + 10)
    page.wait_for_selector("#why-painted:has-text('1 of 16 patches painted over')")
    across = [place["x"] + place["width"] * share for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
    move(page, [(x, place["y"] + 0.6 * place["height"]) for x in across])
    page.wait_for_selector("#why-painted:has-text('5 of 16 patches painted over')")


def swipe(page, x: float, y: float) -> None:
    """A thumb draws the page down."""
    move(page, [(x, y + 14 * step) for step in range(11)])


def move(page, places: list[tuple[float, float]]) -> None:
    """One finger, from place to place."""
    finger = page.context.new_cdp_session(page)
    for kind, points in [
        ("touchStart", places[:1]),
        *(("touchMove", [place]) for place in places[1:]),
        ("touchEnd", []),
    ]:
        points = [{"x": x, "y": y} for x, y in points]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


# Labels


def test_long_labels_can_be_read(arrive, site):
    classifier = small_classifier(num_classes=12)
    long = "black-and-gold garden spider, Argiope aurantia, the writing spider of the gardens"
    classifier.labels[:] = [f"{long} {k}" for k in range(12)]
    site.server.models.kept["long"] = classifier
    for options in ({"viewport": WIDE}, {"viewport": MIDDLE}, HAND):
        page = arrive("?model=long", **options)
        cut = page.evaluate("""() => [...document.querySelectorAll("ol.answer .label")].map((label) => {
            const words = document.createRange();
            words.selectNodeContents(label.firstChild);
            const [text, room] = [words, label].map((one) => one.getBoundingClientRect());
            return Math.max(text.bottom - room.bottom, text.right - room.right);
        })""")
        assert len(cut) == 10 and max(cut) <= 2  # the name itself, all of it
        row = page.locator("ol.answer li:nth-child(2) .ask")
        assert long in row.get_attribute("title")
        row.click()
        page.wait_for_selector("ol.answer li:nth-child(2) .ask[aria-pressed=true]")
        label = page.locator("ol.answer li:nth-child(2) .label")
        assert label.evaluate("(node) => node.scrollHeight - node.clientHeight") <= 1
    del site.server.models.kept["long"]


# A line is wherever a word's letters stand: a broken word has two.
BROKEN_WORDS = """() => [...document.querySelectorAll("ol.answer .label")].flatMap((label) => {
    const broken = [], texts = document.createTreeWalker(label, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        for (const { 0: word, index } of texts.currentNode.data.matchAll(/[^\\s-]+/g)) {
            const range = document.createRange();
            range.setStart(texts.currentNode, index);
            range.setEnd(texts.currentNode, index + word.length);
            if (new Set([...range.getClientRects()].map(({ y }) => y)).size > 1) broken.push(word);
        }
    }
    return broken;
})"""


@pytest.mark.parametrize("size", [(1000, 700), (1366, 650)], ids=["middle", "wide"])
def test_labels_of_imagenet_break_between_words(arrive, site, deit_tiny, size):
    page = arrive(f"?model={DEIT}", viewport={"width": size[0], "height": size[1]})
    assert "," in page.locator("ol.answer li:first-child .ask").get_attribute("title")
    for example in ("shepherd", "koala", "goldfish"):
        if example != "shepherd":
            choose_example(page, example)
        assert page.evaluate(BROKEN_WORDS) == []
        first = page.locator("ol.answer li:first-child .label")
        height = first.evaluate("(label) => label.clientHeight")
        assert height <= 72  # two lines, and one of synonyms
        rows = page.locator("ol.answer li .ask").all()
        titles = [row.get_attribute("title").rpartition(":")[0] for row in rows]
        assert titles == [p.label for p in site.explanation(page).top(10)]  # all of each
        assert_in_view(
            page, "#picture img", "ol.answer li:first-child", "ol.answer li:nth-child(3)"
        )
