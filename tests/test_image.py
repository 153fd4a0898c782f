"""The picture's way in, held against Pillow's writers and files made by hand."""

import io
import struct
import warnings

import numpy as np
import pytest
from PIL import Image
from support.pictures import noise, png_bytes, saved

from vit_demo.image import open_image

# Formats and modes

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
def test_the_first_frame_is_the_picture(kind):
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


def test_palettes_become_their_colours_and_transparency_white():
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


def test_arrays_become_the_same_pixels():
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


# Orientation


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "JPEG", "PIL"])
def test_exif_orientation_is_applied(orientation, kind):
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
