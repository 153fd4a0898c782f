"""What stands where at every width, and that nothing moves; in Chromium."""

import pytest
from support.models import small_classifier
from support.page import PHONE, WIDE, choose_example, label_names, open_tab

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


@pytest.mark.parametrize("viewport", [WIDE, MIDDLE], ids=["wide", "middle"])
def test_picture_and_answer_stay_in_view(arrive, viewport):
    page = arrive("?tab=trust", viewport=viewport)
    page.locator("#why .why-changes").scroll_into_view_if_needed()
    assert page.evaluate("scrollY") > 400
    for part in ("#picture img", "ol.answer li:first-child"):
        place = box(page, part)
        assert place["y"] >= 0 and place["y"] + place["height"] <= viewport["height"], part
    tabs = box(page, "#tabs")
    assert 0 <= tabs["y"] < 60  # and so do the tabs


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


# A phone


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
