"""The picture's way in, held against Pillow's writers and files made by hand."""

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
from PIL import Image
from support.pictures import noise, saved

from vit_demo.image import ImageError, open_image


def png_bytes(w, h, depth=8, color=0, raw=b"", extra=()) -> bytes:
    """A PNG by hand, for what Pillow does not write."""
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, 0)), *extra]
    chunks += [(b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
        for tag, data in chunks
    )


# --- formats and modes ------------------------------------------------------------------------

RGB = noise(23, 17)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.png", {}),
        ("a.bmp", {}),
        ("a.tiff", {}),
        ("a.tif", {"compression": "tiff_lzw"}),
        ("a.tif", {"compression": "tiff_deflate"}),
        ("a.webp", {"lossless": True}),
    ],
)
def test_lossless_formats(tmp_path, name, options):
    path = tmp_path / name
    Image.fromarray(RGB).save(path, **options)
    for source in (path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes())):
        picture = open_image(source)
        assert type(picture) is Image.Image and picture.mode == "RGB"
        np.testing.assert_array_equal(np.asarray(picture), RGB)
    with open(path, "rb") as stream:
        stream.read(5)
        np.testing.assert_array_equal(np.asarray(open_image(stream)), RGB)
        assert not stream.closed


@pytest.mark.parametrize("name", ["a.jpg", "a.webp"])
def test_lossy_formats(tmp_path, name):
    smooth = np.asarray(Image.fromarray(noise(4, 3)).resize((64, 48)))
    Image.fromarray(smooth).save(tmp_path / name, quality=95)
    assert abs(np.asarray(open_image(tmp_path / name), dtype=int) - smooth).mean() < 4


def test_phone_mpo_is_a_jpeg():
    frames = [Image.new("RGB", (20, 10), colour) for colour in ("red", "blue")]
    data = saved(frames[0], format="MPO", save_all=True, append_images=frames[1:])
    assert Image.open(io.BytesIO(data)).format == "MPO"
    r, g, b = open_image(data).getpixel((5, 5))
    assert r > 240 and g < 15 and b < 15


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_first_frame(kind):
    frames = [Image.new("RGB", (20, 10), colour) for colour in ("red", "blue", "lime")]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = saved(frames[0], format=kind, save_all=True, append_images=frames[1:], **options)
    assert Image.open(io.BytesIO(data)).n_frames == 3
    assert open_image(data).getpixel((5, 5)) == (255, 0, 0)


def test_grey_and_one_bit():
    grey = noise(9, 7, channels=1)
    stacked = np.stack([grey] * 3, axis=2)
    np.testing.assert_array_equal(np.asarray(open_image(Image.fromarray(grey))), stacked)
    data = saved(Image.fromarray(grey), format="PNG")
    np.testing.assert_array_equal(np.asarray(open_image(data)), stacked)
    bits = grey > 127
    data = saved(Image.fromarray(bits), format="PNG")
    assert Image.open(io.BytesIO(data)).mode == "1"
    np.testing.assert_array_equal(np.asarray(open_image(data))[:, :, 1], bits * 255)


def test_sixteen_bits():
    deep = np.array([[0, 128, 129, 257, 32768, 65278, 65535]], dtype=np.uint16)
    expected = [0, 0, 1, 1, 128, 254, 255]  # value / 257, rounded
    for kind in ("PNG", "TIFF"):
        picture = open_image(saved(Image.fromarray(deep), format=kind))
        assert list(np.asarray(picture)[0, :, 0]) == expected
    big = Image.frombytes("I;16B", (7, 1), deep.astype(">u2").tobytes())
    assert list(np.asarray(open_image(big))[0, :, 2]) == expected
    wide = Image.fromarray(np.concatenate([deep, deep[:, ::-1]]).astype(np.int32))
    assert wide.mode == "I"
    assert np.asarray(open_image(wide))[:, :, 0].tolist() == [expected, expected[::-1]]
    transparent = png_bytes(
        7, 1, 16, 0, b"\0" + deep.astype(">u2").tobytes(), [(b"tRNS", struct.pack(">H", 257))]
    )
    assert list(np.asarray(open_image(transparent))[0, :, 0]) == [0, 0, 1, 255, 128, 254, 255]
    colour = struct.pack(">6H", 65535, 0, 0x8080, 0x1200, 0x5600, 0x9A00)
    picture = open_image(png_bytes(2, 1, 16, 2, b"\0" + colour))
    assert np.asarray(picture).tolist() == [[[255, 0, 128], [0x12, 0x56, 0x9A]]]


