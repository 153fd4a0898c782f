"""Inside: ten steps from pixels to the answer in Chromium, every number against the library."""

import numpy as np
import pytest
from support.page import (
    DEIT,
    EXPLORER,
    MODEL,
    PHONE,
    WIDE,
    open_tab,
    serious_axe_violations,
    state,
    until_state,
)
from support.shared import missing

from vit_demo.anatomy import anatomy
from vit_demo.embedded import example_path
from vit_demo.inside import position_similarity
from vit_demo.ui.html import EXAMPLES
from vit_demo.ui.inside import sources

INSIDE = "document.querySelector('#inside .ins')"
STEPS = range(1, 11)


def until_ready(page, step: int | str) -> None:
    """Wait until a step is on the screen with its numbers."""
    page.wait_for_function(
        f"location.hash === '#inside/{step}' && {INSIDE}?.dataset.state === 'ready' && "
        "[...document.querySelectorAll('.ins-stage')].every((stage) => "
        "getComputedStyle(stage).opacity === '1')"
    )


def go(page, step: int | str) -> None:
    page.click(
        f"#inside [data-page={step}]" if step == "anatomy" else f"#inside [data-step='{step}']"
    )
    until_ready(page, step)


def skip_the_guess(page) -> None:
    page.click("#inside [data-guess=skip]")
    page.wait_for_function("document.querySelector('#inside .ins-answer').textContent.length > 20")


def number(page, name: str, within: str = "") -> float:
    """A number on the screen, as it was before it was rounded."""
    there = page.locator(f"#inside {within} [data-number='{name}']").first
    return float(there.get_attribute("data-value"))


def all_numbers(page, name: str, within: str = "") -> list[float]:
    there = page.locator(f"#inside {within} [data-number='{name}']").all()
    return [float(one.get_attribute("data-value")) for one in there]


def point_at(page, selector: str, across: float, down: float = 0.5) -> None:
    """Point at a place in a canvas, as shares of its width and height."""
    canvas = page.locator(f"#inside {selector}").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])


def point_at_patch(page, e, row: int, col: int, selector: str = "canvas.ins-picture") -> None:
    rows, cols = e.grid
    point_at(page, selector, (col + 0.5) / cols, (row + 0.5) / rows)


def near(expected, rel: float = 1e-3, abs: float = 1e-4):
    return pytest.approx(float(expected), rel=rel, abs=abs)


# Every number is the library's


