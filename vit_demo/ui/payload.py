"""One picture's explanation as one binary blob, from which the browser computes every map by itself.

The blob is a safetensors file; what is not an array stands in its metadata as JSON. Attention is stored
in few bits with a square-root law, which keeps small values apart:

    value = (code / most) ** 2 * scale      most: 255 or 65535; one scale a row, so that it sums to 1

A small model is sent whole ("full": every head's attention, one byte a value). For a large one
("lean") the head-mean and the read-out's rows are enough for the first maps. The rest comes when it is
needed: the heads of the layer that is looked at (`layer_rows`), those of one patch in every layer
(`query_rows`), the strongest or the weakest of the heads (`fused_rows`). A page without a server has
nobody to ask, so `for_file` sends more at once.
"""

import base64
import io
import json
from collections.abc import Sequence

import numpy as np
import safetensors.numpy
import torch
from PIL import Image
from safetensors import SafetensorError
from torch import Tensor

from vit_demo.attention import attention_distance
from vit_demo.explain import Explanation, Query
from vit_demo.map_settings import CLASS_MAPS
from vit_demo.render import CRISP_SIDE
from vit_demo.trust.methods import random_map
from vit_demo.validate import choice

HEADER = "explanation"  # the key of our own header in the metadata
FULL_LIMIT = 3_000_000  # values of attention up to which all of it is sent
FILE_LIMIT = 8_000_000  # the same for a page without a server
LAYER_LIMIT = 2_000_000  # the same for the heads of one layer
FUSED_LIMIT = 2_000_000  # the same for the strongest and the weakest of the heads
WIDE_LIMIT = 8_000_000  # values of the head-mean up to which each has two bytes


def payload(explanation: Explanation, for_file: bool = False) -> bytes:
    """Everything the browser needs to know about one picture."""
    e = explanation
    full = e.layers * e.heads * e.N * e.N <= (FILE_LIMIT if for_file else FULL_LIMIT)
    fused = e.layers * e.N * e.N <= FUSED_LIMIT
    picture, kind = picture_bytes(e.view.picture)
    preview = e.view.preview()
    finer = preview is not e.view.picture
    mean = torch.stack([e.layer_mean(layer) for layer in range(e.layers)])
    wide = mean.numel() <= WIDE_LIMIT
    arrays = {
        "picture": np.frombuffer(picture, np.uint8),
        "readout": e.recording.readout_attention.numpy(),
        **coded("mean", mean, np.uint16 if wide else np.uint8),
        **heads_of(e, full, full or (fused and for_file)),
    }
    if finer:
        arrays["preview"] = np.frombuffer(jpeg_bytes(preview, quality=85), np.uint8)
    header = {
        "model": e.model_name,
        "layers": e.layers,
        "heads": e.heads,
        "tokens": e.N,
        "grid": list(e.grid),
        "patch": list(e.view.patch_size),
        "prefix": e.config.prefix,
        "readout_tokens": list(e.readout_tokens.indices(e.N)[:2]),
        "pool": e.config.pool,
        "fit": e.view.fit,
        "full": full,
        "later": {  # what can be asked for
            "layers": not for_file and not full and e.heads * e.N * e.N <= LAYER_LIMIT,
            "fusions": not for_file and not full and fused,
        },
        "picture": {"kind": kind, "size": list(e.view.picture.size), "crisp": CRISP_SIDE},
        "preview": {"kind": "image/jpeg", "size": list(preview.size)} if finer else None,
        "top": [[p.label, p.probability, p.index] for p in e.top(10)] if e.labels else [],
        "classes": len(e.labels),
    }
    return pack(header, arrays)


def heads_of(e: Explanation, full: bool, fused: bool) -> dict[str, np.ndarray]:
    """How far each head looks; if wanted, its attention; one layer at a time.

    The strongest and the weakest of the heads have codes of their own: the minimum of numbers that
    were rounded on the scale of their own rows would be good for little.
    """
    prefix, layers = e.config.prefix_tokens, []
    with torch.inference_mode():
        for layer in range(e.layers):
            A = e.layer_attention(layer)
            distance = attention_distance(A, e.grid, e.view.patch_size, prefix)
            arrays = {"distance": distance.numpy()}
            if fused:
                arrays |= coded("max", A.amax(dim=0), np.uint8)
                arrays |= coded("min", A.amin(dim=0), np.uint8)
            if full:
                arrays |= coded("heads", A, np.uint8)
            layers.append(arrays)
    return {name: np.stack([arrays[name] for arrays in layers]) for name in layers[0]}