def test_float_tiff():
    def values(numbers):
        array = np.array([numbers], dtype=np.float32)
        picture = open_image(saved(Image.fromarray(array), format="TIFF"))
        return list(np.asarray(picture)[0, :, 0])

    assert values([0, 0.5, 1]) == [0, 128, 255]
    assert values([-5, 0.6, 100, 300]) == [0, 1, 100, 255]
    assert values([np.nan, np.inf, -np.inf, 1]) == [0, 0, 0, 255]


def test_alpha_on_white():
    rgba = np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [0, 0, 0, 128]]], dtype=np.uint8)
    expected = [[[10, 20, 30], [255, 255, 255], [127, 127, 127]]]
    picture = Image.fromarray(rgba)
    for source in (
        rgba,
        picture,
        saved(picture, format="PNG"),
        saved(picture, format="TIFF"),
        saved(picture, format="WEBP", lossless=True, exact=True),
    ):
        assert np.asarray(open_image(source)).tolist() == expected
    grey = Image.merge("LA", [Image.new("L", (2, 1), 100), Image.new("L", (2, 1), 0)])
    assert open_image(saved(grey, format="PNG")).getpixel((0, 0)) == (255, 255, 255)
    rgb = png_bytes(
        2, 1, 8, 2, bytes([0, 9, 9, 9, 1, 2, 3]), [(b"tRNS", struct.pack(">3H", 9, 9, 9))]
    )
    assert np.asarray(open_image(rgb)).tolist() == [[[255] * 3, [1, 2, 3]]]


def test_palettes():
    palette = Image.new("P", (3, 1))
    palette.putpalette([200, 0, 0, 0, 100, 0, 0, 0, 50])
    palette.putdata([0, 1, 2])
    solid = [[200, 0, 0], [0, 100, 0], [0, 0, 50]]
    for kind in ("PNG", "GIF", "BMP", "TIFF"):
        assert np.asarray(open_image(saved(palette, format=kind))).tolist() == [solid]
    for kind in ("PNG", "GIF"):  # one index is transparent
        data = saved(palette, format=kind, transparency=1)
        assert np.asarray(open_image(data)).tolist() == [[solid[0], [255] * 3, solid[2]]]
    data = saved(palette, format="PNG", transparency=bytes([255, 0, 255]))
    assert np.asarray(open_image(data)).tolist() == [[solid[0], [255] * 3, solid[2]]]
    both = palette.convert("PA")
    assert np.asarray(open_image(both)).tolist() == [solid]


def test_other_colour_spaces(tmp_path):
    cmyk = Image.new("CMYK", (16, 16), (0, 255, 255, 0))  # red
    for kind in ("JPEG", "TIFF"):
        r, g, b = open_image(saved(cmyk, format=kind)).getpixel((8, 8))
        assert r > 245 and g < 10 and b < 10
    red = Image.new("RGB", (4, 4), (200, 40, 30))
    for mode in ("YCbCr", "HSV", "RGBX", "LAB"):
        if mode == "LAB":
            from PIL import ImageCms

            profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
            converted = ImageCms.applyTransform(
                red, ImageCms.buildTransform(*profiles, "RGB", "LAB")
            )
            converted = Image.open(io.BytesIO(saved(converted, format="TIFF")))
        else:
            converted = red.convert(mode)
        assert converted.mode == mode
        got = np.array(open_image(converted).getpixel((1, 1)), dtype=int)
        assert abs(got - (200, 40, 30)).max() <= 3


