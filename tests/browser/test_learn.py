"""The tab "Learn": a slider over the training of the model of digits, in Chromium."""

import math
import re

import pytest
from support.page import PHONE, open_tab, serious_axe_violations

from vit_demo.embedded import example_path

LEARN = "document.querySelector('#learn .learn')"
FIRST = "digit-two"  # the example that the tab starts with


@pytest.fixture(autouse=True)
def history(digits_history):
    return digits_history


def until_digit(page, turn: int) -> None:
    """The digit that was chosen as the `turn`-th is on the page, at all moments."""
    page.wait_for_function(f"+{LEARN}.dataset.turn >= {turn}")


def come(page) -> None:
    open_tab(page, "learn")
    until_digit(page, 1)


def slide(page, at: int) -> None:
    """Move the slider as a visitor does: the browser fires `input`, then `change`."""
    page.locator("#learn input[type=range]").evaluate(
        """(slider, at) => {
            slider.value = at;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            slider.dispatchEvent(new Event("change", { bubbles: true }));
        }""",
        at,
    )
    page.wait_for_function(f"{LEARN}.dataset.at === '{at}'")


def shown_percents(page) -> list[float]:
    texts = page.locator("#learn .learn-percent").all_inner_texts()
    return [float(re.match(r"[\d.]+", text)[0]) for text in texts]


def wall(page) -> list[str]:
    return page.evaluate(
        f"Array.from({LEARN}.querySelectorAll('.learn-wall canvas'), (one) => one.toDataURL())"
    )


def chart_values(page, k: int, highest: float) -> list[float]:
    """What the marks on a chart stand for: their height as a share of that of its grid."""
    return page.evaluate(
        """([k, highest]) => {
            const chart = document.querySelectorAll("#learn .learn-curves svg")[k];
            const lines = Array.from(chart.querySelectorAll(".grid"), (line) =>
                +line.getAttribute("d").match(/ ([\\d.]+)H/)[1]);
            const [top, bottom] = [Math.min(...lines), Math.max(...lines)];
            const marks = chart.querySelectorAll("circle:not([visibility=hidden])");
            return Array.from(marks, (mark) =>
                highest * (bottom - mark.getAttribute("cy")) / (bottom - top));
        }""",
        [k, highest],
    )


def draw_a_one(page) -> None:
    page.locator("#learn .learn-pad").scroll_into_view_if_needed()
    box = page.locator("#learn .learn-pad").bounding_box()
    x, top, bottom = box["x"] + box["width"] / 2, box["y"] + 40, box["y"] + box["height"] - 40
    page.mouse.move(x, top)
    page.mouse.down()
    page.mouse.move(x, bottom, steps=8)
    page.mouse.up()


@pytest.mark.quick
def test_every_moment_shows_the_numbers_of_the_library_and_asks_nobody(arrive, history):
    page = arrive()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    come(page)
    assert sum("component_server" in url for url in asked) == 2  # the training, and one digit
    asked.clear()
    expected, walls, places = history.explain(example_path(FIRST)), set(), set()
    losses = [m.test_loss for m in history.moments] + [m.train_loss or 0 for m in history.moments]
    for at, (moment, one) in enumerate(zip(history.moments, expected, strict=True)):
        slide(page, at)
        shares = [100 * share for share in one.logits.softmax(dim=-1).tolist()]
        assert shown_percents(page) == pytest.approx(shares, abs=0.051)
        assert page.locator("#learn .learn-read b").inner_text() == one.top(1)[0].label
        cells = page.locator("#learn .learn-confusion tbody td").all_inner_texts()
        assert [int(cell or 0) for cell in cells] == [n for row in moment.confusion for n in row]
        right = sum(moment.confusion[k][k] for k in range(10))
        counts = f"{right} right, {history.test_pictures - right} wrong."
        assert page.get_by_text(counts, exact=True).count() == 1
        shown = page.locator("#learn .learn-moment").inner_text()
        assert f"{100 * moment.accuracy:.1f} % of the test digits right" in shown
        assert chart_values(page, 0, 100) == pytest.approx([100 * moment.accuracy], abs=0.01)
        known = [loss for loss in (moment.train_loss, moment.test_loss) if loss is not None]
        assert chart_values(page, 1, math.ceil(max(losses))) == pytest.approx(known, abs=0.001)
        walls.add("".join(wall(page)))
        places.add(page.evaluate(f"{LEARN}.querySelector('.learn-positions').toDataURL()"))
    assert len(places) == len(history.moments)
    assert len(walls) == len(history.moments)  # the wall of heads is another one each time
    assert len(wall(page)) == history.moments[0].classifier.config.depth * expected[0].heads
    last = f"Step {history.steps:,} of {history.steps:,}"
    assert page.locator("#learn .learn-moment strong").inner_text() == last
    page.check("#learn input[value=attention]", force=True)
    assert "".join(wall(page)) not in walls
    assert asked == []


def test_a_hidden_tab_asks_nothing(arrive):
    page = arrive("?tab=trust")
    assert page.evaluate(f"{LEARN}.dataset.state ?? null") is None
    assert page.locator("#learn .learn-pad").count() == 0


