"""What is no picture is refused in one sentence, before it costs anything."""

import io
import os
import struct
import tracemalloc
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile
from support import corpus
from support.pictures import noise, png_bytes, saved

from vit_demo import image
from vit_demo.image import ImageError, open_image

# Formats and modes

RGB = noise(23, 17)


def refused(source) -> str:
    with pytest.raises(ImageError) as caught:
        open_image(source)
    message = str(caught.value)
    assert message[-1] == "." and "/" not in message and "0x" not in message
    return message


@pytest.mark.parametrize(
    ("side", "millions"), [(8001, "64.0"), (10_000, "100.0"), (50_000, "2500")]
)
def test_too_many_pixels_are_refused_before_decoding(tmp_path, side, millions):
    path = tmp_path / "large.png"
    path.write_bytes(
        png_bytes(side, side, 1, 0, bytes(side // 8 + 2) * side if side < 2e4 else b"")
    )
    tracemalloc.start()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr("PIL.ImageFile.ImageFile.load", lambda *a: pytest.fail("decoded"))
        message = refused(path)
        assert refused(path.read_bytes()).startswith("The picture")
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    assert f"{millions}" in message and "limit is 64" in message and "smaller" in message
    assert '"large.png"' in message


def test_the_limit_itself_is_allowed(monkeypatch):
    monkeypatch.setattr("vit_demo.image.MAX_PIXELS", 23 * 17)
    assert open_image(RGB).size == open_image(Image.fromarray(RGB)).size == (23, 17)
    monkeypatch.setattr("vit_demo.image.MAX_PIXELS", 23 * 17 - 1)
    for source in (RGB, Image.fromarray(RGB), saved(Image.fromarray(RGB), format="BMP")):
        assert "megapixels" in refused(source)


def test_endless_threads_are_refused():
    assert "cut out a part" in refused(png_bytes(2_000_000, 1, 1, 0, bytes(250_001)))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"])
def test_a_file_cut_short_is_refused_by_name(tmp_path, kind):
    data = saved(Image.fromarray(noise(80, 60)), format=kind)
    for length in (12, 40, len(data) // 2, len(data) - 40):
        path = tmp_path / f"cut.{kind.lower()}"
        path.write_bytes(data[:length])
        message = refused(path)
        assert path.name in message and "cut short" in message and "again" in message


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_files_never_escape_as_another_error(data):
    kind = data.draw(st.sampled_from(["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"]))
    good = bytearray(saved(Image.fromarray(noise(20, 15)), format=kind))
    for _ in range(data.draw(st.integers(1, 5))):
        good[data.draw(st.integers(0, min(200, len(good) - 1)))] = data.draw(st.integers(0, 255))
    try:
        assert open_image(bytes(good)).mode == "RGB"
    except ImageError as error:
        assert str(error).endswith(".")


def test_each_kind_of_bad_source_has_its_own_message(tmp_path, monkeypatch):
    text = tmp_path / "notes.png"
    text.write_text("this is no picture")
    empty = tmp_path / "empty.jpg"
    empty.touch()
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    real = tmp_path / "real.png"
    Image.fromarray(RGB).save(real)
    messages = {
        "text": refused(text),
        "empty": refused(empty),
        "folder": refused(tmp_path),
        "missing": refused(tmp_path / "no" / "cat.png"),
        "pipe": refused(pipe),
        "address": refused("https://example.com/cat.png"),
        "nothing": refused(None),
        "text mode": refused(io.StringIO("hello")),
        "truncated": refused(real.read_bytes()[:300]),
        "no pixels": refused(Image.new("RGB", (0, 5))),
    }
    closed = io.BytesIO(b"x")
    closed.close()
    messages["closed"] = refused(closed)

    def denied(*args, **options):
        raise PermissionError(13, "Permission denied", str(real))

    monkeypatch.setattr("builtins.open", denied)
    messages["denied"] = refused(real)
    assert len(set(messages.values())) == len(messages)
    for key, words in {
        "text": ["notes.png", "use JPEG, PNG, WEBP, GIF, TIFF or BMP"],
        "empty": ["empty.jpg", "0 bytes", "again"],
        "folder": ["folder", "choose"],
        "missing": ["cat.png", "check the name"],
        "pipe": ["pipe.png", "ordinary file"],
        "address": ["ive a file, not an address"],
        "nothing": ["give a file"],
        "text mode": ['"rb"'],
        "truncated": ["cut short", "again"],
        "no pixels": ["no pixels", "0 x 5", "choose"],
        "closed": ["again"],
        "denied": ["real.png", "cannot be read", "check"],
    }.items():
        for word in words:
            assert word in messages[key], (key, messages[key])


def test_other_formats_are_not_even_tried():
    for kind in ("PPM", "ICO", "PCX", "EPS", "PDF"):
        assert "use JPEG" in refused(saved(Image.fromarray(RGB), format=kind))
    assert "use JPEG" in refused(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    assert "not an address" in refused("data:image/png;base64,AAAA")


def test_a_zero_size_header():
    assert "again" in refused(png_bytes(0, 5))


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.zeros((0, 5, 3), dtype=np.uint8), "no pixels"),
        (np.zeros((5, 0)), "no pixels"),
        (np.zeros((4, 4, 2), dtype=np.uint8), "channels"),
        (np.zeros((3, 4, 4, 3), dtype=np.uint8), "channels"),
        (np.zeros(4), "channels"),
        (np.full((4, 4), 1.5), "0..1"),
        (np.full((4, 4), -0.1), "0..1"),
        (np.full((4, 4), np.nan), "0..1"),
        (np.zeros((4, 4), dtype=np.int64), "use uint8"),
        (np.zeros((4, 4), dtype=complex), "use uint8"),
    ],
)
def test_arrays_that_are_no_pictures_are_refused(array, word):
    assert word in refused(array)


def test_memory_errors_are_not_called_damage(monkeypatch):
    def full(*args):
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", full)
    assert "memory" in refused(Image.new("L", (4, 4)))


def strips(count: int) -> bytes:
    """A column of grey pixels, a strip for each, all of which lie at one place."""
    tags = {256: (4, 1, 1), 257: (4, 1, count), 258: (3, 1, 8), 259: (3, 1, 1), 262: (3, 1, 1)}
    tags |= {273: (4, count, "data"), 277: (3, 1, 1), 278: (4, 1, 1), 279: (4, 1, 1)}
    return corpus.tiff(tags, struct.pack("<I", 8) * count)


def tiles(width: int, height: int, of: tuple[int, int], twice: bool = False) -> bytes:
    """A black picture in tiles that all lie at one place; `twice`: their size is given twice."""
    across, down = (-(-side // tile) for side, tile in zip((width, height), of, strict=True))
    tile = corpus.zeros(of[0] * of[1])
    count, start = across * down, 8 + 2 + 12 * (10 + 2 * twice) + 4
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, 8)]
    tags += [(262, 3, 1, 1), (277, 3, 1, 1), (322, 4, 1, of[0]), (323, 4, 1, of[1])]
    tags += [(322, 4, 1, 16), (323, 4, 1, 16)] if twice else []
    single = count == 1
    tags += [(324, 4, count, start + 4 * count if single else start)]
    tags += [(325, 4, count, len(tile) if single else start + 4 * count)]
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    places = struct.pack("<I", start + 8 * count) * count + struct.pack("<I", len(tile)) * count
    if single:
        places = bytes(4)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + places + tile


def pieces(count: int) -> bytes:
    """A PNG whose pixels come between many empty pieces."""
    pixels = zlib.compress(bytes(101 * 100))
    data = [pixels[:5], *[b""] * count, pixels[5:]]
    head = struct.pack(">IIBBBBB", 100, 100, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", head), *((b"IDAT", part) for part in data), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(corpus.png_chunk(*chunk) for chunk in chunks)


def run_lengths(side: int) -> bytes:
    """A black BMP, a run of 200 pixels in each row."""
    pixels = b"\xc8\0\0\0" * side
    size = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, len(pixels), 0, 0, 256, 0)
    start = 14 + len(size) + 1024
    return (
        b"BM" + struct.pack("<IHHI", start + len(pixels), 0, 0, start) + size + bytes(1024) + pixels
    )


def test_pictures_in_too_many_pieces_are_refused(monkeypatch):
    """The same with fewer pieces is opened: it is the number that is refused."""
    assert open_image(strips(10)).size == (1, 10)
    assert open_image(pieces(1_000)).size == (100, 100)
    assert open_image(run_lengths(200)).size == (200, 200)
    assert "more metadata than pictures have" in refused(pieces(100_000))
    monkeypatch.setattr(ImageFile.ImageFile, "load", None)  # those two before they are decoded
    assert "more metadata than pictures have" in refused(strips(100_000))
    assert "run-length BMP, which takes too long; save it as PNG" in refused(run_lengths(3_000))


def test_tiles_that_are_mostly_outside_of_the_picture_are_counted(monkeypatch):
    assert open_image(tiles(40, 40, (16, 16))).size == (40, 40)
    monkeypatch.setattr(ImageFile.ImageFile, "load", None)  # before a pixel is decoded
    assert "in whole tiles, has 2048.0 megapixels" in refused(tiles(1, 20_000, (100_000, 512)))


def test_a_tag_that_stands_there_twice_is_refused(monkeypatch):
    """Pillow would take the last one, and what decodes the tiles the first."""
    monkeypatch.setattr(ImageFile.ImageFile, "load", None)
    assert "more metadata than pictures have" in refused(tiles(16, 16, (4_000, 4_000), twice=True))


@pytest.mark.parametrize(
    "mode, format", [("RGBA", "PNG"), ("LA", "PNG"), ("CMYK", "JPEG"), ("RGB", "WEBP")]
)
def test_what_would_need_too_much_memory_is_refused_before_it_is_decoded(mode, format, monkeypatch):
    data = corpus.saved(Image.new(mode, (100, 80)), format)
    monkeypatch.setattr(image, "DECODING_BYTES", 20 * 100 * 80)
    assert open_image(data).size == (100, 80)
    monkeypatch.setattr(image, "DECODING_BYTES", 8 * 100 * 80 - 1)
    monkeypatch.setattr(ImageFile.ImageFile, "load", None)
    with pytest.raises(
        ImageError, match="0.0 megapixels and would take 0 MB to open, but the limit"
    ):
        open_image(data)


def test_colours_are_the_same_however_many_rows_are_converted_at_a_time(monkeypatch):
    deep = Image.fromarray(np.linspace(0, 65535, 4 * 30).reshape(30, 4).astype(np.uint16))
    shares = Image.fromarray(np.linspace(0, 1, 4 * 30).reshape(30, 4).astype(np.float32))
    clear = Image.fromarray(np.arange(4 * 30 * 4, dtype=np.uint8).reshape(30, 4, 4), "RGBA")
    palette = clear.convert("RGB").quantize(7)
    for picture in (deep, shares, clear, palette, palette.convert("LA")):
        monkeypatch.setattr(image, "BAND_PIXELS", 10**6)
        whole = open_image(picture)
        monkeypatch.setattr(image, "BAND_PIXELS", 4 * 7)
        assert open_image(picture) == whole
