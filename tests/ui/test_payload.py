"""What the explorer sends to the browser. What the browser makes of it: tests/browser."""

import base64
import json

import numpy as np
import pytest
import safetensors.numpy
import torch
from PIL import Image
from support.models import small_classifier
from support.payloads import SHAPES, decoded, explain

from vit_demo import attention
from vit_demo.checkpoints import example_path
from vit_demo.map_settings import CLASS_MAPS
from vit_demo.trust.methods import random_map
from vit_demo.ui import explorer, payload
from vit_demo.ui.texts import GLOSSARY


@pytest.mark.parametrize("shape", SHAPES)
def test_payload_keeps_the_attention(shape):
    e = explain(**SHAPES[shape])
    header, arrays = payload.unpack(payload.payload(e))
    assert header["full"] and (header["layers"], header["heads"]) == (e.layers, e.heads)
    assert header["tokens"] == e.N and tuple(header["grid"]) == e.grid
    assert slice(*header["readout_tokens"]) == slice(*e.readout_tokens.indices(e.N)[:2])
    assert header["prefix"] == e.config.prefix and header["pool"] == e.config.pool
    assert len(header["top"]) == (5 if e.labels else 0)
    np.testing.assert_array_equal(arrays["readout"], e.recording.readout_attention)
    A = torch.stack([e.layer_attention(layer) for layer in range(e.layers)])
    assert_close(decoded(arrays, "heads"), A, 0.5 / 255)
    assert_close(decoded(arrays, "mean"), A.mean(dim=1), 0.5 / 65535)
    for name in ("max", "min"):
        fused = torch.stack([attention.fuse_heads(layer, name) for layer in A])
        assert_close(decoded(arrays, name), fused, 0.5 / 255)
    for name in ("heads", "mean", "max", "min"):
        sums = decoded(arrays, name).sum(dim=-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=1e-5, atol=1e-5)


def assert_close(codes: torch.Tensor, A: torch.Tensor, half_step: float) -> None:
    """Half a step of the code is at most 2 half_step of the row's peak (the slope of the square
    is 2 at the top); the sum of the row, by which it is divided, may be off by as much again."""
    peak = A.amax(dim=-1, keepdim=True)
    assert ((codes - A).abs() <= 4.1 * half_step * peak + 1e-6).all()


def test_arrays_are_aligned_and_bad_data_is_refused():
    arrays = {
        "three": np.arange(3, dtype=np.uint8),
        "numbers": np.arange(6, dtype=np.float32).reshape(2, 3),
        "none": np.empty((0, 4), np.uint16),
        "short": np.arange(5, dtype=np.uint16),
    }
    blob = payload.pack({"name": "고양이"}, arrays)
    length = int.from_bytes(blob[:8], "little")
    entries = json.loads(blob[8 : 8 + length])
    for name, array in arrays.items():  # the browser reads each in place
        assert (8 + length + entries[name]["data_offsets"][0]) % array.itemsize == 0
    header, back = payload.unpack(blob)
    assert header == {"name": "고양이"} and back.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype
    for other in (b"PNG!" + blob, safetensors.numpy.save(arrays)):
        with pytest.raises(ValueError, match="explorer's data"):
            payload.unpack(other)


def test_a_row_of_which_nothing_is_left():
    arrays = payload.coded("min", torch.tensor([[0.0, 0.0], [0.5, 0.25]]), np.uint8)
    np.testing.assert_array_equal(arrays["min"], [[0, 0], [255, 180]])
    assert arrays["min_scale"][0] == 0  # the browser then leaves the token where it is


def test_large_models_are_sent_lean(monkeypatch):
    monkeypatch.setattr(payload, "FULL_LIMIT", 0)
    e = explain()
    header, arrays = payload.unpack(payload.payload(e))
    assert not header["full"] and header["later"] == {"layers": True, "fusions": True}
    assert not {"heads", "max", "min"} & set(arrays)
    assert arrays["mean"].dtype == np.uint16 and arrays["readout"].shape == (4, 3, 17)
    for name in ("LAYER_LIMIT", "FUSED_LIMIT", "WIDE_LIMIT"):
        monkeypatch.setattr(payload, name, 0)
    header, arrays = payload.unpack(payload.payload(e))
    assert header["later"] == {"layers": False, "fusions": False}
    assert arrays["mean"].dtype == np.uint8


def test_a_page_without_a_server_gets_more_at_once(monkeypatch):
    monkeypatch.setattr(payload, "FULL_LIMIT", 0)
    header, arrays = payload.unpack(payload.payload(explain(), for_file=True))
    assert header["full"] and "heads" in arrays
    monkeypatch.setattr(payload, "FILE_LIMIT", 0)
    header, arrays = payload.unpack(payload.payload(explain(), for_file=True))
    assert not header["full"] and header["later"] == {"layers": False, "fusions": False}
    assert "heads" not in arrays and "max" in arrays


@pytest.mark.parametrize(("depth", "heads", "most"), [(12, 12, 2e6), (24, 16, 6e6)])
def test_what_is_sent_of_a_large_model_is_small(depth, heads, most):
    """ViT-B and ViT-L at 224 px, and a photograph of six megapixels. How wide a token is does not
    matter: it is attention that is sent."""
    shape = {"image_size": 224, "patch_size": 16, "embed_dim": 2 * heads, "heads": heads}
    photograph = Image.open(example_path("koala")).resize((3000, 2000))
    e = small_classifier(depth=depth, **shape).explain(photograph)
    assert (e.layers, e.heads, e.N) == (depth, heads, 197)
    assert len(payload.payload(e)) <= most