def query_rows(explanation: Explanation, query: Query) -> bytes:
    """For a lean payload: each head's attention from this token, and to it, (L, h, N) both."""
    e = explanation
    with torch.inference_mode():
        rows = torch.stack([e.query_attention(layer, query) for layer in range(e.layers)])
        asked = e.query_tokens(query)
        columns = torch.stack(
            [e.layer_attention(layer)[:, :, asked].mean(dim=-1) for layer in range(e.layers)]
        )
    arrays = coded("from", rows, np.uint16) | coded("to", columns, np.uint16, shares=False)
    return pack({"query": query}, arrays)


def layer_rows(explanation: Explanation, layer: int) -> bytes:
    """For a lean payload: every head's attention in one layer, (h, N, N)."""
    with torch.inference_mode():
        A = explanation.layer_attention(layer)
    return pack({"layer": layer}, coded("heads", A, np.uint8))


def fused_rows(explanation: Explanation, fusion: str) -> bytes:
    """For a lean payload: the strongest ("max") or the weakest ("min") of the heads, (L, N, N)."""
    strongest = choice("fusion", fusion, ("max", "min")) == "max"
    layers = []
    with torch.inference_mode():
        for layer in range(explanation.layers):
            A = explanation.layer_attention(layer)
            layers.append(coded(fusion, A.amax(dim=0) if strongest else A.amin(dim=0), np.uint8))
    arrays = {name: np.stack([arrays[name] for arrays in layers]) for name in layers[0]}
    return pack({"fusion": fusion}, arrays)


def class_maps(explanation: Explanation, labels: Sequence[int]) -> dict[str, dict]:
    """What the explorer knows of some classes: names, probabilities, and the maps of CLASS_MAPS
    with a random one, as `SCHEMA` orders them, (5, N) as base64."""
    e, probabilities = explanation, explanation.logits.softmax(dim=-1)
    chance = torch.zeros(e.N)
    chance[e.config.prefix_tokens :] = random_map(e).flatten()
    e.contribution(list(labels)), e.relevance(list(labels))  # one pass each for all labels
    found = {}
    for label in labels:
        maps = [*(e.class_map(name, label, tokens=True) for name in CLASS_MAPS), chance]
        data = base64.b64encode(torch.stack(maps).numpy().astype("<f4").tobytes()).decode()
        about = {"name": e.labels[label], "probability": float(probabilities[label])}
        found[str(label)] = about | {"data": data}
    return found


def coded(
    name: str, A: Tensor, dtype: type[np.unsignedinteger], shares: bool = True
) -> dict[str, np.ndarray]:
    """Values as integer codes and one scale a row; `shares`: decoded rows sum to 1."""
    most = np.iinfo(dtype).max
    peak = A.amax(dim=-1, keepdim=True).clamp_min(torch.finfo(A.dtype).tiny)
    root = (A / peak).sqrt_().mul_(most).round_()
    scale = peak[..., 0]
    if shares:
        total = (root * root).sum(dim=-1)
        scale = torch.where(total > 0, most**2 / total, 0)
    return {name: root.numpy().astype(dtype), f"{name}_scale": scale.numpy().astype(np.float32)}


def picture_bytes(picture: Image.Image) -> tuple[bytes, str]:
    """A picture as a file: lossless where single pixels will be seen, otherwise a fine JPEG."""
    if max(picture.size) > CRISP_SIDE:
        return jpeg_bytes(picture, quality=95, subsampling=0), "image/jpeg"
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue(), "image/png"


def jpeg_bytes(picture: Image.Image, **options) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "JPEG", **options)
    return stream.getvalue()


def pack(header: dict, arrays: dict[str, np.ndarray]) -> bytes:
    """Header and arrays in one blob; `unpack` is its inverse. safetensors puts the widest numbers
    first, so that each array begins where the browser may read it in place."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return safetensors.numpy.save(arrays, {HEADER: json.dumps(header, ensure_ascii=False)})


def unpack(blob: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """What `pack` packed: the header and the arrays."""
    try:
        arrays = safetensors.numpy.load(blob)
        start = 8 + int.from_bytes(blob[:8], "little")
        header = json.loads(json.loads(blob[8:start])["__metadata__"][HEADER])
    except (SafetensorError, KeyError) as error:
        message = "These are not the explorer's data; make them with payload()."
        raise ValueError(message) from error
    return header, arrays
