"""What is kept of a pass, against attention written out in full."""

import pytest
import torch

from vit_demo.model import ALL, VisionTransformer, ViTConfig, readout_tokens
from vit_demo.recorder import InputRecorder, Recorder

LAYERS, PICTURES, HEADS, N, WIDTH = 3, 2, 2, 13, 8
READOUTS = {"class token": slice(0, 1), "two tokens": slice(0, 2), "patches": slice(1, None)}


class AllAtOnce(Recorder):
    """As on a GPU: all pictures together."""

    def __call__(self, q, k, v):
        if self.layer == 0:
            self.make_room(q)
        seen = self.see(ALL, *self.keep(q, k), v)
        self.layer += 1
        return seen


@pytest.mark.parametrize("kind", [Recorder, AllAtOnce])
@pytest.mark.parametrize("rows_at_once", [1, 4, N])
@pytest.mark.parametrize("readout", READOUTS.values(), ids=READOUTS)
def test_any_number_of_rows_at_once_records_the_same(kind, rows_at_once, readout, monkeypatch):
    monkeypatch.setattr("vit_demo.recorder.AT_ONCE", rows_at_once * HEADS * N)
    monkeypatch.setattr("vit_demo.recorder.FEW", 1)
    torch.manual_seed(1)
    recorder = kind(LAYERS, readout)
    for layer in range(LAYERS):
        qkv = torch.randn(PICTURES, N, 3, HEADS, WIDTH).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        A = torch.softmax(q @ k.mT / WIDTH**0.5, dim=-1)
        seen = recorder(q, k, v)
        assert recorder.few == rows_at_once
        torch.testing.assert_close(seen, (A @ v)[:, :, : seen.shape[2]])
        for picture, kept in enumerate(recorder.recordings):
            own = A[picture][:, readout].mean(dim=1)
            torch.testing.assert_close(kept.readout_attention[layer], own)
            torch.testing.assert_close(kept.attention(layer), A[picture])
            torch.testing.assert_close(kept.mean_of(layer), A[picture].mean(dim=0))


@pytest.mark.parametrize("shape", [{}, {"qkv_bias": False, "distilled": True}, {"pool": "avg"}])
def test_queries_and_keys_made_later_are_those_of_the_pass(shape):
    model = VisionTransformer(ViTConfig(32, 8, embed_dim=24, depth=LAYERS, heads=3, **shape)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    own = readout_tokens(model.config)
    at_once, later = Recorder(LAYERS, own), InputRecorder(LAYERS, own)
    with torch.inference_mode():
        images = torch.randn(PICTURES, 3, 32, 32)
        answers = [recorder.watch(model, images) for recorder in (at_once, later)]
        torch.testing.assert_close(answers, [model(images)] * 2)
    for kept, lean in zip(at_once.recordings, later.recordings, strict=True):
        assert lean.nbytes < kept.nbytes and not lean.queries
        for layer, block in enumerate(model.blocks):
            made = lean.with_queries(layer, block)
            torch.testing.assert_close(made.attention(layer), kept.attention(layer))
            torch.testing.assert_close(made.mean_of(layer), kept.mean_of(layer))
        assert lean.nbytes == kept.nbytes and not lean.inputs  # what is made replaces its input
