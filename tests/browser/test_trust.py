"""Which class, and can I trust this map? Everything a visitor may ask, in Chromium, against the library."""

import base64
import io
import json
import threading

import numpy as np
import pytest
from PIL import Image
from support.models import small_classifier
from support.page import EXPLORER, PHONE, SECONDS, WIDE, state
from support.shared import missing

from vit_demo import faithful, knockout

MODEL = "vit-cifar10"
WHY = "document.querySelector('#why .why')"


class Site:
    """The page, served in this process, and the server behind it."""

    def __init__(self, url: str, server):
        self.url, self.server = url, server

    def explanation(self, page):
        return self.server.store.get(page.evaluate(f"{EXPLORER}.dataset.id"))


@pytest.fixture(scope="module")
def site():
    from vit_demo.embedded import embedded
    from vit_demo.ui import page
    from vit_demo.ui.store import Server

    if MODEL not in embedded():
        missing(f"assets/{MODEL}.safetensors is not here")
    server = Server(device="cpu")
    server.models.kept["many"] = small_classifier(num_classes=40)
    server.models.kept["headless"] = small_classifier(num_classes=0)
    server.models.get(MODEL)
    demo = page.build(server, MODEL)
    _, url, _ = demo.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, **page.launch_options()
    )
    yield Site(url, server)
    demo.close(verbose=False)
    server.close()


@pytest.fixture
def arrive(visit, site):
    """A visitor who waits until the first picture is explained."""

    def arrive(query: str = "", **options):
        page = visit(site.url + query, **({"viewport": WIDE} | options))
        page.set_default_timeout(SECONDS * 1000)
        page.wait_for_selector("#explorer [data-ready=true][data-drawn]")
        page.wait_for_function(f"{WHY}?.dataset.state !== 'waiting'")
        return page

    return arrive


def labels(page) -> list[int]:
    rows = page.locator("ol.answer li").all()
    return [int(row.get_attribute("data-index")) for row in rows]


def values(page) -> np.ndarray:
    """What the explorer shows, as numbers."""
    page.wait_for_function(f"{EXPLORER}.explorer.values")
    return np.array(page.evaluate(f"Array.from({EXPLORER}.explorer.values)"))


def same(page, expected, atol: float = 1e-6) -> None:
    np.testing.assert_allclose(values(page), np.asarray(expected).ravel(), rtol=1e-4, atol=atol)


def questions(page) -> list[str]:
    """From now on: what the page asks the server besides its files."""
    asked = []
    page.on("request", lambda r: asked.append(r.url) if "component_server" in r.url else None)
    return asked


def ask(page, row: int, button: str = "ask") -> None:
    page.click(f"ol.answer li:nth-child({row}) .{button}")


def until(page, condition: str) -> None:
    page.wait_for_function(
        f"(() => {{ const s = {EXPLORER}.explorer.state; return {condition}; }})()"
    )


# 1 Class maps


def test_a_label_shows_its_map_and_goes_back(arrive, site):
    page = arrive()
    e, (first, second, *_) = site.explanation(page), labels(page)
    asked = questions(page)
    ask(page, 2)
    until(page, f"s.map === 'contribution' && s.label === {second}")
    same(page, e.contribution(second))
    row = page.locator("ol.answer li:nth-child(2) .ask")
    assert row.get_attribute("aria-pressed") == "true"
    assert e.labels[second].split(",")[0] in page.locator("#explorer .vx-say").inner_text()
    assert page.locator("#explorer input[id$=layer]").is_disabled()
    for method in ("relevance", "gradient_rollout", "grad_cam"):
        page.select_option("#explorer select[id$=method]", method)
        same(page, getattr(e, method)(second))
    ask(page, 1)
    until(page, f"s.map === 'grad_cam' && s.label === {first}")
    same(page, e.grad_cam(first))
    before = len(asked)
    ask(page, 2)  # its maps are remembered
    until(page, f"s.label === {second}")
    same(page, e.grad_cam(second))
    maps = [url for url in asked[before:] if "why" not in url]
    assert len(asked) >= 2 and len(maps) <= 1  # at most the strip of methods asks something new
    ask(page, 2)  # the same row once more: back to the maps of all classes
    until(page, "s.map === 'head_rollout' && s.label === null")
    assert row.get_attribute("aria-pressed") == "false"


