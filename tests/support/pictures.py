"""Pictures to look at, and as the bytes of a file."""

import io

import numpy as np
from PIL import Image


def noise(w: int, h: int, seed: int = 0, channels: int = 3) -> np.ndarray:
    shape = (h, w, channels) if channels > 1 else (h, w)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def saved(picture: Image.Image, **options) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, **options)
    return stream.getvalue()
