"""What is no picture is refused in one sentence, before it costs anything."""

import io
import os
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from support.pictures import noise, png_bytes, saved

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