def test_arrays():
    grey = noise(5, 4, channels=1)
    stacked = np.stack([grey] * 3, axis=2)
    for array, expected in [
        (RGB, RGB),
        (RGB[::-1, ::2], RGB[::-1, ::2]),
        (RGB / 255, RGB),
        ((RGB / 255).astype(np.float32), RGB),
        (grey, stacked),
        (grey[:, :, None], stacked),
        (stacked > 99, (stacked > 99) * 255),
    ]:
        np.testing.assert_array_equal(np.asarray(open_image(array)), expected)


# --- orientation ------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "JPEG", "PIL"])
def test_exif_orientation(orientation, kind):
    scene = np.zeros((16, 32, 3), dtype=np.uint8)  # upright: red corner top left, blue top right
    scene[:8, :8] = (255, 0, 0)
    scene[:8, 24:] = (0, 0, 255)
    stored = {  # EXIF: where the stored rows and columns start in the scene
        1: scene,
        2: scene[:, ::-1],
        3: scene[::-1, ::-1],
        4: scene[::-1],
        5: scene.transpose(1, 0, 2),
        6: scene.transpose(1, 0, 2)[::-1],
        7: scene.transpose(1, 0, 2)[::-1, ::-1],
        8: scene.transpose(1, 0, 2)[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"JPEG": {"quality": 95, "subsampling": 0}, "WEBP": {"lossless": True}}.get(kind, {})
    form = "PNG" if kind == "PIL" else kind
    data = saved(Image.fromarray(np.ascontiguousarray(stored)), format=form, exif=exif, **options)
    picture = open_image(Image.open(io.BytesIO(data)) if kind == "PIL" else data)
    assert abs(np.asarray(picture, dtype=int) - scene).max() <= 12
    assert picture == open_image(picture)  # and not a second time


@pytest.mark.parametrize("exif", [b"Exif\0\0garbage", b"Exif\0\0II*\0\xff\xff\xff\x7f", b"\0" * 40])
def test_broken_exif_is_ignored(exif):
    picture = Image.fromarray(RGB)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("PNG", "JPEG", "WEBP"):
            assert open_image(saved(picture, format=kind, exif=exif)).size == picture.size


def test_a_broken_tag_does_not_hide_the_orientation():
    """Pillow's exif_transpose writes the other tags anew, and trips over this one."""
    entries = struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0) + struct.pack("<HHII", 0x9000, 250, 9, 9)
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + entries + struct.pack("<I", 0)
    assert open_image(saved(Image.fromarray(RGB), format="JPEG", exif=exif)).size == (17, 23)


# --- what is refused, and how -----------------------------------------------------------------


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
def test_truncated_files(tmp_path, kind):
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
def test_bad_arrays(array, word):
    assert word in refused(array)


def test_memory_errors_are_not_called_damage(monkeypatch):
    def full(*args):
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", full)
    assert "memory" in refused(Image.new("L", (4, 4)))


def test_the_file_is_closed_and_the_picture_is_its_own(tmp_path):
    path = tmp_path / "a.tif"
    Image.fromarray(RGB).save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        picture = open_image(path)
    path.unlink()
    np.testing.assert_array_equal(np.asarray(picture), RGB)
    mine = Image.fromarray(RGB)
    theirs = open_image(mine)
    theirs.putpixel((0, 0), (1, 2, 3))
    np.testing.assert_array_equal(np.asarray(mine), RGB)


def test_streams_that_cannot_seek():
    class Pipe(io.RawIOBase):
        def __init__(self, data):
            self.data = io.BytesIO(data)

        def readable(self):
            return True

        def readinto(self, buffer):
            return self.data.readinto(buffer)

    picture = open_image(Pipe(saved(Image.fromarray(RGB), format="PNG")))
    np.testing.assert_array_equal(np.asarray(picture), RGB)
