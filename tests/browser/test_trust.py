"""Can I trust this map? Everything a visitor may ask, in Chromium, against the library."""

import threading

import numpy as np
import pytest
from support.page import (
    EXPLORER,
    PHONE,
    SECONDS,
    WHY,
    WIDE,
    ask_why,
    assert_map,
    choose_example,
    come_to_the_methods,
    label_indices,
    map_values,
    open_tab,
    serious_axe_violations,
    state,
    until_done,
    until_state,
)

from vit_demo import faithful


@pytest.mark.quick
def test_methods_side_by_side(arrive, site):
    page = arrive()
    e = site.explanation(page)
    come_to_the_methods(page)
    names = [tile.get_attribute("data-method") for tile in page.locator("#why .why-tile").all()]
    assert names == ["shown", *faithful.METHODS]
    assert "least marked" in page.locator("#why .why-strip").inner_text()  # the rule of the colours
    top = label_indices(page)[0]
    for method, heat in faithful.method_maps(e, top).items():
        page.click(f"#why .why-tile[data-method={method}]")
        wanted = {"raw": "attention"}.get(method, method)
        until_state(page, f"s.map === '{wanted}'")
        if method in ("raw", "rollout"):  # computed in the browser, from rounded numbers
            np.testing.assert_allclose(
                map_values(page), heat.flatten(), atol=1e-3 * float(heat.max())
            )
        else:
            assert_map(page, heat)


@pytest.mark.parametrize("remove", ["tokens", "blur"])
def test_scores_and_curves_are_the_librarys(arrive, site, remove):
    page = arrive()
    e = site.explanation(page)
    come_to_the_methods(page)
    page.check(f"#why input[value={remove}] >> nth=0", force=True)
    page.click("#why button:has-text('Check all seven')")
    until_done(page, "trust")
    expected = faithful.trust_all(e, faithful.method_maps(e), remove=remove)
    for method, trust in expected.items():
        tile = page.locator(f"#why .why-tile[data-method={method}]")
        assert float(tile.get_attribute("data-score")) == pytest.approx(trust.score, abs=1e-5)
        assert tile.get_attribute("data-verdict") == trust.verdict
        tile.click()
        page.wait_for_selector(f"#why .why-verdict[data-method={method}]")
        assert page.locator("#why .why-sentence >> nth=0").inner_text() == trust.sentence
    for curve in ("insertion", "deletion", "band", "mean"):
        assert page.locator(f"#why .why-curves path.{curve}").count() == 1


def test_which_method_was_best_and_a_thorough_check(arrive, site):
    page = arrive("?model=many&tab=trust")
    e = site.explanation(page)
    come_to_the_methods(page)
    best = page.locator("#why .why-best")
    assert best.inner_text() == ""
    page.click("#why button:has-text('Check all seven')")
    until_done(page, "trust")
    expected = faithful.check(e).best
    assert best.get_attribute("data-method") == (expected.method or "")
    assert "None wins everywhere" in best.inner_text()
    assert page.locator("#why .why-legend").inner_text().count("10 random orders") == 1
    thorough = page.locator("#why button:has-text('Check thoroughly')")
    begun = thorough.evaluate("""(button) => {
        button.click();
        const job = document.querySelector("#why [data-job=trust]"), cancel = job.querySelector("button");
        return [job.dataset.state, cancel.hidden ? "" : cancel.textContent];
    }""")  # it may be over in a tenth of a second
    assert begun == ["waiting", "Cancel"]
    until_done(page, "trust")
    found = faithful.check(e, thorough=True)
    assert best.get_attribute("data-method") == (found.best.method or "")
    assert "Thorough check" in best.inner_text()
    for remove, trusts in found.ways.items():  # both ways are known now
        page.check(f"#why input[value={remove}] >> nth=0", force=True)
        tile = page.locator("#why .why-tile[data-method=contribution]")
        score = trusts["contribution"].score
        assert float(tile.get_attribute("data-score")) == pytest.approx(score, abs=1e-5)
        assert "30 random orders" in page.locator("#why .why-legend").inner_text()