def test_two_labels_and_their_difference(arrive, site):
    page = arrive()
    e, (first, second, third, *_) = site.explanation(page), labels(page)
    ask(page, 3, "less")  # without another choice: from the predicted label
    until(page, f"s.label === {first} && s.minus === {third}")
    same(page, e.contribution(first, minus=third), atol=1e-5)  # the page subtracts
    ask(page, 2)
    until(page, f"s.label === {second} && s.minus === {third}")
    expected = e.contribution(second, minus=third).numpy()
    same(page, expected, atol=1e-5)
    names = [e.labels[label].split(",")[0] for label in (second, third)]
    page.wait_for_selector(f"#explorer .vx-say:has-text('Red: speaks for {names[0]} rather than')")
    low, high = (
        float(page.locator(f"#explorer .vx-legend >> nth=0 >> span >> nth={k}").inner_text()
              .replace("\u2212", "-")) for k in (0, 1)
    )  # fmt: skip
    assert low == -high == pytest.approx(-np.abs(expected).max(), rel=0.01)  # zero in the middle
    page.evaluate(f"{EXPLORER}.explorer.set({{ opacity: 1 }})")
    page.wait_for_function(f"JSON.parse({EXPLORER}.dataset.state).opacity === 1")
    page.wait_for_timeout(100)
    strongest = np.unravel_index(np.abs(expected).argmax(), expected.shape)
    red, _, blue = colour_at(page, strongest, expected.shape)
    assert (red > 90 and blue < 60) if expected[strongest] > 0 else (blue > 90 and red < 60)
    ask(page, 3, "less")  # once more: no difference any more
    until(page, "s.minus === null")


def colour_at(page, patch, grid) -> tuple[int, int, int]:
    data = page.evaluate("document.querySelector('#explorer .vx-picture').toDataURL()")
    picture = Image.open(io.BytesIO(base64.b64decode(data.split(",")[1]))).convert("RGB")
    x, y = ((k + 0.5) * side / n for k, side, n in zip(patch[::-1], picture.size, grid[::-1]))
    return picture.getpixel((int(x), int(y)))


def test_search_finds_any_label(arrive, site):
    page = arrive("?model=many")
    e, top = site.explanation(page), labels(page)
    label = next(index for index in range(10, 40) if index not in top)
    field = page.locator("#answer [role=combobox]")
    field.click()
    field.press_sequentially(f"label {label}")
    page.wait_for_selector("#found [role=option]")
    assert field.get_attribute("aria-expanded") == "true"
    assert field.get_attribute("aria-activedescendant") == "found-0"
    page.keyboard.press("Enter")
    until(page, f"s.label === {label}")
    same(page, e.contribution(label))
    row = page.locator(f"ol.also li[data-index='{label}']")
    page.wait_for_function("document.querySelector('ol.also .percent').textContent !== ''")
    share = 100 * float(e.logits.softmax(dim=-1)[label])
    assert row.locator(".percent").inner_text().startswith(f"{share:.1f}")
    ask(page, 1)  # the searched label stays, and can be subtracted
    until(page, f"s.label === {top[0]}")
    row.locator(".less").click()
    until(page, f"s.minus === {label}")
    field.click()
    field.fill("no such thing")
    page.wait_for_selector("#answer .search p:has-text('No label')")


def test_by_keyboard_alone(arrive):
    page = arrive()
    page.locator("ol.answer li:nth-child(2) .ask").focus()
    page.keyboard.press("Enter")
    until(page, "s.label !== null")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # past the row's own minus, which is off, to the next row's
    assert page.evaluate("document.activeElement.className") in ("less", "ask")
    page.locator("ol.answer li:nth-child(3) .less").focus()
    page.keyboard.press("Space")
    until(page, "s.minus !== null")
    page.locator("#explorer .vx-back").focus()
    page.keyboard.press("Enter")
    until(page, "s.map === 'head_rollout'")


