"""What is kept of a pass, against attention written out in full."""

import pytest
import torch

from vit_demo.model import ALL
from vit_demo.recorder import Recorder

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