def test_the_map_in_the_explorer_is_checked_too(arrive, site):
    page = arrive("?map=head_rollout&layer=2&head=1")
    e = site.explanation(page)
    come_to_the_methods(page)
    page.click("#why button:has-text('Check only the map')")
    until_done(page, "trust")
    tile = page.locator("#why .why-tile[data-method=shown]")
    expected = faithful.trust(e, e.head_rollouts(2)[1])
    assert float(tile.get_attribute("data-score")) == pytest.approx(expected.score, abs=1e-5)
    page.evaluate(f"{EXPLORER}.explorer.set({{ layer: 0 }})")  # another map: not checked
    page.wait_for_function(
        "!document.querySelector('#why .why-tile[data-method=shown]').dataset.score"
    )


def test_all_are_checked_after_one_map_of_another_picture(arrive):
    """The chart shows a map that was checked, not a request to check it."""
    page = arrive("?map=head_rollout&head=1&layer=2")
    come_to_the_methods(page)
    page.click("#why button:has-text('Check only the map in Explore')")
    page.wait_for_selector("#why .why-verdict[data-method=shown] svg")
    choose_example(page, "goldfish")
    page.wait_for_selector("#why .why-placeholder")
    page.click("#why button:has-text('Check all')")
    until_done(page, "trust")
    page.wait_for_selector("#why .why-verdict svg")
    assert page.locator("#why .why-placeholder").count() == 0
    method = page.locator("#why .why-verdict").get_attribute("data-method")
    scores = {
        tile.get_attribute("data-method"): float(tile.get_attribute("data-score"))
        for tile in page.locator("#why .why-tile[data-score]").all()
    }
    assert scores[method] == max(scores.values()) and "shown" not in scores


@pytest.fixture
def slow(monkeypatch):
    """Trust that goes on only step by step; `ended` holds how it ended."""

    class Slow:
        turn, ended, costs = threading.Semaphore(2), threading.Event(), 0

    check = faithful.check

    def one_by_one(*args, progress, **options):
        def report(done: int, total: int):
            Slow.turn.acquire(timeout=SECONDS)
            Slow.costs += 1
            return progress(done, total)

        try:
            return check(*args, progress=report, **options)
        except faithful.Cancelled:
            Slow.ended.set()
            raise

    monkeypatch.setattr(faithful, "check", one_by_one)
    return Slow


def test_cancel_stops_the_work(arrive, slow):
    page = arrive()
    come_to_the_methods(page)
    page.click("#why button:has-text('Check all seven')")
    page.wait_for_selector("#why [data-job=trust][data-state=running]:not([data-done^='0/'])")
    assert page.locator("#why button:has-text('Check all seven')").is_disabled()
    page.click("#why [data-job=trust] button")
    page.wait_for_selector("#why [data-job=trust][data-state=cancelled]:has-text('Cancelled')")
    go_on_until_it_ends(slow)
    assert slow.costs <= 6  # what was under way, and the step until Gradio has closed the generator
    for _ in range(10_000):
        slow.turn.release()
    page.click("#why button:has-text('Check all seven')")  # and everything works as before
    until_done(page, "trust")


def test_a_closed_page_stops_the_work(arrive, slow):
    page = arrive()
    come_to_the_methods(page)
    page.click("#why button:has-text('Check all seven')")
    page.wait_for_selector("#why [data-job=trust][data-state=running]:not([data-done^='0/'])")
    page.close()
    go_on_until_it_ends(slow)


def go_on_until_it_ends(slow) -> None:
    """One step after the other; Gradio may hear of the end a little later."""
    for _ in range(300):
        slow.turn.release()
        if slow.ended.wait(0.3):
            return
    pytest.fail("the work went on")


def test_a_failure_is_said(arrive, monkeypatch):
    from vit_demo.ui import questions

    def broken(*_):
        raise RuntimeError("a test breaks it")

    page = arrive()
    come_to_the_methods(page)
    with monkeypatch.context() as patch:
        patch.setitem(questions.QUESTIONS, "trust", broken)  # inside of the work
        page.click("#why button:has-text('Check all seven')")
        page.wait_for_selector("#why [data-job=trust][data-state=failed]:has-text('went wrong')")
        patch.setattr(questions, "work", broken)  # and outside, where only Gradio sees it
        page.click("#why button:has-text('Check all seven')")
        page.wait_for_selector("#why [data-job=trust][data-state=failed]:has-text('did not work')")
    page.click("#why button:has-text('Check all seven')")
    until_done(page, "trust")


def test_the_queue_is_seen(arrive, slow):
    """The second visitor waits, and is told so, until the first one leaves."""
    first, second = arrive(), arrive()
    for page in (first, second):
        come_to_the_methods(page)
        page.click("#why button:has-text('Check all seven')")
        kind = "running" if page is first else "waiting"
        page.wait_for_selector(f"#why [data-job=trust][data-state={kind}]")
    first.click("#why [data-job=trust] button")
    for _ in range(10_000):
        slow.turn.release()
    until_done(second, "trust")


