"""How quick the page is, measured in a real browser against a server of its own.

    python -m benchmarks.app [--rounds 9] [--pictures 200]

Medians, in milliseconds unless said otherwise. DeiT-tiny is measured when its weights can be found
(VIT_DEMO_WEIGHTS or the hub's cache).
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.visitors import SETTINGS, Server, Visitor, noise

DEIT = "deit_tiny_patch16_224.fb_in1k"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]

# From a click to labels and map on the screen. `act` is a function that starts it.
UNTIL_SHOWN = """(act) => new Promise((done) => {
    const root = document.querySelector("#explorer .vitx"), before = root.dataset.id;
    const began = performance.now();
    let id = null, drawn = null;
    const look = () => {
        if (id === null && root.dataset.id !== before) [id, drawn] = [root.dataset.id, root.dataset.drawn];
        const shown = JSON.parse(document.querySelector("#take .files").dataset.shown).id;
        if (id && shown === id && root.dataset.ready === "true" && root.dataset.wall)
            requestAnimationFrame(() => done(performance.now() - began));
        else requestAnimationFrame(look);
    };
    eval(act);
    look();
})"""

# From an event in the explorer to the redrawn map.
UNTIL_DRAWN = """(act) => new Promise((done) => {
    const root = document.querySelector("#explorer .vitx"), before = root.dataset.drawn;
    const began = performance.now();
    eval(act);
    const look = () => root.dataset.drawn !== before
        ? done(performance.now() - began) : setTimeout(look, 0);
    look();
})"""


def measure_first_visit(browser, url: str, rounds: int) -> None:
    """From the request to the first map, beside Gradio's own page with one word on it; each time with an
    empty cache, in turns."""
    import gradio as gr

    with gr.Blocks(analytics_enabled=False) as empty:
        gr.HTML("<p id='word'>empty</p>")
    _, plain, _ = empty.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    ways = {plain: "#word", url: ".vitx[data-ready=true][data-drawn] canvas.vx-picture"}  # visible
    times: dict[str, list[float]] = {address: [] for address in ways}
    for _ in range(rounds):
        for address, shown in ways.items():
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            began = time.perf_counter()
            page.goto(address, wait_until="commit")
            page.wait_for_selector(shown, timeout=120_000)
            times[address].append(1000 * (time.perf_counter() - began))
            context.close()
    empty.close(verbose=False)
    report("first visit: Gradio's empty page", times[plain])
    report("first visit: until the first map", times[url])
    ratio = statistics.median(times[url]) / statistics.median(times[plain])
    print(f"{'first visit: of an empty page':52}{ratio:8.2f}   (at most 1.5 wanted)", flush=True)


def measure_page(page, url: str, rounds: int) -> None:
    page.goto(url)
    page.wait_for_selector("#explorer [data-ready=true][data-wall]")
    times = []
    names = page.eval_on_selector_all("[data-example]", "all => all.map(b => b.dataset.example)")
    for name in names[1:] + names[:1]:
        act = f"document.querySelector('[data-example={name}]').click()"
        times.append(page.evaluate(UNTIL_SHOWN, act))
    report("embedded model: example to labels and map", times, 1000)

    requests = []
    page.on("request", lambda request: requests.append(request.url))
    canvas = page.locator("#explorer canvas.vx-picture")
    box = canvas.bounding_box()
    hover = """(() => {{ const c = document.querySelector('#explorer canvas.vx-picture');
        c.dispatchEvent(new PointerEvent('pointermove',
            {{clientX: {x}, clientY: {y}, bubbles: true, pointerType: 'mouse'}})); }})()"""
    times = []
    for i in range(3 * rounds):
        x = box["x"] + box["width"] * ((i * 3 % 8) + 0.5) / 8
        y = box["y"] + box["height"] * ((i * 5 % 8) + 0.5) / 8
        times.append(page.evaluate(UNTIL_DRAWN, hover.format(x=x, y=y)))
    report("explorer: hover on a patch", times, 50)
    slider = """(() => {{ const s = document.querySelector('#explorer input[type=range]');
        s.value = {value}; s.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"""
    low, high = page.eval_on_selector(
        "#explorer input[type=range]", "s => [Number(s.min), Number(s.max)]"
    )
    values = [low + i % 2 * (high - low) for i in range(rounds)]
    times = [page.evaluate(UNTIL_DRAWN, slider.format(value=value)) for value in values]
    report("explorer: another layer", times, 50)
    print(f"{'explorer: requests meanwhile':52}{len(requests):8d}   (0 wanted)")


def measure_deit(page, url: str, rounds: int, folder: Path) -> None:
    import vit_demo

    try:
        classifier = vit_demo.load(DEIT, device="cpu")
    except ValueError as error:
        print(f"DeiT-tiny not measured: {error}")
        return
    files = [folder / f"deit-{i}.jpg" for i in range(rounds)]
    for i, file in enumerate(files):
        file.write_bytes(noise(100 + i))
    page.goto(f"{url}?model={DEIT}")
    page.wait_for_selector("#explorer [data-ready=true][data-wall]")
    own, extra, shown = [], [], []
    for file in files:
        began = time.perf_counter()
        classifier.explain(file)
        own.append(1000 * (time.perf_counter() - began))
        before = page.evaluate("document.querySelector('#explorer .vitx').dataset.id")
        began = time.perf_counter()
        page.set_input_files("#picture input[type=file]", str(file))
        page.wait_for_function(
            "(id) => document.querySelector('#explorer .vitx').dataset.id !== id && "
            "document.querySelector('#explorer .vitx').dataset.ready === 'true'",
            arg=before,
        )
        shown.append(1000 * (time.perf_counter() - began))
        extra.append(shown[-1] - own[-1])
    report("DeiT-tiny: upload to labels and map", shown)
    report("DeiT-tiny: the model's own time", own)
    report("DeiT-tiny: what the page adds", extra, 500)


def measure_visitors(url: str) -> None:
    visitors = [Visitor(url) for _ in range(8)]

    def visit(number: int) -> list[float]:
        times = []
        for i in range(5):
            began = time.perf_counter()
            visitors[number].call("explain", noise(5 * number + i), "vit-photos", *SETTINGS)
            times.append(1000 * (time.perf_counter() - began))
        return times

    with ThreadPoolExecutor(8) as pool:
        times = list(pool.map(visit, range(8)))
    report("8 visitors at once: one picture", [t for mine in times for t in mine])
    means = [statistics.mean(mine) for mine in times]
    print(f"{'8 visitors: longest mean wait / shortest':52}{max(means) / min(means):8.2f}")


def measure_memory(server: Server, count: int) -> None:
    visitor, levels = Visitor(server.address), []
    for number in range(300 + count):  # 300: whatever is remembered is full by then
        visitor.call("explain", noise(number), "vit-photos", *SETTINGS)
        if number in (299, 299 + count):
            levels.append(server.megabytes)
    change = 100 * (levels[1] / levels[0] - 1)
    print(f"{f'memory before and after {count} pictures, MB':52}{levels[0]:8.0f} ->{levels[1]:6.0f}"
          f"   ({change:+.1f} %, at most +10 wanted)")  # fmt: skip


def report(what: str, times: list[float], limit: float | None = None) -> None:
    wanted = f"   (at most {limit:.0f} wanted)" if limit else ""
    print(f"{what:52}{statistics.median(times):8.1f}{wanted}   min {min(times):.1f}", flush=True)


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pictures", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright, Server() as server:
        imports, seconds = server.imports, server.seconds
        print(f"{'start: imports of torch and gradio, s':52}{imports:8.1f}")
        print(f"{'start: after the imports until the page answers, s':52}"
              f"{seconds - imports:8.1f}   (at most 8 wanted)")  # fmt: skip
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        measure_first_visit(browser, server.address, args.rounds)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(120_000)
        measure_page(page, server.address, args.rounds)
        measure_deit(page, server.address, args.rounds, Path(name))
        browser.close()
        measure_visitors(server.address)
        measure_memory(server, args.pictures)
    print(json.dumps({"cores": os.cpu_count(), "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