def test_link_and_files_of_a_class_map(arrive, site, visit, tmp_path):
    page = arrive()
    e, (_, second, third, *_) = site.explanation(page), labels(page)
    page = arrive(f"?map=grad_cam&label={second}&minus={third}&example=cat")
    found = state(page)
    assert (found["map"], found["label"], found["minus"]) == ("grad_cam", second, third)
    expected = (e.grad_cam(second) - e.grad_cam(third)).numpy()
    same(page, expected)
    page.click("#link button")
    page.wait_for_function("document.querySelector('#link button').dataset.address")
    address = page.evaluate("document.querySelector('#link button').dataset.address")
    assert "map=grad_cam&" in address and f"label={second}&minus={third}" in address
    for kind in ("gif", "webp"):
        assert page.locator(f"#take [data-kind={kind}]").is_disabled()
    paths = {}
    for kind in ("json", "npz", "html"):
        with page.expect_download() as waiting:
            page.click(f"#take [data-kind={kind}]")
        paths[kind] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(paths[kind])
    settings = json.loads(paths["json"].read_text(encoding="utf-8"))["settings"]
    assert (settings["map"], settings["label"], settings["minus"]) == ("grad_cam", second, third)
    with np.load(paths["npz"]) as maps:
        np.testing.assert_allclose(maps["class_map"], expected, atol=1e-6)
    alone = visit(paths["html"].as_uri(), viewport=WIDE)
    alone.wait_for_selector(".vitx[data-ready=true][data-drawn]")
    shown = alone.evaluate("Array.from(document.querySelector('.vitx').explorer.values)")
    np.testing.assert_allclose(shown, expected.ravel(), rtol=1e-4, atol=1e-6)


# 2 and 3: the strip of methods, the trust meter


def strip(page) -> None:
    """Come to the section; its maps come by themselves."""
    page.locator("#why").scroll_into_view_if_needed()
    page.wait_for_selector("#why .why-tile[data-method=relevance]:not(:disabled)")


def done(page, kind: str) -> None:
    page.wait_for_selector(f"#why [data-job={kind}][data-state=done]")


def test_methods_side_by_side(arrive, site):
    page = arrive()
    e = site.explanation(page)
    strip(page)
    names = [tile.get_attribute("data-method") for tile in page.locator("#why .why-tile").all()]
    assert names == ["shown", *faithful.METHODS]
    assert "least marked" in page.locator("#why .why-strip").inner_text()  # the rule of the colours
    top = labels(page)[0]
    for method, heat in faithful.method_maps(e, top).items():
        page.click(f"#why .why-tile[data-method={method}]")
        wanted = {"raw": "attention"}.get(method, method)
        until(page, f"s.map === '{wanted}'")
        if method in ("raw", "rollout"):  # computed in the browser, from rounded numbers
            np.testing.assert_allclose(values(page), heat.flatten(), atol=1e-3 * float(heat.max()))
        else:
            same(page, heat)


@pytest.mark.parametrize("remove", ["tokens", "blur"])
def test_scores_and_curves_are_the_librarys(arrive, site, remove):
    page = arrive()
    e = site.explanation(page)
    strip(page)
    page.check(f"#why input[value={remove}] >> nth=0", force=True)
    page.click("#why button:has-text('Check all seven')")
    done(page, "trust")
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


def test_the_map_in_the_explorer_is_checked_too(arrive, site):
    page = arrive("?map=head_rollout&layer=2&head=1")
    e = site.explanation(page)
    strip(page)
    page.click("#why button:has-text('Check only the map')")
    done(page, "trust")
    tile = page.locator("#why .why-tile[data-method=shown]")
    expected = faithful.trust(e, e.head_rollouts(2)[1])
    assert float(tile.get_attribute("data-score")) == pytest.approx(expected.score, abs=1e-5)
    page.evaluate(f"{EXPLORER}.explorer.set({{ layer: 0 }})")  # another map: not checked
    page.wait_for_function(
        "!document.querySelector('#why .why-tile[data-method=shown]').dataset.score"
    )


@pytest.fixture
def slow(monkeypatch):
    """Trust that goes on only step by step; `ended` holds how it ended."""

    class Slow:
        turn, ended, costs = threading.Semaphore(2), threading.Event(), 0

    trust_all = faithful.trust_all

    def one_by_one(*args, progress, **options):
        def report(done: int, total: int):
            Slow.turn.acquire(timeout=SECONDS)
            Slow.costs += 1
            return progress(done, total)

        try:
            return trust_all(*args, progress=report, **options)
        except faithful.Cancelled:
            Slow.ended.set()
            raise

    monkeypatch.setattr(faithful, "trust_all", one_by_one)
    return Slow


