"""Many visitors for a long time, some of them rude: does everyone get the right answer, and is the server
afterwards what it was?

    python -m benchmarks.soak [--pictures 1000] [--connections 16] [--models 20]

Of the pictures 5 % are broken, and 5 % of the visitors leave at some moment without waiting. Checked:
every good picture has the answer that the library gives, every broken one a sentence; the memory in the
last quarter is that of the second; no files remain. Then somebody tries many models, one after the other,
6 GB of them: the memory stays within what docs/hosting.md promises. (Their weights are random.)
"""

import argparse
import random
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import timm
from safetensors.torch import save_file

import vit_demo
from benchmarks.visitors import SETTINGS, Refused, Server, Visitor, noise
from vit_demo.checkpoints.timm_models import pretrained_tags

MODEL = "vit-photos"
PROMISE = 3 * 1024  # MB above the start: 2 GB of models, 1 GB of explanations
ARCHITECTURES = (
    "vit_base_patch16_224",
    "vit_base_patch32_224",
    "vit_base_patch16_384",
    "deit_base_patch16_224",
    "deit3_base_patch16_224",
    "vit_small_patch16_224",
    "deit3_small_patch16_224",
    "vit_small_patch32_224",
    "deit_small_patch16_224",
    "deit_tiny_patch16_224",
    "vit_tiny_patch16_224",
)
BROKEN = {
    "cut off": lambda file: file[: len(file) // 3],
    "a text": lambda file: b"this is not a picture, whatever its name says",
    "empty": lambda file: b"",
    "a web page": lambda file: b"<html><body>" + file[:500],
}


class Soak:
    """Numbers of pictures are handed out; what became of each is noted."""

    def __init__(self, address: str, pictures: int, process_megabytes):
        self.address, self.pictures = address, pictures
        self.classifier = vit_demo.load(MODEL, device="cpu")
        self.lock, self.next = threading.Lock(), 0
        self.outcome: dict[str, int] = {}
        self.wrong: list[str] = []
        self.waits: list[float] = []
        self.megabytes: list[float] = []
        self.process_megabytes = process_megabytes

    def note(self, what: str) -> None:
        with self.lock:
            self.outcome[what] = self.outcome.get(what, 0) + 1

    def work(self, _: int) -> None:
        visitor = Visitor(self.address)
        while True:
            with self.lock:
                number, self.next = self.next, self.next + 1
                if number >= self.pictures:
                    return
                self.megabytes.append(self.process_megabytes())
            dice = random.Random(number)
            kind = dice.choices(("good", "broken", "leaves"), (90, 5, 5))[0]
            try:
                getattr(self, kind)(visitor, number, dice)
            except Exception as error:  # noqa: BLE001
                self.wrong.append(f"picture {number} ({kind}): {error!r}")

    def good(self, visitor: Visitor, number: int, dice: random.Random) -> None:
        file = noise(number, (dice.randint(20, 800), dice.randint(20, 800)))
        began = time.perf_counter()
        about, maps = visitor.call("explain", file, MODEL, *SETTINGS)
        self.waits.append(time.perf_counter() - began)
        archive = visitor.ask("GET", f"/gradio_api/file={maps['path']}")
        expected = self.classifier.explain(file).top(10)
        same = [p["index"] for p in about["labels"]][:1] == [p.index for p in expected][:1] and all(
            abs(got["probability"] - p.probability) < 1e-3
            for got, p in zip(about["labels"], expected, strict=True)
        )
        if same and archive[:2] == b"PK":
            self.note("good, right answer")
        else:
            self.wrong.append(f"picture {number}: {about['labels'][:2]} instead of {expected[:2]}")

    def broken(self, visitor: Visitor, number: int, dice: random.Random) -> None:
        name = dice.choice(list(BROKEN))
        try:
            visitor.call("explain", BROKEN[name](noise(number)), MODEL, *SETTINGS)
        except Refused as words:
            if "error" in str(words) and "null" not in str(words) and "Traceback" not in str(words):
                self.note(f"broken ({name}), told so")
                return
            raise
        raise AssertionError(f"{name} was accepted")

    def leaves(self, _: Visitor, number: int, dice: random.Random) -> None:
        """In the middle of the upload, after asking, or while waiting."""
        visitor, moment = Visitor(self.address), dice.choice(("upload", "asked", "waiting"))
        if moment == "upload":
            visitor.connection.putrequest("POST", "/gradio_api/upload")
            visitor.connection.putheader("Content-Type", "multipart/form-data; boundary=x")
            visitor.connection.putheader("Content-Length", "50000")
            visitor.connection.endheaders()
            head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.jpg"\r\n\r\n'
            visitor.connection.send(head + bytes(20000))
        else:
            path = visitor.upload("a.jpg", noise(number))
            file = {"path": path, "meta": {"_type": "gradio.FileData"}}
            event = visitor.begin("explain", file, MODEL, *SETTINGS)
            if moment == "waiting":
                visitor.connection.request("GET", f"/gradio_api/call/explain/{event}")
                time.sleep(dice.random() / 10)
        visitor.connection.close()
        self.note(f"left ({moment})")


def random_weights(folder: Path, count: int) -> list[str]:
    """Files of so many timm models, the large ones first; their names."""
    names = [f"{arch}.{tag}" for arch in ARCHITECTURES for tag in pretrained_tags(arch)]
    names = [name for name in names if timm.get_pretrained_cfg(name).num_classes == 1000][:count]
    for name in names:
        weights = timm.create_model(name).state_dict()
        save_file(
            {key: w.contiguous() for key, w in weights.items()}, folder / f"{name}.safetensors"
        )
    return names


def try_models(count: int) -> tuple[float, float]:
    """Memory at the start, and the most of it while one model after the other is tried, MB."""
    with tempfile.TemporaryDirectory() as folder:
        names = random_weights(Path(folder), count)
        with Server("--model", MODEL, VIT_DEMO_WEIGHTS=folder) as server:
            first, most = server.megabytes, 0.0
            for number, name in enumerate(names):
                Visitor(server.address).call("explain", noise(number), name, *SETTINGS)
                most = max(most, server.megabytes)
                print(f"    {name:52}{server.megabytes:8.0f} MB", flush=True)
    return first, most


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--models", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        keep = {"TMPDIR": folder, "VIT_DEMO_KEEP_MINUTES": "0.25"}
        with Server("--model", MODEL, **keep) as server:
            soak = Soak(server.address, args.pictures, lambda: server.megabytes)
            for number in range(60):  # the store of pictures is full before we begin
                Visitor(server.address).call("explain", noise(10**6 + number), MODEL, *SETTINGS)
            began = time.perf_counter()
            with ThreadPoolExecutor(args.connections) as pool:
                list(pool.map(soak.work, range(args.connections)))
            seconds = time.perf_counter() - began
            time.sleep(20)
            Visitor(server.address).call(
                "explain", noise(1), MODEL, *SETTINGS
            )  # sweeps what is old
            files = files_below(Path(folder))
            running = server.process.poll() is None
        after = files_below(Path(folder))
    quarter = len(soak.megabytes) // 4
    second = statistics.median(soak.megabytes[quarter : 2 * quarter])
    last = statistics.median(soak.megabytes[-quarter:])
    waits = sorted(soak.waits)
    print(f"{args.pictures} pictures, {args.connections} connections, {seconds:.0f} s; "
          f"wait: median {1000 * statistics.median(waits):.0f} ms, "
          f"95 of 100 at most {1000 * waits[int(0.95 * len(waits))]:.0f} ms")  # fmt: skip
    for what, count in sorted(soak.outcome.items()):
        print(f"  {what:40}{count:6}")
    print(f"  {'wrong':40}{len(soak.wrong):6}   (0 wanted)")
    for line in soak.wrong[:10]:
        print(f"    {line}")
    print(f"  memory: second quarter {second:.0f} MB, last quarter {last:.0f} MB, "
          f"{100 * (last / second - 1):+.1f} % (5 at most)")  # fmt: skip
    print(f"  files while it runs, 20 s later: {len(files)} (the last picture's); after its end: "
          f"{len(after)} (0 wanted); the server {'was running' if running else 'had DIED'}")  # fmt: skip
    first, most = try_models(args.models)
    print(f"  {args.models} models: {first:.0f} MB at the start, {most:.0f} MB at most, "
          f"{most - first:+.0f} ({PROMISE} promised)")  # fmt: skip
    fine = running and not after and last <= 1.05 * second and most - first <= PROMISE
    if soak.wrong or not fine:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