# Random weights


def test_random_weights_show_the_librarys_maps(arrive, site):
    page = arrive()
    e = site.explanation(page)
    come_to_the_methods(page)
    for method, passes in (("contribution", None), ("relevance", None), ("random", False)):
        page.select_option("#why-method", method)
        page.click("#why button:has-text('Make the blocks random')")
        until_done(page, "random")
        page.wait_for_selector("#why .why-sentence[data-passed]")
        expected = faithful.random_weights(e, method)
        rows = page.locator("#why .why-cascade li").all()
        found = [float(row.get_attribute("data-correlation")) for row in rows]
        np.testing.assert_allclose(found, expected.correlations, atol=1e-5)
        passed = page.locator("#why .why-sentence[data-passed]")
        assert passed.get_attribute("data-passed") == str(expected.passed).lower()
        assert passes is None or expected.passed is passes
        assert passed.inner_text().startswith("Passed" if expected.passed else "Failed")
        page.evaluate(f"{WHY}.querySelector('[data-job=random]').dataset.state = 'idle'")


# For every model and everybody


def test_a_model_without_classes(arrive):
    page = arrive("?model=headless&tab=trust")
    page.wait_for_selector("#why [data-state=headless]:has-text('This model has no classes')")
    assert not page.locator("#why .why-body").is_visible()
    open_tab(page, "explore")
    choice = page.locator("#explorer input[value=class]")
    assert choice.is_disabled()
    assert "no classes" in choice.locator("xpath=..").get_attribute("title")


def test_a_picture_that_is_gone(arrive, site):
    page = arrive("?model=many&example=penguin")
    site.server.store.drop(page.evaluate(f"{EXPLORER}.dataset.id"))
    ask_why(page, 2)
    page.wait_for_selector("#explorer .vx-say:has-text('no longer kept on the server')")
    assert state(page)["label"] is None
    open_tab(page, "trust")
    page.click("#why [data-at='1,0']")
    page.wait_for_selector("#why .why-said:has-text('no longer kept on the server')")
    page.click("#why button:has-text('Which head matters')")
    page.wait_for_selector("#why [data-job=wall][data-state=failed]:has-text('no longer kept')")


def test_results_change_their_language_without_a_request(arrive):
    page = arrive("?lang=ko")
    come_to_the_methods(page)
    page.click("#why button:has-text('일곱 가지 모두 검증')")
    until_done(page, "trust")
    sentence = page.locator("#why .why-says .why-sentence").inner_text()
    page.click("#language [data-language=en]")
    page.wait_for_selector("#why button:has-text('Check all seven')")
    english = page.locator("#why .why-says .why-sentence").inner_text()  # nothing is asked again
    assert sentence != english and "chance" in english


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        pytest.param(WIDE, "light", id="wide-light"),
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(WIDE, "dark", id="wide-dark", marks=pytest.mark.slow),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_serious_when_all_is_done(arrive, scheme, viewport):
    page = arrive("?model=many", color_scheme=scheme, viewport=viewport)
    ask_why(page, 3, "less")
    come_to_the_methods(page)
    for kind, text in (("trust", "Check all"), ("random", "Make the"), ("wall", "Which head")):
        page.click(f"#why button:has-text('{text}')")
        until_done(page, kind)
    page.click("#why [data-at='1,0']")
    page.wait_for_selector("#why .why-delta.more, #why .why-delta.less")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert serious_axe_violations(page) == []


@pytest.mark.parametrize("width", [390, 1000, 1200, 1440])
def test_a_tile_holds_what_is_in_it(arrive, width):
    page = arrive("?tab=trust", viewport={"width": width, "height": 900})
    page.locator("#why .why-tiles").scroll_into_view_if_needed()  # they are drawn when seen
    page.wait_for_selector("#why .why-tile[data-method=contribution] canvas")
    outside = page.evaluate("""() => [...document.querySelectorAll("#why .why-tile > *")].filter((part) => {
        const inner = part.getBoundingClientRect(), outer = part.parentElement.getBoundingClientRect();
        return inner.right > outer.right || inner.left < outer.left || part.scrollWidth > part.clientWidth + 1;
    }).map((part) => part.outerHTML.slice(0, 80))""")
    assert outside == []
