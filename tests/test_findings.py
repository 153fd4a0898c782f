"""Each finding is true for the model and the picture that it opens."""

import itertools

import numpy as np
import pytest
import torch
from PIL import Image
from support.models import small_classifier

import vit_demo
from vit_demo import findings
from vit_demo.embedded import DEFAULT, embedded, example_path
from vit_demo.findings import FINDINGS
from vit_demo.map_settings import MapSettings
from vit_demo.ui.texts import EXPLORER_TEXTS

ALL = [(model, finding) for model, found in FINDINGS.items() for finding in found]
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(("model", "finding"), ALL, ids=lambda it: getattr(it, "name", it))
def test_finding_is_true(model, finding):
    e = vit_demo.load(model, device="cpu").explain(example_path(finding.example))
    settings = MapSettings(**finding.settings)
    found = finding.measure(e, settings)
    assert found >= finding.least, better(finding, e)
    for index in (settings.label, settings.minus):
        assert index is None or 0 <= index < len(e.labels)


def better(finding, e) -> str:
    """Where else in the model the finding would be true, for whoever has to mend it."""
    found = {
        (layer, head): finding.measure(
            e, MapSettings(**finding.settings | {"layer": layer, "head": head})
        )
        for layer, head in itertools.product(range(e.layers), range(e.heads))
    }
    best = sorted(found, key=found.get, reverse=True)[:3]
    return f"{finding.name}: {[(place, round(found[place], 2)) for place in best]} reach most"


def test_the_labels_of_the_two_sides_are_what_the_words_say():
    labels = vit_demo.load("vit-photos", device="cpu").labels
    assert "camel" in labels[findings.CAMEL] and "shepherd" in labels[findings.SHEPHERD]


def test_findings_belong_to_the_embedded_model_and_have_words():
    assert DEFAULT in FINDINGS and FINDINGS.keys() <= embedded().keys()
    assert 3 <= len(FINDINGS[DEFAULT]) <= 4
    for texts in EXPLORER_TEXTS.values():
        assert all(f"finding_{finding.name}" in texts for _, finding in ALL)


def test_neighbour_share_by_counting():
    e = small_classifier(image_size=(24, 32)).explain(Image.effect_noise((64, 48), 60))
    rows, cols = e.grid
    A, ratio = e.layer_attention(1).double(), []
    for head in range(e.heads):
        paid = chance = 0
        for r, c in np.ndindex(rows, cols):
            row = A[head, 1 + r * cols + c, 1:].reshape(rows, cols)
            near = row[max(0, r - 1) : r + 2, max(0, c - 1) : c + 2]
            paid += float(near.sum() / row.sum())
            chance += near.numel() / row.numel()
        ratio.append(paid / chance)
    found = findings.neighbour_share(e, MapSettings(map="attention", layer=1))
    assert found == pytest.approx(np.mean(ratio), rel=1e-4)


def test_edges_are_where_the_brightness_changes():
    pixels = np.zeros((32, 32, 3), np.uint8)
    pixels[8:16, 16:24] = 255 * (np.arange(8)[:, None, None] % 2)  # stripes in patch 1, 2
    e = small_classifier().explain(Image.fromarray(pixels))
    found = findings.edges(e)
    assert found.shape == e.grid and int(found.argmax()) == 1 * 4 + 2
    assert (found.flatten().topk(3).values[2] < 0.2 * found.max()).item()
    settings = MapSettings(map="attention", layer=2, head=1)
    noisy = small_classifier().explain(Image.effect_noise((32, 32), 80))
    ranks = [
        x.flatten().argsort().argsort() for x in (noisy.attention(2, 1), findings.edges(noisy))
    ]
    expected = np.corrcoef(*map(np.asarray, ranks))[0, 1]
    assert findings.edge_correlation(noisy, settings) == pytest.approx(expected, abs=1e-5)
    assert findings.smoothness(noisy, settings) == pytest.approx(-expected, abs=1e-5)


def test_sides_by_hand(monkeypatch):
    e = small_classifier().explain(Image.new("RGB", (32, 32)))
    heat = torch.tensor([[3.0, 0, 1, -4], [0, -1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    monkeypatch.setattr(e, "contribution", lambda label, minus: heat)
    settings = MapSettings(map="contribution", label=0, minus=1)
    assert findings.sides(e, settings) == pytest.approx(3 / 4)  # the lesser of 3/4 and 4/5
