"""What the browser decodes from a payload, decoded in Python."""

import numpy as np
import torch
from support.models import WITH_HEAD, noise, small_classifier

from vit_demo import attention
from vit_demo.explain import Explanation
from vit_demo.ui.payload import payload, unpack

SHAPES = WITH_HEAD | {"headless, wide": {"num_classes": 0, "image_size": (16, 48)}}


def explain(seed: int = 0, **options) -> Explanation:
    """A random model that looks at noise, with clear preferences."""
    return small_classifier(seed, **{"depth": 4} | options).explain(noise(seed))


class Decoded(Explanation):
    """An explanation with the attention that the browser decodes from the payload, in Python."""

    def __init__(self, explanation: Explanation):
        self.__dict__ |= explanation.__dict__
        _, arrays = unpack(payload(explanation))
        self.mean, self.A = decoded(arrays, "mean"), decoded(arrays, "heads")
        self.fusions = {name: decoded(arrays, name) for name in ("max", "min")}

    def fused(self, layer: int, fusion: str, discard: float) -> torch.Tensor:
        A = self.mean[layer] if fusion == "mean" else self.fusions[fusion][layer]
        return attention.discard_smallest(A, discard, self.protected_tokens) if discard else A

    def query_row(self, layer: int, query, fusion: str, discard: float) -> torch.Tensor:
        return self.query_vector(query) @ self.fused(layer, fusion, discard)

    def layer_attention(self, layer: int, discard: float = 0.0) -> torch.Tensor:
        A = self.A[layer]
        return attention.discard_smallest(A, discard, self.protected_tokens) if discard else A

    def query_attention(self, layer, query, discard: float = 0.0) -> torch.Tensor:
        if query is None and not discard:
            return self.recording.readout_attention[layer]
        A, asked = self.A[layer].clone(), self.query_tokens(query)
        if query is None and asked == slice(0, 1):
            A[:, 0] = self.recording.readout_attention[layer]  # these are sent as they are
        if discard:
            A = attention.discard_smallest(A, discard, self.protected_tokens)
        return A[:, asked].mean(dim=1)


def decoded(arrays: dict[str, np.ndarray], name: str) -> torch.Tensor:
    codes, scale = arrays[name], arrays[f"{name}_scale"]
    table = ((np.arange(np.iinfo(codes.dtype).max + 1) / np.iinfo(codes.dtype).max) ** 2).astype(
        "f4"
    )
    return torch.from_numpy(table[codes] * scale[..., None])