def test_cancel_stops_the_work(arrive, slow):
    page = arrive()
    strip(page)
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
    done(page, "trust")


def test_a_closed_page_stops_the_work(arrive, slow):
    page = arrive()
    strip(page)
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
    from vit_demo.ui import why

    def broken(*_):
        raise RuntimeError("a test breaks it")

    page = arrive()
    strip(page)
    with monkeypatch.context() as patch:
        patch.setitem(why.QUESTIONS, "trust", broken)  # inside of the work
        page.click("#why button:has-text('Check all seven')")
        page.wait_for_selector("#why [data-job=trust][data-state=failed]:has-text('went wrong')")
        patch.setattr(why, "work", broken)  # and outside, where only Gradio sees it
        page.click("#why button:has-text('Check all seven')")
        page.wait_for_selector("#why [data-job=trust][data-state=failed]:has-text('did not work')")
    page.click("#why button:has-text('Check all seven')")
    done(page, "trust")


def test_the_queue_is_seen(arrive, slow):
    """The second visitor waits, and is told so, until the first one leaves."""
    first, second = arrive(), arrive()
    for page in (first, second):
        strip(page)
        page.click("#why button:has-text('Check all seven')")
        kind = "running" if page is first else "waiting"
        page.wait_for_selector(f"#why [data-job=trust][data-state={kind}]")
    first.click("#why [data-job=trust] button")
    for _ in range(10_000):
        slow.turn.release()
    done(second, "trust")


# 4 Random weights


def test_random_weights(arrive, site):
    page = arrive()
    e = site.explanation(page)
    strip(page)
    for method, passes in (("contribution", None), ("relevance", None), ("random", False)):
        page.select_option("#why-method", method)
        page.click("#why button:has-text('Make the blocks random')")
        done(page, "random")
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


# 5 Knock-outs


def after(page) -> dict[int, float]:
    rows = page.locator("#why .why-changes li").all()
    return {int(r.get_attribute("data-index")): float(r.get_attribute("data-after")) for r in rows}


def now_without(page, e, **off) -> None:
    """The list on the page is the library's answer."""
    expected = {c.index: c.after for c in knockout.without(e, **off).after}
    first, share = next(iter(expected.items()))
    page.wait_for_function(
        "([index, share]) => { const row = document.querySelector('#why .why-changes li');"
        " return +row.dataset.index === index && Math.abs(row.dataset.after - share) < 1e-4; }",
        arg=[first, share],
    )
    found = after(page)
    assert list(found) == list(expected)
    assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-4)