@pytest.mark.parametrize("model", [MODEL, DEIT])
def test_ten_steps(arrive, site, model):
    if model not in site.server.models:
        missing("put DeiT-tiny's weights into ../shared/weights")
    page = arrive(f"?model={model}&layer=2&head=1&map=attention&query=3,4#inside/1")
    e = site.explanation(page)
    walk, query, there = e.inside(), (3, 4), (5, 2)
    until_ready(page, 1)

    # 1: the pixel in the middle of the patch
    p, q = e.config.patch_size
    patch = walk.patch(query)
    for channel in range(e.config.channels):
        shown = number(page, f"normalised_{channel}")
        assert shown == near(patch.pixels[channel, p // 2, q // 2])
    point_at(page, ".ins-planes canvas", 0.5 / q, 0.5 / p)  # the first pixel
    byte = round(float(walk.pixels().values[0, 3 * p, 4 * q]))
    assert number(page, "byte_0") == byte
    assert str(byte) in page.locator("#inside tbody tr").first.inner_text()

    # 2: the strongest number of the patch, opened
    go(page, 2)
    assert page.locator("#inside [data-number=difference]").is_hidden()
    skip_the_guess(page)
    assert number(page, "difference") == pytest.approx(patch.difference)
    channel = int(patch.by_convolution.abs().argmax())
    opened = walk.patch_products(channel, query)
    assert number(page, "output") == near(patch.by_convolution[channel])
    assert number(page, "sum") == near(opened.products.sum())
    point_at(page, ".ins-stack canvas", 0.5 / q, 0.5 / p)
    operands = page.locator("#inside .ins-operands[data-value]:not([data-value=''])")
    assert float(operands.get_attribute("data-value")) == near(opened.products[0, 0, 0])
    point_at(page, "canvas.ins-strip", 10.5 / e.config.embed_dim)
    assert number(page, "unfold") == near(patch.by_unfold[10])

    # 3: lengths and cosines of the patch under the pointer
    go(page, 3)
    point_at_patch(page, e, *there)
    lengths = walk.embedding().lengths.reshape(3, *e.grid)[:, there[0], there[1]]
    for name, length in zip(("patch", "position", "sum"), lengths, strict=True):
        assert number(page, name) == near(length)
    cosines = position_similarity(e.classifier.model, e.grid).reshape(*e.grid, *e.grid)
    assert number(page, "cosine") == near(cosines[(*there, *query)], abs=0.005)

    # 4: LayerNorm
    go(page, 4)
    norm = walk.layer_norm(2, query)
    assert number(page, "mean") == near(norm.mean)
    assert number(page, "deviation") == near(norm.deviation)
    point_at(page, "canvas.ins-strip", 7.5 / e.config.embed_dim)
    shown = page.locator("#inside .ins-operands[data-value]").first.get_attribute("data-value")
    assert float(shown) == near(norm.after[7])
    point_at_patch(page, e, *there)
    token = walk.token(there)
    assert number(page, "length") == near(walk.lengths()[2, token])
    marked = int(page.locator("#inside .ins-marked").get_attribute("data-count"))
    assert marked == int(walk.marked().sum())

    # 5: the score of the patch under the pointer
    go(page, 5)
    looks = walk.attention(2, 1, query)
    point_at_patch(page, e, *there)
    assert number(page, "sum") == near(looks.products[token].sum(), abs=2e-3)
    assert number(page, "score") == near(looks.scores[token], abs=1e-3)
    shown = page.locator("#inside [data-number=score]").inner_text().replace("\u2212", "-")
    assert float(shown.replace(" × 10", "e").replace("⁻", "-")) == near(looks.scores[token], 0.01)

    # 6: its share, then a cold softmax
    go(page, 6)
    point_at_patch(page, e, *there)
    row = f"tr[data-token='{token}']"
    assert number(page, "share", row) == near(looks.shares[token], abs=1e-5)
    assert number(page, "exponential", row) == near(looks.exponentials[token], abs=1e-4)
    assert number(page, "entropy") == near(looks.entropy)
    assert number(page, "ones") == near(1)
    page.locator("#inside input[type=range]").fill("-1")
    cold = walk.attention(2, 1, query, temperature=0.1)
    page.wait_for_function("document.querySelector('#inside .ins-slider output').value === '0.10'")
    assert number(page, "entropy") == near(cold.entropy, 0.01, 0.01)

    # 7: the sum over the tokens, and what each head writes
    go(page, 7)
    skip_the_guess(page)
    heads = walk.heads(2, query)
    assert number(page, "so_far") == near(heads.seen[1].norm(), 1e-2)
    assert all_numbers(page, "length", ".ins-heads") == [
        near(x) for x in heads.written.norm(dim=-1)
    ]
    assert number(page, "part") == near(heads.part.norm())
    page.locator("#inside input[type=range]").fill("3")
    top = heads.shares[1].topk(3)
    assert number(page, "covered") == near(top.values.sum(), abs=1e-4)
    values = walk.attention(2, 1, query).values
    so_far = (top.values[:, None] * values[top.indices]).sum(dim=0)
    assert number(page, "so_far") == near(so_far.norm(), 1e-2)

    # 8: stream and MLP
    go(page, 8)
    skip_the_guess(page)
    residual, units = walk.residual(query), walk.units(2, query)
    for k, name in enumerate(("stream", "attention", "mlp")):
        assert number(page, f"length_{name}") == near(residual.lengths[2, k])
    for k, name in enumerate(("stream_attention", "both_mlp", "attention_mlp")):
        assert number(page, f"cosine_{name}") == near(residual.cosines[2, k])
    assert number(page, "active") == near(units.active)
    assert all_numbers(page, "activation") == [near(x) for x in units.activations]
    assert all_numbers(page, "written") == [near(x) for x in units.lengths]
    shown = [int(one.get_attribute("data-unit")) for one in page.locator("[data-unit]").all()]
    assert shown == units.units.tolist()

    # 9: the ledger
    go(page, 9)
    ledger, lens = walk.ledger(), walk.lens()
    assert number(page, "total") == near(ledger.total)
    assert number(page, "total") == near(e.logits[ledger.label])
    assert number(page, "heads") == near(ledger.heads.sum())
    assert number(page, "mlps") == near(ledger.mlps.sum())
    rows = ledger.heads.sum(dim=1) + ledger.biases + ledger.mlps
    assert all_numbers(page, "row") == [near(x) for x in rows]
    ranks = (lens > lens[:, ledger.label, None]).sum(dim=1) + 1
    there9 = page.locator("#inside [data-ranks]")
    assert there9.get_attribute("data-ranks") == ",".join(map(str, ranks.tolist()))

    # 10: the answer is that of step 2 of the page
    go(page, 10)
    answer = walk.answer()
    assert number(page, "sum") == near(answer.products.sum())
    assert number(page, "logit") == near(e.logits[answer.label])
    shares = [p.probability for p in e.top(10)]
    assert all_numbers(page, "probability") == [near(x) for x in shares]
    point_at_patch(page, e, *there)
    under = page.locator("#inside .ins-side .ins-operands").get_attribute("data-value")
    assert float(under) == near(e.contribution()[there])


def test_anatomy(arrive, site):
    page = arrive("?example=" + EXAMPLES["photo"][1] + "#inside/anatomy")
    e = site.explanation(page)
    count = len(EXAMPLES["photo"])
    page.wait_for_selector(f"#inside .ins-muted[data-count='{count}']")
    assert f"the {count} example pictures" in page.locator("#inside .ins-anatomy").inner_text()
    classifier = e.classifier
    examples = [classifier.explain(str(example_path(name))) for name in EXAMPLES["photo"]]
    expected = anatomy(examples)
    for name in ("distance", "entropy"):
        shown = page.evaluate(
            f"Array.from(document.querySelectorAll('#inside [data-values]'), (one) => "
            f"one.dataset.values.split(',').map(Number))[{0 if name == 'distance' else 1}]"
        )
        np.testing.assert_allclose(shown, getattr(expected, name).flatten(), rtol=1e-4)
        assert number(page, f"uniform_{name}") == near(getattr(expected, f"uniform_{name}"))
    dots = page.locator("#inside .ins-chart .dot.head").count()
    assert dots == 2 * e.layers * e.heads
    assert page.locator("#inside .ins-filters figure").count() > 10
    go_back = page.locator("#inside [data-page=walk]")
    go_back.click()
    until_ready(page, 1)


# Where one is


@pytest.mark.quick
def test_a_link_opens_its_step_and_the_address_follows(arrive):
    page = arrive("#inside/5", permissions=["clipboard-read", "clipboard-write"])
    until_ready(page, 5)
    assert page.locator("#tab-inside").get_attribute("aria-selected") == "true"
    assert page.locator("#inside [aria-current=step]").inner_text().startswith("5")
    go(page, 7)
    page.click("#link button")
    page.wait_for_selector("#link .note:has-text('Link copied')")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.endswith("#inside/7") and "tab=inside" in link
    page.evaluate("location.hash = '#inside/2'")
    until_ready(page, 2)
    page.evaluate("location.hash = '#inside/nonsense'")
    assert page.locator("#inside .ins-title").inner_text().startswith("2")
    open_tab(page, "trust")
    page.wait_for_function("location.hash === ''")
    open_tab(page, "inside")
    until_ready(page, 2)


def test_keys_and_buttons_walk(arrive):
    page = arrive("?tab=inside")
    until_ready(page, 1)
    page.keyboard.press("ArrowRight")
    until_ready(page, 2)
    page.click("#inside .ins-go.next")
    until_ready(page, 3)
    page.keyboard.press("ArrowLeft")
    until_ready(page, 2)
    page.focus("#inside canvas.ins-strip")  # there, the keys move from number to number
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "document.querySelector('#inside [data-number=convolution]').parentElement"
        ".textContent.startsWith('Number 2 ')"
    )
    until_ready(page, 2)
    page.click("#inside .ins-go.back")
    until_ready(page, 1)
    assert page.locator("#inside .ins-go.back").is_disabled()
    page.keyboard.press("ArrowLeft")
    until_ready(page, 1)


def test_patches_are_chosen_with_the_keyboard(arrive):
    page = arrive("#inside/1")
    until_ready(page, 1)
    page.focus("#inside canvas.ins-picture")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    rows, cols = page.evaluate(f"{EXPLORER}.explorer.data.grid")
    until_state(page, f"String(s.query) === '{rows // 2 + 1},{cols // 2 + 1}'")


def test_what_is_chosen_is_the_same_in_explore(arrive, site):
    page = arrive("#inside/5")
    e = site.explanation(page)
    until_ready(page, 5)
    rows, cols = e.grid
    box = page.locator("#inside canvas.ins-picture").bounding_box()
    page.mouse.click(box["x"] + 2.5 / cols * box["width"], box["y"] + 1.5 / rows * box["height"])
    until_state(page, "String(s.query) === '1,2'")
    page.click("#inside [data-choice=layer] button >> nth=0")
    until_state(page, f"s.layer === {e.layers - 2}")
    page.click("#inside [data-choice=head] button >> nth=1")
    until_state(page, "s.head === 1")
    until_ready(page, 5)
    page.mouse.move(0, 0)
    looks = e.inside().attention(e.layers - 2, 1, (1, 2))
    token = e.inside().token((1, 2))
    page.wait_for_function(
        f"Math.abs(+document.querySelector('#inside [data-number=score]').dataset.value - "
        f"{float(looks.scores[token])}) < 1e-2"
    )
    page.evaluate(f"{EXPLORER}.explorer.set({{ layer: 0, query: [2, 3] }})")
    page.wait_for_selector("#inside [data-choice=token]:has-text('patch 3, 4')")
    assert page.locator("#inside [data-choice=layer] select").input_value() == "0"
    page.click("#inside .ins-small:has-text('class token')")
    until_state(page, "s.query === null")
    go(page, 9)
    second = e.top(2)[1].index
    page.select_option("#inside .ins-label", str(second))
    until_state(page, f"s.label === {second}")
    ledger = e.inside().ledger(second)
    page.wait_for_function(
        f"Math.abs(+document.querySelector('#inside [data-number=logit]').dataset.value - "
        f"{ledger.logit}) < 1e-3"
    )
    go(page, 10)
    page.click("#inside .ins-main-button")
    page.wait_for_selector("#panel-trust")
    assert state(page)["label"] == second


# Guessing


def test_one_guesses_before_the_answer_is_shown(arrive, site):
    page = arrive("#inside/6")
    until_ready(page, 6)
    assert page.locator("#inside .ins-answer").inner_text() == ""
    page.click("#inside [data-guess=a]")
    page.wait_for_selector("#inside [data-guess=a].wrong")
    assert page.locator("#inside [data-guess=b].right").count() == 1
    assert page.locator("#inside .ins-answer").inner_text().startswith("Not quite.")
    page.check("#inside .ins-check input")  # add 10 to every score
    before = all_numbers(page, "share")
    page.uncheck("#inside .ins-check input")
    assert all_numbers(page, "share") == [pytest.approx(x) for x in before]
    go(page, 5)
    go(page, 6)
    assert page.locator("#inside [data-guess=a].wrong").count() == 1  # it stays


def test_some_answers_are_experiments(arrive, site):
    page = arrive("#inside/3")
    e = site.explanation(page)
    until_ready(page, 3)
    assert page.locator("#inside .ins-shuffle").is_hidden()
    page.click("#inside [data-guess=c]")
    page.wait_for_selector("#inside .ins-shuffle figure")
    expected = e.inside().shuffle()
    for name in ("with_positions", "without_positions"):
        shares = getattr(expected, name).softmax(dim=-1).topk(3).values
        shown = all_numbers(page, "share", f"[data-shuffle={name}]")
        assert shown == [near(x) for x in shares]
    go(page, 9)
    assert page.locator("#inside [data-random]").get_attribute("data-random") == ""
    page.click("#inside [data-guess=b]")
    logits = e.inside().random_lens()
    ranks = (logits > logits[:, logits[-1].argmax(), None]).sum(dim=1) + 1
    page.wait_for_selector(
        f"#inside [data-random='{','.join(map(str, ranks.tolist()))}']", state="attached"
    )


# Pointing costs nothing


def test_pointing_makes_no_request_and_each_part_comes_once(arrive):
    page = arrive("?query=2,3#inside/1")
    asked = []
    until_ready(page, 1)
    for step in STEPS:
        go(page, step)
        if page.locator("#inside [data-guess=skip]").is_visible():
            skip_the_guess(page)
            until_ready(page, step)
    page.on("request", lambda request: asked.append(request.url))
    for step in STEPS:
        go(page, step)  # everything is here
        for canvas in page.locator("#inside canvas[role=application]").all():
            canvas.scroll_into_view_if_needed()
            box = canvas.bounding_box()
            for share in (0.1, 0.35, 0.6, 0.9):
                page.mouse.move(box["x"] + share * box["width"], box["y"] + share * box["height"])
    assert asked == []


# For every model and everybody


def test_a_model_without_labels_has_eight_steps(arrive):
    page = arrive("?model=headless#inside/8")
    until_ready(page, 8)
    assert page.locator("#inside .ins-units figure").count() == 5
    for step in (9, 10):
        go(page, step)
        assert "no labels" in page.locator("#inside .ins-empty").inner_text()
    assert page.locator("#inside .ins-code").count() == 1


def test_digits_have_one_channel(arrive):
    page = arrive("?model=vit-mnist#inside/1")
    until_ready(page, 1)
    assert page.locator("#inside tbody tr").count() == 1
    go(page, 2)
    assert page.locator("#inside .ins-stack canvas").count() == 3


def test_the_source_stands_beside_each_step(arrive):
    page = arrive("#inside/1")
    until_ready(page, 1)
    page.click("#inside .ins-fold-code summary")
    for step, pieces in sources().items():
        go(page, step)  # the fold stays open
        shown = page.locator("#inside .ins-code").all()
        assert len(shown) == len(pieces)
        for figure, piece in zip(shown, pieces, strict=True):
            assert figure.get_attribute("data-first") == str(piece["first"])
            code = figure.locator("code").all_text_contents()
            assert [line.rstrip("\n") for line in code] == piece["lines"]
    assert page.locator("#inside .ins-formula math").count() > 0


def test_a_picture_that_is_gone_and_one_that_comes(arrive, site):
    page = arrive("?model=many#inside/5")
    until_ready(page, 5)
    site.server.store.drop(page.evaluate(f"{EXPLORER}.dataset.id"))
    page.click("#inside [data-step='8']")
    page.wait_for_selector("#inside .ins-trouble:has-text('no longer kept on the server')")
    page.click(f"[data-example={EXAMPLES['photo'][2]}]")
    until_ready(page, 8)
    assert page.locator("#inside .ins-trouble").is_hidden()


def test_korean(arrive):
    page = arrive("#inside/6")
    until_ready(page, 6)
    page.click("#language [data-language=ko]")
    page.wait_for_selector("#inside .ins-title:has-text('소프트맥스')")
    until_ready(page, 6)
    page.click("#inside [data-guess=b]")
    page.wait_for_selector("#inside .ins-answer:has-text('맞습니다')")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_everybody_can_use_it(arrive, look):
    page = arrive(f"?__theme={look}#inside/1", viewport=WIDE)
    for step in (1, 2, 4, 6, 7, 9, 10, "anatomy"):
        until_ready(page, 1) if step == 1 else go(page, step)
        if step in (2, 7):
            skip_the_guess(page)
        if step == 2:
            page.click("#inside .ins-fold-code summary")
        assert serious_axe_violations(page) == [], step


def test_on_a_phone(arrive):
    page = arrive("#inside/1", viewport=PHONE, has_touch=True)
    until_ready(page, 1)
    for step in (*STEPS, "anatomy"):
        if step != 1:
            go(page, step)
        if page.locator("#inside [data-guess=skip]").is_visible():
            skip_the_guess(page)
            until_ready(page, step)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), step
        inner = page.evaluate(
            "Math.max(...Array.from(document.querySelectorAll('#inside .ins-card > *'), (one) => "
            "one.getBoundingClientRect().right))"
        )
        assert inner <= PHONE["width"] + 1, step
        if step != "anatomy":  # nothing is cut off and has to be scrolled to
            wide = "({ scrollWidth, clientWidth }) => scrollWidth - clientWidth"
            assert page.locator("#inside .ins-stage").evaluate(wide) <= 1, step