def test_play_runs_through_the_training_and_stops(arrive, history):
    page = arrive(f"#learn/{len(history.moments) - 1}")
    until_digit(page, 1)
    page.click("#learn .learn-play")
    page.wait_for_function(f"{LEARN}.dataset.at === '{len(history.moments) - 1}'")
    page.wait_for_function(f"{LEARN}.dataset.playing === 'false'")
    page.click("#learn .learn-play")  # from the start again
    page.wait_for_function(f"{LEARN}.dataset.at === '1'")
    page.click("#learn .learn-play")
    assert page.evaluate(f"{LEARN}.dataset.playing") == "false"
    assert page.locator("#learn .learn-play").inner_text() == "Play"


def test_a_drawing_is_read_at_every_moment_in_one_request(arrive, history):
    page = arrive("#learn")
    until_digit(page, 1)
    slide(page, len(history.moments) - 1)
    page.click("#learn .learn-erase")
    assert "Draw a digit" in page.locator("#learn .learn-read").inner_text()
    assert wall(page) == [] and page.locator("#learn [aria-pressed=true]").count() == 0
    asked = []
    page.on("request", lambda r: asked.append(r.url) if "component_server" in r.url else None)
    draw_a_one(page)
    page.wait_for_function(f"{LEARN}.querySelector('.learn-read b')?.textContent === '1'")
    assert len(asked) == 1 and len(wall(page)) > 0
    page.click("#language [data-language=ko]")  # the drawing stays
    page.wait_for_selector("#learn .learn-play:has-text('재생')")
    page.wait_for_function(f"{LEARN}.querySelector('.learn-read b')?.textContent === '1'")
    ink = "(c) => c.getContext('2d').getImageData(140, 140, 1, 1).data[0]"
    page.wait_for_function(f"({ink})({LEARN}.querySelector('.learn-pad')) < 128")


def test_of_two_digits_the_last_one_counts(arrive, history):
    page = arrive("#learn")
    until_digit(page, 1)
    slide(page, len(history.moments) - 1)
    page.evaluate(
        f"""for (const name of ["digit-three", "digit-five", "digit-seven"])
            {LEARN}.querySelector(`[data-digit=${{name}}]`).click()"""
    )
    until_digit(page, 4)
    assert page.locator("#learn .learn-read b").inner_text() == "7"
    chosen = page.locator("#learn [data-digit][aria-pressed=true]")
    assert chosen.count() == 1 and chosen.get_attribute("data-digit") == "digit-seven"


def test_keys_move_through_time(arrive):
    page = arrive("#learn")
    until_digit(page, 1)
    page.focus("#learn input[type=range]")
    for key, at in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("Home", 0)):
        page.keyboard.press(key)
        page.wait_for_function(f"{LEARN}.dataset.at === '{at}'")
    spoken = page.locator("#learn input[type=range]").get_attribute("aria-valuetext")
    assert spoken.startswith("Before the first step")


def test_a_link_opens_its_moment_and_digit(arrive):
    page = arrive("#learn/4/digit-five", permissions=["clipboard-read", "clipboard-write"])
    until_digit(page, 1)
    assert page.evaluate(f"{LEARN}.dataset.at") == "3"
    slide(page, 5)
    page.click("#link button")
    page.wait_for_selector("#link .note:has-text('Link copied')")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.endswith("#learn/6/digit-five")
    open_tab(page, "trust")
    page.wait_for_function("!location.hash && location.search.includes('tab=trust')")
    for strange in ("#learn/9999/koala", "#learn/-2/x", "#learn/NaN"):
        page = arrive(strange)
        until_digit(page, 1)
        chosen = page.locator("#learn [data-digit][aria-pressed=true]")
        assert chosen.get_attribute("data-digit") == FIRST


@pytest.mark.parametrize("model", ["headless", "vit-mnist"])
def test_it_does_not_matter_which_model_is_chosen(arrive, model, history):
    page = arrive(f"?model={model}#learn/{len(history.moments)}")
    until_digit(page, 1)
    assert page.locator("#learn .learn-read b").inner_text() == "2"


def test_on_a_phone_the_slider_is_in_sight_beside_everything(arrive):
    page = arrive("#learn", viewport=PHONE)
    until_digit(page, 1)
    for part in (".learn-answer ol", ".learn-curves", ".learn-wall", ".learn-confusion"):
        page.locator(f"#learn {part}").evaluate("(node) => node.scrollIntoView({block: 'center'})")
        page.wait_for_function(
            """() => {
                const box = document.querySelector("#learn .learn-time").getBoundingClientRect();
                return box.top >= -1 && box.bottom <= innerHeight + 1;
            }"""
        )


def test_the_code_is_shown_with_its_lines(arrive):
    page = arrive("#learn")
    until_digit(page, 1)
    page.click("#learn [data-part=epoch] summary")
    lines = page.locator("#learn [data-part=epoch] .learn-line")
    assert lines.first.inner_text().startswith("def train_epoch(")
    first = int(lines.first.get_attribute("data-line"))
    assert int(lines.last.get_attribute("data-line")) == first + lines.count() - 1
    assert "--snapshots" in page.locator("#learn .learn-code pre").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [None, PHONE])
def test_nobody_is_kept_out(arrive, scheme, viewport):
    options = {"viewport": viewport} if viewport else {}
    page = arrive(f"?__theme={scheme}#learn/6", color_scheme=scheme, **options)
    until_digit(page, 1)
    page.click("#learn [data-part=loop] summary")
    assert serious_axe_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
