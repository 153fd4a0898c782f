"""Pictures made to break things, always the same ones: python tests/corpus.py DIR writes them.

`samples` are made by hand, one for each trap we know, and say whether a picture comes out of them.
`mutants` are samples that were damaged by chance; some still are pictures, most are not.
"""

import io
import random
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

MEGA = 1_000_000
EXTENSIONS = (".png", ".jpg", ".gif", ".tif", ".webp", ".bmp", ".txt", ".exe", "")


@dataclass(frozen=True)
class Sample:
    kind: str
    name: str
    data: bytes
    accepted: bool | None = None  # None: either will do, as long as it is an answer or a message


def picture(w: int = 24, h: int = 18, mode: str = "RGB") -> Image.Image:
    """A few colours that change slowly, so that files stay small and a flipped bit is seen."""
    y, x = np.mgrid[:h, :w]
    pixels = np.stack([x * 10 % 256, y * 14 % 256, (x + y) * 6 % 256], axis=-1).astype(np.uint8)
    return Image.fromarray(pixels).convert(mode)


def saved(image: Image.Image, kind: str, **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


# The containers, put together by hand where Pillow would not write such a thing


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(w: int, h: int, depth: int, colour: int, pixels: bytes, *chunks: bytes) -> bytes:
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, 0))
    end = png_chunk(b"IDAT", pixels) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + end


def png_with(*chunks: bytes) -> bytes:
    return png(2, 2, 8, 0, zlib.compress(bytes(6)), *chunks)


def zeros(count: int) -> bytes:
    """So many zero bytes, compressed, without ever having them all."""
    packer, block = zlib.compressobj(9), bytes(MEGA)
    parts = [packer.compress(block[: min(MEGA, count - at)]) for at in range(0, count, MEGA)]
    return b"".join([*parts, packer.flush()])


def tiff(tags: dict[int, tuple[int, int, int]], data: bytes = b"") -> bytes:
    """Little-endian; a tag is (type, count, value), and "data" as a value is where the data lie."""
    start = 8 + 2 + 12 * len(tags) + 4
    entries = b"".join(
        struct.pack("<HHII", tag, kind, count, start if value == "data" else value)
        for tag, (kind, count, value) in sorted(tags.items())
    )
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + data


def tiff_picture(w: int, h: int, bits: int, data: bytes, **more) -> bytes:
    """Grey, deflate, one strip."""
    tags = {256: (4, 1, w), 257: (4, 1, h), 258: (3, 1, bits), 259: (3, 1, 8), 262: (3, 1, 1)}
    tags |= {273: (4, 1, "data"), 277: (3, 1, 1), 278: (4, 1, h), 279: (4, 1, len(data))}
    return tiff(tags | more.get("tags", {}), data)


def same_bytes_again(count: int = 3_000, size: int = 500_000) -> dict:
    """Tags that all have the same contents: half a megabyte to write, 1.5 GB to read."""
    return {1000 + i: (7, size, "data") for i in range(count)}


def jpeg_with(*segments: bytes) -> bytes:
    plain = saved(picture(), "JPEG")
    end = 4 + struct.unpack(">H", plain[4:6])[0]  # instead of the JFIF segment
    return plain[:2] + b"".join(segments) + plain[end:]


