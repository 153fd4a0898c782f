"""Pictures to look at, and as the bytes of a file."""

import io
import struct
import zlib

import numpy as np
from PIL import Image


def noise(w: int, h: int, seed: int = 0, channels: int = 3) -> np.ndarray:
    shape = (h, w, channels) if channels > 1 else (h, w)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def saved(picture: Image.Image, **options) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, **options)
    return stream.getvalue()


def png_bytes(w, h, depth=8, color=0, raw=b"", extra=()) -> bytes:
    """A PNG by hand, for what Pillow does not write."""
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, 0)), *extra]
    chunks += [(b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
        for tag, data in chunks
    )