def test_the_parts_that_come_later(monkeypatch):
    e = explain()
    A = torch.stack([e.layer_attention(layer) for layer in range(e.layers)])
    header, arrays = payload.unpack(payload.layer_rows(e, 2))
    assert header["layer"] == 2
    assert_close(decoded(arrays, "heads"), A[2], 0.5 / 255)
    for fusion, values in (("max", A.amax(dim=1)), ("min", A.amin(dim=1))):
        _, arrays = payload.unpack(payload.fused_rows(e, fusion))
        expected = values / values.sum(dim=-1, keepdim=True)
        assert_close(decoded(arrays, fusion), expected, 0.5 / 255)
    with pytest.raises(ValueError, match="fusion is 'median'; use one of max, min"):
        payload.fused_rows(e, "median")
    header, arrays = payload.unpack(payload.query_rows(e, (1, 2)))
    assert header["query"] == [1, 2]
    token = 1 + 1 * 4 + 2
    assert_close(decoded(arrays, "from"), A[:, :, token], 0.5 / 65535)
    assert_close(decoded(arrays, "to"), A[:, :, :, token], 0.5 / 65535)
    _, arrays = payload.unpack(payload.query_rows(e, None))
    assert_close(decoded(arrays, "from"), e.recording.readout_attention, 0.5 / 65535)


def test_the_picture_is_what_the_model_saw():
    import io

    e = explain()
    header, arrays = payload.unpack(payload.payload(e))
    picture = Image.open(io.BytesIO(arrays["picture"].tobytes()))
    assert header["picture"]["kind"] == "image/png"  # small: not one pixel may change
    np.testing.assert_array_equal(np.asarray(picture), np.asarray(e.view.picture))
    blob, kind = payload.picture_bytes(Image.effect_noise((224, 160), 30).convert("RGB"))
    assert kind == "image/jpeg" and Image.open(io.BytesIO(blob)).size == (224, 160)


def test_the_visitors_own_picture_goes_along_within_bounds():
    import io

    gradient = np.linspace(0, 255, 3000)[None, :, None].repeat(2000, axis=0).repeat(3, axis=2)
    e = small_classifier(image_size=(16, 48)).explain(Image.fromarray(gradient.astype(np.uint8)))
    header, arrays = payload.unpack(payload.payload(e))
    preview = Image.open(io.BytesIO(arrays["preview"].tobytes()))
    assert header["preview"] == {"kind": "image/jpeg", "size": list(preview.size)}
    assert preview.size == e.view.preview().size and max(preview.size) <= 1024
    assert arrays["preview"].nbytes < 300_000
    same = np.asarray(preview, dtype=float) - np.asarray(e.view.preview(), dtype=float)
    assert np.abs(same).mean() < 3
    e = small_classifier().explain(Image.new("RGB", (32, 32)))  # no finer than what the model saw
    header, arrays = payload.unpack(payload.payload(e))
    assert header["preview"] is None and "preview" not in arrays


def test_both_languages_say_the_same_things():
    english, korean = explorer.EXPLORER_TEXTS["en"], explorer.EXPLORER_TEXTS["ko"]
    assert english.keys() == korean.keys()
    import re

    for key, text in english.items():
        fields = set(re.findall(r"\{\w+\}", text))
        assert fields == set(re.findall(r"\{\w+\}", korean[key])), key
        assert text.strip() and korean[key].strip()
    english, korean = (GLOSSARY[name]["words"] for name in ("en", "ko"))
    assert english.keys() == korean.keys()
    for word, (name, sentence) in [*english.items(), *korean.items()]:
        assert name and 15 < len(sentence) < 180 and sentence.endswith("."), word


def test_standalone_page_is_self_contained():
    page = explorer.standalone_html(explain(), "ko", {"map": "rollout", "note": "</script>"})
    assert '<html lang="ko">' in page
    assert "http://" not in page and "https://" not in page
    assert page.count("</script>") == 2  # nothing inside the data or settings ends a script
    assert explorer.standalone_html(explain(), "xx").count('<html lang="en">') == 1


def test_the_component_hands_questions_to_its_functions():
    import gradio as gr

    asked = []
    with gr.Blocks():
        component = explorer.make_explorer(
            lambda request: asked.append(request) or {"data": ""},
            lambda request: asked.append(request) or {"classes": {}},
        )
    assert component.elem_id == "explorer" and component.value is None
    assert "explorer/component.js" in component.js_on_load
    component.explorer_rows({"id": "x", "query": [0, 1]})
    component.explorer_classes({"id": "x", "labels": [3]})
    assert asked == [{"id": "x", "query": [0, 1]}, {"id": "x", "labels": [3]}]


def test_class_maps_are_the_librarys():
    e = explain(registers=3)
    found = payload.class_maps(e, [4, 0])
    assert list(found) == ["4", "0"] and found["4"]["name"] == "label 4"
    assert found["0"]["probability"] == pytest.approx(float(e.logits.softmax(dim=-1)[0]))
    maps = np.frombuffer(base64.b64decode(found["4"]["data"]), "<f4").reshape(5, e.N)
    for values, name in zip(maps, CLASS_MAPS, strict=False):
        np.testing.assert_array_equal(values, getattr(e, name)(4, tokens=True))
    np.testing.assert_array_equal(maps[4, 4:].reshape(e.grid), random_map(e))