def segment(marker: int, data: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def exif_segments(exif: bytes, size: int = 65_000) -> list[bytes]:
    parts = [exif[at : at + size] for at in range(0, len(exif), size)]
    return [segment(0xE1, b"Exif\0\0" + part) for part in parts]


def gif_with(block: bytes) -> bytes:
    plain = saved(picture().quantize(4), "GIF")
    start = 13 + 3 * 2 ** ((plain[10] & 7) + 1)  # after the palette
    return plain[:start] + block + plain[start:]


def webp_of_size(w: int, h: int) -> bytes:
    """A lossless WebP whose header says so; there are hardly any pixels behind it."""
    head = b"\x2f" + struct.pack("<I", (w - 1) | (h - 1) << 14) + bytes(200)
    body = b"WEBPVP8L" + struct.pack("<I", len(head)) + head + bytes(len(head) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def with_frame_size(gif: bytes, w: int, h: int) -> bytes:
    at = gif.index(b"\x2c\0\0\0\0") + 5
    return gif[:at] + struct.pack("<HH", w, h) + gif[at + 4 :]


def many_passes(side: int, passes: int) -> bytes:
    """A progressive JPEG whose last pass comes again and again."""
    plain = saved(Image.new("L", (side, side), 100), "JPEG", progressive=True)
    start = plain.rfind(b"\xff\xc4", 0, plain.rfind(b"\xff\xda"))
    return plain[:-2] + plain[start:-2] * passes + plain[-2:]


# By hand


def bombs() -> Iterator[tuple[str, bytes, bool | None]]:
    """Small files with a great appetite."""
    side, rows = 12_000, zeros(12_000 * 1_501)
    yield "pixels.png", png(side, side, 1, 0, rows), False
    yield "pixels.tif", tiff_picture(side, side, 1, zeros(side * 1_500)), False
    gif = saved(picture().quantize(4), "GIF")
    yield "screen.gif", gif[:6] + struct.pack("<HH", 65_535, 65_535) + gif[10:], False
    yield "frame.gif", with_frame_size(gif, 60_000, 60_000), False
    yield "pixels.webp", webp_of_size(16_383, 16_383), False
    jpeg = saved(picture(), "JPEG")
    at = jpeg.index(b"\xff\xc0") + 5
    yield "pixels.jpg", jpeg[:at] + struct.pack(">HH", 65_500, 65_500) + jpeg[at + 4 :], False
    bmp = saved(picture(), "BMP")
    yield "pixels.bmp", bmp[:18] + struct.pack("<ii", 50_000, 50_000) + bmp[26:], False
    tile = {322: (4, 1, 9_000), 323: (4, 1, 9_000), 324: (4, 1, "data")}
    data = zeros(9_000 * 9_000)
    tile |= {325: (4, 1, len(data))}
    yield "tile.tif", tiff_picture(1, 1, 8, data, tags=tile), False
    again, block = same_bytes_again(), bytes(500_000)
    yield "tags.tif", tiff_picture(1, 1, 8, zeros(1) + block, tags=again), False
    sub = {34665: (4, 1, "data")}  # the trap lies in the EXIF directory of the TIFF
    start = len(tiff_picture(1, 1, 8, b"", tags=sub))
    inner = tiff({tag: (7, 500_000, start) for tag in again}, block)
    yield "exif-tags.tif", tiff_picture(1, 1, 8, inner[8:], tags=sub), False
    exif = tiff(again, block)
    yield "tags.png", png_with(png_chunk(b"eXIf", exif)), True
    yield "tags.webp", saved(picture(), "WEBP", exif=b"Exif\0\0" + exif), True
    yield "tags.jpg", jpeg_with(*exif_segments(exif)), True
    less = tiff(same_bytes_again(size=300_000), bytes(300_000))  # as text: at most a megabyte
    text = zlib.compress(b"\nexif\n%8d\n" % len(less) + less.hex().encode())
    yield "text-tags.png", png_with(png_chunk(b"zTXt", b"Raw profile type exif\0\0" + text)), True
    yield "segments.jpg", jpeg_with(*exif_segments(bytes(300_000), 10)), False
    yield "comment.gif", gif_with(b"!\xfe" + b"\x0acccccccccc" * 60_000 + b"\0"), False
    yield "passes.jpg", many_passes(2_000, 500), False
    yield "text.png", png_with(png_chunk(b"zTXt", b"Comment\0\0" + zeros(20 * MEGA))), None
    yield "profile.png", png_with(png_chunk(b"iCCP", b"p\0\0" + zeros(20 * MEGA))), None
    yield "long.png", png(4_000_000, 1, 1, 0, zeros(500_001)), False
    yield "nothing.png", png(0, 5, 8, 0, zlib.compress(b"")), False


def good() -> Iterator[tuple[str, str, bytes]]:
    """Unusual, but pictures."""
    for name, kind in (("p.png", "PNG"), ("p.jpg", "JPEG"), ("p.bmp", "BMP"), ("p.webp", "WEBP")):
        yield "plain", name, saved(picture(), kind)
    yield "plain", "lossless.webp", saved(picture(), "WEBP", lossless=True)
    yield "plain", "progressive.jpg", saved(picture(), "JPEG", progressive=True)
    yield "plain", "p.gif", saved(picture().quantize(16), "GIF")
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        yield "plain", f"{compression}.tif", saved(picture(), "TIFF", compression=compression)
    for kind in ("PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP"):
        yield "1x1", f"dot.{kind.lower()}", saved(picture(1, 1), kind)
        yield "1x10000", f"thread.{kind.lower()}", saved(picture(1, 10_000), kind)
    yield "1x10000", "lying.png", saved(picture(10_000, 1), "PNG")
    deep = Image.fromarray((np.arange(24 * 18) * 150).astype(np.uint16).reshape(18, 24))
    yield "16-bit", "deep.png", saved(deep, "PNG")
    yield "16-bit", "deep.tif", saved(deep, "TIFF")
    yield "16-bit", "rgb.png", png(4, 4, 16, 2, zlib.compress((b"\0" + bytes(range(24))) * 4))
    yield "cmyk", "print.jpg", saved(picture(mode="CMYK"), "JPEG")
    yield "cmyk", "print.tif", saved(picture(mode="CMYK"), "TIFF")
    palette = picture().quantize(16)
    yield "palette", "clear.png", saved(palette, "PNG", transparency=3)
    yield "palette", "steps.png", saved(palette, "PNG", transparency=bytes(range(0, 256, 16)))
    yield "palette", "clear.gif", saved(palette, "GIF", transparency=3)
    yield "transparent", "ghost.png", saved(Image.new("RGBA", (9, 9)), "PNG")
    yield "transparent", "ghost.webp", saved(Image.new("RGBA", (9, 9)), "WEBP")
    frames = [picture().rotate(angle) for angle in (0, 40, 80, 120)]
    for kind in ("GIF", "WEBP", "PNG", "TIFF"):
        film = saved(frames[0], kind, save_all=True, append_images=frames[1:])
        yield "animated", f"film.{kind.lower()}", film
    exif = tiff({270: (2, 60_000, "data")}, b"d" * 60_000)
    yield "exif", "long.jpg", jpeg_with(*exif_segments(exif))
    exif = tiff({274: (3, 1, 6), 270: (2, 2 * MEGA, "data")}, b"d" * 2 * MEGA)
    yield "exif", "huge.png", png_with(png_chunk(b"eXIf", exif))
    yield "exif", "huge.webp", saved(picture(), "WEBP", exif=b"Exif\0\0" + exif)
    yield "exif", "huge.jpg", jpeg_with(*exif_segments(exif))
    yield "exif", "noise.jpg", jpeg_with(*exif_segments(random.Random(1).randbytes(60_000)))
    yield "icc", "noise.png", saved(picture(), "PNG", icc_profile=random.Random(2).randbytes(5_000))
    yield "icc", "huge.jpg", saved(picture(), "JPEG", icc_profile=random.Random(3).randbytes(MEGA))
    yield "icc", "noise.tif", saved(picture(), "TIFF", icc_profile=bytes(5_000))
    loop = tiff_picture(2, 2, 8, zlib.compress(bytes(4)))
    at = 8 + 2 + 12 * 9
    yield "loop", "ring.tif", loop[:at] + struct.pack("<I", 8) + loop[at + 4 :]
    yield "extension", "photo.exe", saved(picture(), "PNG")
    yield "extension", "photo.png", saved(picture(), "JPEG")
    yield "extension", "photo", saved(picture(), "WEBP")
    plain = saved(picture(), "PNG")
    for name in ("고양이 사진.png", "naïve café ☕.png", "a'b\"c&d<e>.png", "x" * 200 + ".png"):
        yield "name", name, plain
    for name in ("../../up.png", "..\\up.png", "%2e%2e%2fup.png", "-rf.png", "a;b|c$(d).png"):
        yield "name", name, plain


def bad() -> Iterator[tuple[str, str, bytes]]:
    """No pictures, or no whole ones."""
    for kind in ("PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP"):
        whole, name = saved(picture(64, 48), kind), f".{kind.lower()}"
        yield "cut", f"head{name}", whole[:12]
        yield "cut", f"half{name}", whole[: len(whole) // 2]
        yield "signature", f"noise{name}", whole[:16] + random.Random(4).randbytes(500)
    yield "no picture", "empty.png", b""
    yield "no picture", "one-byte.png", b"\x89"
    yield "no picture", "text.jpg", b"This is no picture.\n" * 50
    yield "no picture", "page.png", b"<!doctype html><script>alert(1)</script>"
    yield "no picture", "drawing.svg", b'<svg xmlns="http://www.w3.org/2000/svg"/>'
    yield "no picture", "weights.png", b"\x80\x02}q\x00."
    yield "no picture", "program.jpg", b"\x7fELF" + bytes(500)
    yield "no picture", "archive.png", b"PK\x03\x04" + bytes(500)
    yield "no picture", "script.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"
    yield "no picture", "noise.png", random.Random(5).randbytes(5_000)


@cache
def samples() -> list[Sample]:
    found = [Sample(kind, name, data, True) for kind, name, data in good()]
    found += [Sample(kind, name, data, False) for kind, name, data in bad()]
    return found + [Sample("bomb", name, data, accepted) for name, data, accepted in bombs()]


# By chance

DAMAGE = ("cut", "flip", "overwrite", "remove", "repeat", "number", "splice")


def mutants(count: int, seed: int = 0) -> Iterator[Sample]:
    """So many damaged files, made from small good ones."""
    rng = random.Random(seed)
    whole = [sample.data for sample in samples() if sample.accepted and len(sample.data) < 4_000]
    for number in range(count):
        data, kind = bytearray(rng.choice(whole)), DAMAGE[number % len(DAMAGE)]
        for _ in range(rng.choice((1, 1, 2, 5))):
            damage(data, kind, rng, whole)
        yield Sample(kind, f"{number}{rng.choice(EXTENSIONS)}", bytes(data))


def damage(data: bytearray, kind: str, rng: random.Random, whole: list[bytes]) -> None:
    """One piece of damage; more often near the head, where it matters most."""
    last = max(1, len(data) - 1)
    at = rng.randrange(min(last, 64)) if rng.random() < 0.5 else rng.randrange(last)
    size = rng.choice((1, 2, 4, 16, 100))
    if kind == "cut":
        del data[max(1, at) :]
    elif kind == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "overwrite":
        data[at : at + size] = rng.randbytes(size)
    elif kind == "remove":
        del data[at : at + size]
    elif kind == "repeat":
        data[at:at] = data[at : at + size] * rng.choice((1, 3, 50))
    elif kind == "number":  # the numbers that programmers forget
        number = rng.choice((0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))
        width = 2 if number <= 0xFFFF and rng.random() < 0.5 else 4
        data[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))
    else:
        data[at:] = rng.choice(whole)[at:]
    if not data:
        data += b"\0"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for index, sample in enumerate([*samples(), *mutants(2_100)]):
        plain = "".join(c if c.isalnum() or c in ".-" else "_" for c in sample.name)[-60:]
        kind = sample.kind.replace(" ", "-")
        (folder / f"{index:04}-{kind}-{plain}").write_bytes(sample.data)
    print(f"{index + 1} files in {folder}")
