"""The explorer's JavaScript under node: its numbers against the library. The tests themselves are in
tests/js; what they compare with is made here."""

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image
from support.models import noise, small_classifier
from support.paths import ROOT
from support.payloads import SHAPES, Decoded, explain
from support.shared import missing

from vit_demo import attention, compare
from vit_demo.checkpoints import Checkpoint
from vit_demo.compare import matching
from vit_demo.explain import Classifier
from vit_demo.map_settings import SCHEMA, MapSettings
from vit_demo.ui import explorer, payload, static
from vit_demo.ui.static import bundle, modules
from vit_demo.ui.texts import GLOSSARY
from vit_demo.view import Preprocess

STATE = {"map": "head_rollout", "layer": 2, "head": 1, "query": None, "direction": "from"}
STATE |= {"below": "mean", "part": "whole", "residual": 0.5, "discard": 0.0}
TESTS = sorted(path.name for path in (ROOT / "tests" / "js").glob("*.test.js"))

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        missing("node is not installed: see CONTRIBUTING.md")
    return found


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory) -> Path:
    """A folder with data as the server sends them, and what the library makes of the same input."""
    folder = tmp_path_factory.mktemp("javascript")
    with pytest.MonkeyPatch.context() as patch:
        made = {
            "schema": SCHEMA,
            "maps": [
                *(same_input(folder, shape) for shape in SHAPES),
                *(true_attention(folder, shape) for shape in SHAPES),
                *(lean(folder, shape, patch) for shape in ("class token", "registers")),
                *(by_layer(folder, shape, patch) for shape in ("class token", "registers")),
            ],
            "blob": blob(folder),
            "discard": [discard(readout) for readout in (None, [0, 1], [0, 2])],
            "enlarge": enlarge(),
            "paint": [paint(name) for name in ("inferno", "viridis")],
            "pairs": [pair(*given) for given in PAIRS],
            "matching": [
                [index, count, others, matching(index, count, others)]
                for count, others in itertools.product((1, 2, 3, 6, 12), (1, 2, 5, 12, 24))
                for index in range(count)
            ],
        }
    folder.joinpath("fixtures.json").write_text(json.dumps(made), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", TESTS)
def test_the_javascript_tests_pass_under_node(name, node, fixtures):
    environment = os.environ | {"VIT_DEMO_FIXTURES": str(fixtures)}
    command = [node, "--test", f"tests/js/{name}"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE)  # and there were tests
    assert re.search(r"^# skipped 0$", done.stdout, re.MULTILINE)


# What the library says


def library(e, state: dict) -> torch.Tensor:
    """The same map from the library."""
    layer, head, query = state["layer"], state["head"], state["query"]
    query = tuple(query) if query else None
    settings = {"query": query, "residual": state["residual"], "discard": state["discard"]}
    if state["map"] == "rollout":
        return e.rollout(layer, fusion=head, tokens=True, **settings)
    if state["map"] == "attention":
        return e.attention(layer, head, query, direction=state["direction"], tokens=True)
    options = {"below": state["below"], "part": state["part"], "tokens": True}
    maps = e.head_rollouts(layer, **options, **settings)
    across = {"mean": lambda x: x.mean(dim=0), "max": lambda x: x.amax(dim=0)}
    across["min"] = lambda x: x.amin(dim=0)
    return across[head](maps) if isinstance(head, str) else maps[head]


def all_states(discards=(0.0, 0.35, 0.9)) -> list[dict]:
    states = []
    for query, layer in itertools.product((None, [1, 2]), (0, 3)):
        place = STATE | {"query": query, "layer": layer}
        for head, direction in itertools.product((2, "mean", "max", "min"), ("from", "to")):
            states.append(place | {"map": "attention", "head": head, "direction": direction})
        for discard, residual in itertools.product(discards, (0.0, 0.5, 0.8)):
            place = place | {"discard": discard, "residual": residual}
            states += [place | {"map": "rollout", "head": head} for head in ("mean", "max", "min")]
            for head, below in itertools.product((0, "mean", "max", "min"), ("mean", "same")):
                states.append(place | {"head": head, "below": below})
            for head, below in itertools.product((0, 2), ("mean", "same")):
                states.append(place | {"head": head, "below": below, "part": "special"})
    return states


PAIRS = [  # title, crop of both, fit, picture of the second, map
    ("one picture, two crops", (1.0, 0.7), "crop", 0, "rollout"),
    ("one picture, padded", (1.0, 1.0), "pad", 0, "contribution"),
    ("one picture, its own shape", (0.9, 1.0), "native", 0, "relevance"),
    ("two pictures", (1.0, 1.0), "crop", 1, "attention"),
]


def pair(title: str, crops: tuple[float, float], fit: str, seed: int, name: str) -> dict:
    """Two explanations on one grid, from the library."""
    shapes = ({}, {"image_size": 40, "patch_size": 5, "depth": 5})
    both = []
    for crop, shape, k in zip(crops, shapes, (0, seed), strict=True):
        classifier = small_classifier(**shape)
        size = classifier.preprocess.size
        checkpoint = Checkpoint("small", classifier.model, classifier.labels, Preprocess(size, crop_pct=crop))  # fmt: skip
        both.append(Classifier(checkpoint, "cpu").explain(noise(k), fit))
    found = compare.compare(*both, MapSettings(map=name))
    boxes, grids = compare.places(*both), [list(e.grid) for e in both]
    patches = [(row, col) for row in range(both[0].grid[0]) for col in range(both[0].grid[1])]
    return {
        "title": title,
        "places": [{"grid": g, "box": list(b)} for g, b in zip(grids, boxes, strict=True)],
        "bounds": list(compare.bounds(*both)),
        "heats": [heat.flatten().tolist() for heat in found.heats],
        "shares": name in compare.SHARES,
        "frame": list(found.frame),
        "grid": list(found.seen.shape),
        "seen": found.seen.int().flatten().tolist(),
        "maps": [laid.flatten().tolist() for laid in found.maps],
        "correlation": found.correlation,
        "patches": [{"patch": p, "other": compare.matching_patch(*both, p)} for p in patches],
    }


def save(folder: Path, data: bytes) -> str:
    name = f"{len(list(folder.iterdir()))}.safetensors"
    folder.joinpath(name).write_bytes(data)
    return name


def expect(state: dict, vector: torch.Tensor | None, rtol: float = 0, atol: float = 0) -> dict:
    vector = None if vector is None else vector.tolist()
    return {"state": state, "expected": vector, "rtol": rtol, "atol": atol}


def same_input(folder: Path, shape: str) -> dict:
    """Given the same attention (decoded from the payload), every map is the same."""
    e = explain(**SHAPES[shape])
    decoded = Decoded(e)
    checks = [expect(state, library(decoded, state), 1e-4, 2e-6) for state in all_states()]
    title = f"{shape}: given the same attention, every map is the library's"
    return {"title": title, "blob": save(folder, payload.payload(e)), "checks": checks}


def against_truth(e, states: list[dict]) -> list[dict]:
    """Each map beside the library's own, with the tolerance that `true_attention` explains."""
    checks = []
    for state in states:
        expected = library(e, state)
        exact = state["head"] == "mean" and state["map"] == "rollout"
        exact |= (
            state["query"] is None
            and state["direction"] == "from"
            and (
                state["map"] == "attention"
                or (state["map"] == "head_rollout" and state["below"] == "mean")
            )
        )
        by_head = state["map"] != "rollout" and state["head"] == "min"
        largest = library(
            e, state | {"head": "max"} if by_head else state | {"part": "whole"}
        ).max()
        if state["direction"] == "to":  # each entry has the scale of another row
            largest = e.layer_attention(state["layer"]).max()
        checks.append(expect(state, expected, atol=(1e-4 if exact else 0.01) * float(largest)))
    return checks


def true_attention(folder: Path, shape: str) -> dict:
    """Against the true attention. What rests on the head-mean and on the read-out's rows (16 and
    32 bits) is right to 1e-4 of the largest value. A byte a value: half a step is 0.4 % of a row's
    peak, and the row's sum may add as much: 1 % of the largest value, over the heads. (With discard,
    which of two nearly equal entries goes may differ; that the rule is right is tested above.)"""
    e = explain(**SHAPES[shape])
    checks = against_truth(e, all_states(discards=(0.0,)))
    title = f"{shape}: a byte a value is fine enough"
    return {"title": title, "blob": save(folder, payload.payload(e)), "checks": checks}


def lean(folder: Path, shape: str, patch: pytest.MonkeyPatch) -> dict:
    """A large model: the heads of a patch are fetched."""
    e = explain(**SHAPES[shape])
    with patch.context() as limited:
        limited.setattr(payload, "FULL_LIMIT", e.layers * e.N * e.N)
        data = payload.payload(e)
    states = [s for s in all_states((0.0, 0.35)) if s["below"] == "mean"]
    states = [s for s in states if s["map"] != "rollout" or s["head"] == "mean"]
    checks = []
    for state in states:
        largest = float(library(e, state | {"part": "whole"}).max())
        # sums of codes of 16 bits: 1e-4 of the largest value
        checks.append(expect(state, library(e, state), atol=1e-4 * largest + 1e-6))
    # without what is fetched, the mean of the heads is still known; a single head is not
    place = STATE | {"query": [1, 2]}
    mean = e.rollout(2, query=(1, 2), tokens=True)
    return {
        "title": f"{shape}: lean data give the same maps",
        "blob": save(folder, data),
        "before": [expect(place | {"head": "mean"}, mean, 1e-3, 1e-5), expect(place, None)],
        "fetched": [
            {"wanted": {"query": query}, "blob": save(folder, payload.query_rows(e, query))}
            for query in (None, (1, 2))
        ],
        "checks": checks,
    }


def by_layer(folder: Path, shape: str, patch: pytest.MonkeyPatch) -> dict:
    """A large model: the heads of a layer are fetched, and the fusions of all."""
    e = explain(**SHAPES[shape])
    with patch.context() as limited:
        limited.setattr(payload, "FULL_LIMIT", 0)
        data = payload.payload(e)
    fetched = [
        {"wanted": {"layer": layer}, "blob": save(folder, payload.layer_rows(e, layer))}
        for layer in range(e.layers)
    ]
    fetched += [
        {"wanted": {"fusion": fusion}, "blob": save(folder, payload.fused_rows(e, fusion))}
        for fusion in ("max", "min")
    ]
    place = STATE | {"query": [1, 2]}
    return {
        "title": f"{shape}: layer by layer, the same maps",
        "blob": save(folder, data),
        "before": [expect(place, None), expect(STATE | {"map": "rollout", "head": "max"}, None)],
        "fetched": fetched,
        "checks": against_truth(e, [s for s in all_states((0.0,)) if s["below"] == "mean"]),
    }


def blob(folder: Path) -> dict:
    header = {"model": "고양이", "grid": [2, 3]}
    arrays = {
        "bytes": np.arange(5, dtype=np.uint8),
        "words": np.array([[1, 65535], [300, 7]], np.uint16),
        "numbers": np.array([0.25, -3.5, 1e-9], np.float32),
        "none": np.empty((0, 4), np.float32),
    }
    values = {name: array.ravel().tolist() for name, array in arrays.items()}
    return {"file": save(folder, payload.pack(header, arrays)), "header": header, "arrays": values}


def discard(readout: list[int] | None) -> dict:
    """Of equal entries the first ones go, as a stable sort has it; zeros are entries, too."""
    N, generator = 23, torch.Generator().manual_seed(0)
    levels = torch.tensor([0, 1e-9, 0.1, 0.1, 0.25, 1])
    A = levels[torch.randint(len(levels), (N, N), generator=generator)]
    A[3], A[4] = 0, 0.5
    protected = slice(*readout) if readout else None
    ratios = (0.0, 0.02, 0.1, 0.33, 0.5, 0.77, 0.95, 0.99)
    expected = [attention.discard_smallest(A, ratio, protected).tolist() for ratio in ratios]
    return {"readout": readout, "rows": A.tolist(), "ratios": ratios, "expected": expected}


def enlarge() -> dict:
    """Smooth is Pillow's bicubic."""
    heat = np.random.default_rng(1).random((5, 7), dtype=np.float32)
    expected = np.asarray(Image.fromarray(heat).resize((56, 40), Image.Resampling.BICUBIC))
    return {"heat": heat.ravel().tolist(), "expected": expected.ravel().tolist()}


def paint(name: str) -> dict:
    """matplotlib's colours, also outside of the scale."""
    values = np.random.default_rng(2).uniform(-1, 2, 300).astype(np.float32)
    low, high = 0.125, 1.5
    shares = (values.astype(np.float64) - low) / (high - low)
    pixels = matplotlib.colormaps[name](shares, bytes=True)
    return {
        "name": name,
        "table": explorer.colour_table(name),
        "values": values.tolist(),
        "low": low,
        "high": high,
        "expected": pixels.ravel().tolist(),
    }


# The modules


def test_a_module_imports_only_what_another_one_exports():
    """In a bundle a name that is missing would be undefined, and nobody would say so."""
    for name, text in modules().items():
        found = static.IMPORT.findall(text)
        assert len(found) == len(re.findall(r"^import\b", text, re.MULTILINE)), name
        assert len(static.EXPORT.findall(text)) == len(re.findall(r"^export\b", text, re.MULTILINE))
        for names, where in found:
            wanted = set(re.findall(r"[^\s{},]+", names))
            other = modules()[static.beside(name, where)]
            assert wanted <= {what for _, what in static.EXPORT.findall(other)}, (name, where)


def test_a_bundle_has_every_module_after_what_it_imports():
    """Rings of modules would break it: each runs once, when all that it needs is there."""
    order = re.findall(r'^modules\["([^"]+)"\] = ', static.page_script(), re.MULTILINE)
    assert len(order) == len(set(order)) > 70
    for name in order:
        for _, where in static.IMPORT.findall(modules()[name]):
            assert order.index(static.beside(name, where)) < order.index(name)


def test_a_bundle_exports_what_its_modules_export(node, tmp_path):
    """Node runs the script of the page: every export is there, and nothing else."""
    script = tmp_path / "page.mjs"
    script.write_text(static.page_script())
    names = "Object.entries(modules).map(([name, m]) => [name, Object.keys(m)])"
    ask = f"import {{ modules }} from {json.dumps(script.as_uri())}; "
    ask += f"console.log(JSON.stringify({names}))"
    done = subprocess.run(
        [node, "--input-type=module", "-e", "globalThis.matchMedia = () => ({}); " + ask],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {name: set(exports) for name, exports in json.loads(done.stdout)}
    assert found == {
        name: set(re.findall(r"^export (?:async )?\w+\*? (\w+)", text, re.MULTILINE))
        for name, text in modules().items()
    }


def test_the_explorers_bundle_holds_its_modules_and_no_component():
    script = bundle("explorer/index.js")
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    for name, text in modules().items():
        if name.startswith("explorer/") and name != "explorer/component.js":
            assert text.split("\n")[1] in script, name  # the sentence that says what it is
    assert 'modules["gradio.js"]' not in script


def test_every_module_is_reachable_from_a_component():
    """What no component imports would be served for nothing."""
    sources = (path.read_text(encoding="utf-8") for path in static.STATIC.parent.glob("*.py"))
    entries = re.findall(r'(?:mount_script\(|modules\[)"([^"]+)"', "\n".join(sources))
    reached = re.findall(r'^modules\["([^"]+)"\] = ', bundle(*entries), re.MULTILINE)
    assert set(reached) == set(modules())


def test_every_module_is_type_checked_and_says_what_it_is():
    for name, text in modules().items():
        first, second = text.split("\n")[:2]
        assert first == "// @ts-check" and second.startswith("// "), name


def test_every_text_the_explorer_asks_for_is_known():
    script = bundle("explorer/index.js")
    asked = set(re.findall(r'\bt\("(\w+)"', script))
    known = explorer.EXPLORER_TEXTS["en"]
    assert len(asked) > 30 and asked <= known.keys(), asked - known.keys()


def test_every_word_with_a_question_mark_is_explained():
    """In the explorer and in the other tabs; and every drawing belongs to a word."""
    known = GLOSSARY["en"]["words"]
    asked = set()
    for text in modules().values():
        for call in re.findall(r"\bhelp\(explorer, ([^)]*)\)|question\([^[]*\[([^]]*)\]", text):
            asked |= set(re.findall(r'"(\w+)"', "".join(call)))
    assert len(asked) > 10 and asked <= known.keys(), asked - known.keys()
    drawn = set(re.findall(r"^  (\w+): svg\(", modules()["drawings.js"], re.MULTILINE))
    assert len(drawn) > 12 and drawn <= known.keys(), drawn - known.keys()


def test_only_one_module_knows_gradios_inner_structure():
    """Names of Gradio's own elements; an update of Gradio may change them."""
    theirs = r"meta-text|toast|status-tracker|gradio_api|[\"']\.error|attributeFilter"
    for name, text in modules().items():
        code = re.sub(r"//.*|/\*[\s\S]*?\*/", "", text)
        assert name == "gradio.js" or not re.search(theirs, code), name