def test_knock_outs(arrive, site):
    page = arrive()
    e = site.explanation(page)
    strip(page)
    rows, cols = e.grid
    now_without(page, e)
    page.click("#why [data-at='1,0']")
    now_without(page, e, heads=[(1, 0)])
    assert page.locator("#why [data-at='1,0']").get_attribute("aria-pressed") == "true"
    page.click("#why [data-at='0,-1']")  # a whole layer
    now_without(page, e, heads=[(1, 0)], layers=[0])
    canvas = page.locator("#why .why-paint")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()

    def point(row: int, col: int) -> tuple[float, float]:
        return (
            box["x"] + (col + 0.5) * box["width"] / cols,
            box["y"] + (row + 0.5) * box["height"] / rows,
        )

    page.mouse.move(*point(1, 1))
    page.mouse.down()
    page.mouse.move(*point(1, 3), steps=12)
    page.mouse.up()
    painted = [(1, 1), (1, 2), (1, 3)]
    now_without(page, e, heads=[(1, 0)], layers=[0], patches=painted)
    page.check("#why input[name=why-fill][value=blur]", force=True)
    now_without(page, e, heads=[(1, 0)], layers=[0], patches=painted, fill="blur")
    canvas.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):  # appears in the middle, walks, paints
        page.keyboard.press(key)
    painted.append((rows // 2, cols // 2 + 1))
    now_without(page, e, heads=[(1, 0)], layers=[0], patches=painted, fill="blur")
    page.click("#why button:has-text('Restore all')")
    now_without(page, e)
    assert page.locator("#why .why-cell[aria-pressed=true]").count() == 0


def test_wall_of_knock_outs(arrive, site):
    page = arrive()
    e, (_, second, *_) = site.explanation(page), labels(page)
    ask(page, 2)
    strip(page)
    page.click("#why button:has-text('Which head matters')")
    done(page, "wall")
    expected = knockout.knockout_wall(e, second).numpy()
    for layer, head in np.ndindex(*expected.shape):
        cell = page.locator(f"#why [data-at='{layer},{head}']")
        change = float(expected[layer, head])
        assert float(cell.get_attribute("data-change")) == pytest.approx(change, abs=1e-5)
    layer, head = np.unravel_index(np.abs(expected).argmax(), expected.shape)
    cell = page.locator(f"#why [data-at='{layer},{head}']")
    cell.hover()
    page.wait_for_selector(
        f"#why .why-head:has-text('Layer {layer + 1}, head {head + 1}: without')"
    )
    cell.click()
    now_without(page, e, heads=[(int(layer), int(head))])
    cell.focus()  # one stop of the Tab key, arrows inside
    page.keyboard.press("ArrowRight" if head == 0 else "ArrowLeft")
    neighbour = f"{layer},{head + 1 if head == 0 else head - 1}"
    assert page.evaluate("document.activeElement.dataset.at") == neighbour
    assert page.locator("#why .why-heads [tabindex='0']").count() == 1


# For every model and everybody


def test_a_model_without_classes(arrive):
    page = arrive("?model=headless")
    page.wait_for_selector("#why [data-state=headless]:has-text('This model has no classes')")
    assert not page.locator("#why .why-body").is_visible()
    choice = page.locator("#explorer input[value=class]")
    assert choice.is_disabled()
    assert "no classes" in choice.locator("xpath=..").get_attribute("title")


def test_a_picture_that_is_gone(arrive, site):
    page = arrive("?model=many&example=rocket")
    site.server.store.drop(page.evaluate(f"{EXPLORER}.dataset.id"))
    ask(page, 2)
    page.wait_for_selector("#explorer .vx-say:has-text('no longer kept on the server')")
    assert state(page)["label"] is None
    page.click("#why [data-at='1,0']")
    page.wait_for_selector("#why .why-said:has-text('no longer kept on the server')")
    page.click("#why button:has-text('Which head matters')")
    page.wait_for_selector("#why [data-job=wall][data-state=failed]:has-text('no longer kept')")


def test_another_picture_begins_anew(arrive, site):
    page = arrive("?model=many")
    strip(page)
    page.click("#why [data-at='1,0']")
    page.wait_for_selector("#why .why-cell[aria-pressed=true]")
    ask(page, 2)
    until(page, "s.label !== null")
    before = page.evaluate(f"{EXPLORER}.dataset.id")
    page.click("[data-example=coffee]")
    page.wait_for_function(f"{EXPLORER}.dataset.id !== {json.dumps(before)}")
    page.wait_for_function("!document.querySelector('#why .why-cell[aria-pressed=true]')")
    top = labels(page)[0]
    until(page, f"s.map === 'contribution' && s.label === {top} && s.minus === null")
    same(page, site.explanation(page).contribution())


def test_korean(arrive):
    page = arrive("?lang=ko")
    strip(page)
    page.click("#why button:has-text('여섯 가지 모두 시험')")
    done(page, "trust")
    sentence = page.locator("#why .why-says .why-sentence").inner_text()
    page.click("#language [data-language=en]")
    page.wait_for_selector("#why button:has-text('Check all seven')")
    english = page.locator("#why .why-says .why-sentence").inner_text()  # nothing is asked again
    assert sentence != english and "chance" in english


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_axe_finds_nothing_serious_when_all_is_done(arrive, scheme, viewport):
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-playwright-python is not installed")
    page = arrive("?model=many", color_scheme=scheme, viewport=viewport)
    ask(page, 3, "less")
    strip(page)
    for kind, text in (("trust", "Check all"), ("random", "Make the"), ("wall", "Which head")):
        page.click(f"#why button:has-text('{text}')")
        done(page, kind)
    page.click("#why [data-at='1,0']")
    page.wait_for_selector("#why .why-delta.more, #why .why-delta.less")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    found = Axe().run(page).response["violations"]
    serious = [
        (rule["id"], [node["html"][:120] for node in rule["nodes"]])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
