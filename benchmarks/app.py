"""How quick the page is, measured in a real browser against a server of its own.

    python benchmarks/app.py [--rounds 9] [--pictures 200]

Medians, in milliseconds unless said otherwise. DeiT-tiny is measured when its weights can be found
(VIT_DEMO_WEIGHTS or the hub's cache).
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
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


def start(folder: Path) -> tuple[subprocess.Popen, str, float, float]:
    """The app; its address, the seconds its imports took, and those until it could be used."""
    output = open(folder / "log", "w")  # noqa: SIM115
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-u", "app.py"], cwd=ROOT, stdout=output, stderr=output
    )
    while True:
        text = (folder / "log").read_text()
        ready = re.search(r"Ready: (\S+)", text)
        if ready:
            break
        if process.poll() is not None:
            sys.exit(text)
        time.sleep(0.02)
    urlopen(ready[1]).read()
    seconds = time.perf_counter() - began
    imports = float(re.search(r"loaded in ([\d.]+) s", text)[1])
    return process, ready[1], imports, seconds


def resident(process: subprocess.Popen) -> float:
    pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def noise(path: Path, seed: int) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((640, 480)).save(path, quality=90)
    return path


def measure_page(page, url: str, rounds: int, folder: Path) -> None:
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
    files = [noise(folder / f"deit-{i}.jpg", 100 + i) for i in range(rounds)]
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


def measure_visitors(url: str, folder: Path) -> None:
    from gradio_client import Client, handle_file

    files = [noise(folder / f"visitor-{i}.jpg", i) for i in range(40)]
    clients = [Client(url, verbose=False, httpx_kwargs={"timeout": 300}) for _ in range(8)]

    def visit(number: int) -> list[float]:
        times = []
        for file in files[5 * number : 5 * number + 5]:
            began = time.perf_counter()
            clients[number].predict(handle_file(file), api_name="/explain")
            times.append(1000 * (time.perf_counter() - began))
        return times

    with ThreadPoolExecutor(8) as pool:
        times = list(pool.map(visit, range(8)))
    report("8 visitors at once: one picture", [t for mine in times for t in mine])
    means = [statistics.mean(mine) for mine in times]
    print(f"{'8 visitors: longest mean wait / shortest':52}{max(means) / min(means):8.2f}")


def measure_memory(process, url: str, count: int, folder: Path) -> None:
    from gradio_client import Client, handle_file

    client, file = Client(url, verbose=False, httpx_kwargs={"timeout": 300}), folder / "memory.jpg"
    levels = []
    for number in range(60 + count):
        client.predict(handle_file(noise(file, number)), api_name="/explain")
        if number in (59, 59 + count):
            levels.append(resident(process))
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
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        process, url, imports, seconds = start(folder)
        try:
            print(f"{'start: imports of torch and gradio, s':52}{imports:8.1f}")
            print(f"{'start: after the imports until the page answers, s':52}"
                  f"{seconds - imports:8.1f}   (at most 8 wanted)")  # fmt: skip
            chromium = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(120_000)
            measure_page(page, url, args.rounds, folder)
            measure_deit(page, url, args.rounds, folder)
            browser.close()
            measure_visitors(url, folder)
            measure_memory(process, url, args.pictures, folder)
        finally:
            process.terminate()
            process.wait()
    print(json.dumps({"cores": os.cpu_count(), "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
