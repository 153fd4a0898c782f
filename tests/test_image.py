"""The picture's way in, held against timm, Pillow's writers and geometry worked out by hand."""

import io
import os
import struct
import tracemalloc
import warnings
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps
from timm.data import create_transform

from vit_demo.image import MAX_PIXELS, ImageError, open_image
from vit_demo.view import FITS, Preprocess, View, make_view, to_tensor

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
PLAIN = Preprocess(size=(224, 224))


def noise(w: int, h: int, seed: int = 0, channels: int = 3) -> np.ndarray:
    shape = (h, w, channels) if channels > 1 else (h, w)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def timm_tensor(picture: Image.Image, preprocess: Preprocess) -> torch.Tensor:
    transform = create_transform(
        input_size=(len(preprocess.mean), *preprocess.size),
        is_training=False,
        mean=preprocess.mean,
        std=preprocess.std,
        interpolation=preprocess.interpolation,
        crop_pct=preprocess.crop_pct,
        crop_mode=preprocess.crop_mode,
    )
    return transform(picture)[None]


def png_bytes(w, h, depth=8, color=0, raw=b"", extra=()) -> bytes:
    """A PNG by hand, for what Pillow does not write."""
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, 0)), *extra]
    chunks += [(b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
        for tag, data in chunks
    )


def saved(picture: Image.Image, **options) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, **options)
    return stream.getvalue()


# --- the tensor equals timm's -----------------------------------------------------------------

sides = st.one_of(st.integers(1, 12), st.integers(13, 300))


@settings(max_examples=150, deadline=None)
@given(
    w=sides,
    h=sides,
    size=st.sampled_from([(32, 32), (33, 33), (64, 48), (48, 64), (28, 56)]),
    crop_mode=st.sampled_from(["center", "squash", "border"]),
    crop_pct=st.sampled_from([1.0, 0.95, 0.9, 0.875, 1.25]),
    interpolation=st.sampled_from(["bicubic", "bilinear", "nearest", "lanczos"]),
    channels=st.sampled_from([1, 3]),
)
def test_crop_equals_timm(w, h, size, crop_mode, crop_pct, interpolation, channels):
    colours = {"mean": (0.1307,), "std": (0.3081,)} if channels == 1 else IMAGENET
    preprocess = Preprocess(
        size,
        **colours,
        interpolation=interpolation,
        crop_pct=crop_pct,
        crop_mode=crop_mode,
    )
    picture = Image.fromarray(noise(w, h, seed=w * 1000 + h))
    view = make_view(picture, preprocess, (4, 4))
    ours = to_tensor(view, preprocess)
    assert ours.shape == (1, channels, *size) and ours.dtype == torch.float32
    assert view.picture.mode == "RGB" and view.picture.size == size[::-1]
    try:
        theirs = timm_tensor(picture if channels == 3 else picture.convert("L"), preprocess)
    except ValueError as error:  # timm rounds the thin side of a very long picture to 0
        assert crop_mode == "border" and "height and width must be > 0" in str(error)
        return
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_crop_equals_timm_at_imagenet_sizes():
    for w, h in [(500, 375), (375, 500), (640, 427), (224, 224), (100, 80)]:
        preprocess = Preprocess((224, 224), **IMAGENET, crop_pct=0.9)
        picture = Image.fromarray(noise(w, h))
        ours = to_tensor(make_view(picture, preprocess, (16, 16)), preprocess)
        torch.testing.assert_close(ours, timm_tensor(picture, preprocess), rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 900), (900, 2), (3, 1201)])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear", "lanczos"])
def test_the_shortcut_for_threads_equals_timm_up_to_rounding(shape, interpolation, monkeypatch):
    """Above MAX_PIXELS only the window is enlarged; here the limit is lowered to compare both."""
    preprocess = Preprocess((64, 64), interpolation=interpolation, crop_pct=0.9)
    picture = Image.fromarray(noise(*shape))
    theirs = timm_tensor(picture, preprocess)
    plain = make_view(picture, preprocess, (16, 16))
    monkeypatch.setattr("vit_demo.view.MAX_PIXELS", 10_000)
    short = make_view(picture, preprocess, (16, 16))
    assert short.box == plain.box
    torch.testing.assert_close(to_tensor(short, preprocess), theirs, rtol=0, atol=1.01 / 127.5)


def test_a_tall_picture_shortened_first_looks_the_same(monkeypatch):
    picture = Image.fromarray(np.repeat(noise(2, 75), 12, axis=0))  # smooth enough to compare
    plain = np.asarray(make_view(picture, PLAIN, (16, 16), "stretch").picture, dtype=int)
    monkeypatch.setattr("vit_demo.view.MAX_PIXELS", 224 * 224)
    other = np.asarray(make_view(picture, PLAIN, (16, 16), "stretch").picture, dtype=int)
    assert abs(plain - other).max() <= 2


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("shape", [(1, 10_000), (10_000, 1), (4, 1_000_000), (1_000_000, 4)])
def test_memory_stays_bounded_for_threads(fit, shape):
    """timm would need 224 x 2,240,000 pixels. Counted is what Pillow is asked to resize to."""
    asked = []
    resize = Image.Image.resize

    def counted(self, size, resample=None, box=None, **options):
        top, bottom = (0, self.height) if box is None else (box[1], box[3])
        asked.append(max(size[0] * size[1], size[0] * (bottom - top)))  # with Pillow's first pass
        return resize(self, size, resample, box, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Image.Image, "resize", counted)
        view = make_view(Image.new("RGB", shape, "red"), PLAIN, (16, 16), fit)
    assert max(asked) <= MAX_PIXELS
    assert view.picture.size == (224, 224) or fit == "native"
    left, top, right, bottom = view.content
    assert view.picture.getpixel(((left + right) // 2, (top + bottom) // 2)) == (255, 0, 0)
    assert view.patch_at(shape[0] / 2, shape[1] / 2) is not None


# --- where the patches lie --------------------------------------------------------------------

SHAPES = {
    "portrait": (300, 450),
    "landscape": (450, 300),
    "square": (320, 320),
    "1:20": (100, 2000),
    "20:1": (2000, 100),
}
MODELS = {
    "square": (Preprocess((224, 224), **IMAGENET), (16, 16)),
    "crop_pct": (Preprocess((224, 224), **IMAGENET, crop_pct=0.875), (32, 32)),
    "rectangle": (Preprocess((160, 224), **IMAGENET, crop_pct=0.9), (16, 32)),
    "squash": (Preprocess((224, 224), **IMAGENET, crop_mode="squash", crop_pct=0.9), (32, 32)),
    "border": (Preprocess((224, 224), **IMAGENET, crop_mode="border", crop_pct=0.9), (32, 32)),
}


def one_hot(size: tuple[int, int], box: tuple[float, ...]) -> Image.Image:
    """White inside the box on black; a pixel that the box covers in part is grey, as it should."""
    w, h = size
    left, top, right, bottom = box
    x = np.clip(np.minimum(np.arange(w) + 1, right) - np.maximum(np.arange(w), left), 0, 1)
    y = np.clip(np.minimum(np.arange(h) + 1, bottom) - np.maximum(np.arange(h), top), 0, 1)
    grey = (255 * y[:, None] * x[None, :]).round().astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")


def check_one_hot(view: View, preprocess: Preprocess, repaint=lambda picture: picture):
    rows, cols = view.grid
    p, q = view.patch_size
    left, top, right, bottom = view.content
    for row, col in {(0, 0), (rows - 1, cols - 1), (rows // 2, cols // 2), (rows // 3, cols - 1)}:
        box = view.patch_box(row, col)
        if box[0] >= box[2] or box[1] >= box[3]:  # only padding: no pixel of the patch is content
            assert (
                (col + 1) * q <= left
                or col * q >= right
                or ((row + 1) * p <= top or row * p >= bottom)
            )
            continue
        assert view.patch_at((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) == (row, col)
        picture = repaint(one_hot(view.original.size, box))
        seen = make_view(picture, preprocess, view.patch_size, view.fit)
        assert (seen.box, seen.content) == (view.box, view.content)
        pixels = np.asarray(seen.picture.convert("L"), dtype=float)
        white = np.zeros(pixels.shape, dtype=bool)
        white[row * p : (row + 1) * p, col * q : (col + 1) * q] = True
        inside = np.zeros_like(white)
        inside[top:bottom, left:right] = True
        assert pixels[white & inside].mean() > 170
        # dark outside, save for a seam as wide as the resampling filter reaches
        sx = (view.box[2] - view.box[0]) / pixels.shape[1]
        sy = (view.box[3] - view.box[1]) / pixels.shape[0]
        x, y = int(np.ceil(2.5 * max(1, 1 / sx))), int(np.ceil(2.5 * max(1, 1 / sy)))
        seam = np.zeros_like(white)
        seam[
            max(0, row * p - y) : (row + 1) * p + y,
            max(0, col * q - x) : (col + 1) * q + x,
        ] = True
        assert pixels[inside & ~seam].max(initial=0) <= 10
        core = white & inside
        core[: row * p + y] = core[(row + 1) * p - y :] = False
        core[:, : col * q + x] = core[:, (col + 1) * q - x :] = False
        # at the rim of the content nothing lies beyond: those pixels are white as well
        assert pixels[core].min(initial=255) >= 245


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_one_hot_lands_on_its_pixels(model, shape, fit):
    preprocess, patch_size = MODELS[model]
    view = make_view(Image.new("RGB", SHAPES[shape]), preprocess, patch_size, fit)
    check_one_hot(view, preprocess)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("orientation", [3, 5, 6, 8])
def test_one_hot_lands_on_its_pixels_after_exif(orientation, fit):
    """Written lying, read upright: the box is in pixels of the upright picture."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    lay = {3: 180, 6: 90, 8: -90}  # degrees against the clock that undo the camera's turn

    def through_a_file(picture: Image.Image) -> Image.Image:
        if orientation == 5:
            lying = picture.transpose(Image.Transpose.TRANSPOSE)
        else:
            lying = picture.rotate(lay[orientation], expand=True)
        return open_image(saved(lying, format="PNG", exif=exif.tobytes()))

    preprocess, patch_size = MODELS["square"]
    original = through_a_file(Image.new("RGB", (450, 300)))
    assert original.size == (450, 300)
    check_one_hot(make_view(original, preprocess, patch_size, fit), preprocess, through_a_file)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("shape", SHAPES.values())
@pytest.mark.parametrize("model", MODELS)
def test_patches_and_points_agree(model, shape, fit):
    """The patches tile what was seen: boxes touch, their middles come back, the rest is None."""
    view = make_view(Image.new("RGB", shape), *MODELS[model], fit)
    rows, cols = view.grid
    w, h = shape
    area = 0.0
    for row in range(rows):
        for col in range(cols):
            left, top, right, bottom = view.patch_box(row, col)
            assert 0 <= left <= right <= w and 0 <= top <= bottom <= h
            area += (right - left) * (bottom - top)
            if left < right and top < bottom:
                assert view.patch_at((left + right) / 2, (top + bottom) / 2) == (row, col)
            if col + 1 < cols:
                assert view.patch_box(row, col + 1)[0] == pytest.approx(right, abs=1e-9)
    left, top, right, bottom = view.box
    seen = (min(right, w) - max(left, 0)) * (min(bottom, h) - max(top, 0))
    assert area == pytest.approx(seen)
    for x, y in [(-1, 5), (5, -1), (w, 5), (5, h), (w + 99, h + 99)]:
        assert view.patch_at(x, y) is None
    if left > 1:
        assert view.patch_at(left - 1, h / 2) is None
    if fit in ("stretch", "native"):
        assert view.box == (0, 0, w, h) and view.content == (0, 0, *view.picture.size)


def test_boxes_worked_out_by_hand():
    # 450x300 -> 336x224, the window starts at 56: 56 * 450 / 336 = 75
    view = make_view(Image.new("RGB", (450, 300)), PLAIN, (16, 16))
    assert view.grid == (14, 14) and view.box == (75.0, 0.0, 375.0, 300.0)
    # crop_pct 0.875: 500x375 -> 341x256, window (58, 16); round(58.5) is 58, as in torchvision
    preprocess = Preprocess((224, 224), crop_pct=0.875)
    view = make_view(Image.new("RGB", (500, 375)), preprocess, (16, 16))
    expected = (58 * 500 / 341, 16 * 375 / 256, 282 * 500 / 341, 240 * 375 / 256)
    assert view.box == pytest.approx(expected)
    # padded: 448x112 -> 224x56, 84 rows above and below, twice as many pixels of the original
    view = make_view(Image.new("RGB", (448, 112)), PLAIN, (16, 16), "pad")
    assert view.box == (0.0, -168.0, 448.0, 280.0) and view.content == (0, 84, 224, 140)
    assert view.patch_box(0, 3) == (96.0, 0.0, 128.0, 0.0)  # empty
    assert view.patch_box(5, 0) == (0.0, 0.0, 32.0, 24.0)  # rows 80..96: 4 rows of padding
    assert view.patch_at(0, 0) == (5, 0) and view.patch_at(447.9, 111.9) == (8, 13)


def test_padding_is_the_mean_colour_and_nearly_zero():
    preprocess = Preprocess((64, 64), **IMAGENET)
    view = make_view(Image.new("RGB", (100, 50), "white"), preprocess, (16, 16), "pad")
    assert view.content == (0, 16, 64, 48)
    x = to_tensor(view, preprocess)[0]
    assert x[:, :16].abs().max() < 0.01 and x[:, 48:].abs().max() < 0.01
    assert x[:, 16:48].min() > 2


@settings(max_examples=100, deadline=None)
@given(
    w=st.integers(1, 4000),
    h=st.integers(1, 4000),
    model=st.sampled_from([(14, 14, 16, 16), (8, 8, 4, 4), (7, 7, 4, 4), (24, 12, 14, 16)]),
)
def test_native_keeps_the_aspect_within_the_budget(w, h, model):
    rows, cols, p, q = model
    preprocess = Preprocess((rows * p, cols * q))
    with pytest.MonkeyPatch.context() as patch:  # the geometry, without the work
        patch.setattr("vit_demo.view._look", lambda *a: Image.new("RGB", (a[2][2], a[2][3])))
        view = make_view(Image.new("L", (w, h)), preprocess, (p, q), "native")
    got, budget = view.grid[0] * view.grid[1], rows * cols
    assert 1 <= got <= 1.1 * budget
    if 1 / 3 <= w / h <= 3:
        assert got >= 0.75 * budget
        distortion = (view.picture.width / view.picture.height) / (w / h)
        assert 0.8 < distortion < 1.25
    if w == h and rows == cols and p == q:
        assert view.grid == (rows, cols)


def test_native_grids_of_usual_shapes():
    def grid(w, h):
        return make_view(Image.new("RGB", (w, h)), PLAIN, (16, 16), "native").grid

    assert grid(300, 300) == (14, 14)
    assert grid(400, 300) == (12, 16)
    assert grid(300, 400) == (16, 12)
    assert grid(2000, 100) == (3, 60)
    assert grid(100, 2000) == (60, 3)
    assert grid(5000, 1)[0] == 1 and grid(1, 5000)[1] == 1


def test_light_on_dark_inverts_light_backgrounds_only():
    preprocess = Preprocess((28, 28), (0.1307,), (0.3081,), light_on_dark=True)
    paper = Image.new("RGB", (56, 56), "white")
    paper.paste((0, 0, 0), (24, 16, 32, 40))  # a dark stroke: the digit one
    view = make_view(paper, preprocess, (4, 4))
    screen = ImageOps.invert(paper)
    assert view.picture.getpixel((0, 0)) == (0, 0, 0)
    assert view.picture.getpixel((14, 14)) == (255, 255, 255)
    assert view.original.getpixel((0, 0)) == (255, 255, 255)  # the original stays as it was
    assert make_view(screen, preprocess, (4, 4)).picture == view.picture
    assert to_tensor(view, preprocess).shape == (1, 1, 28, 28)
    plain = Preprocess((28, 28), (0.1307,), (0.3081,))
    assert make_view(paper, plain, (4, 4)).picture.getpixel((0, 0)) == (255, 255, 255)


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


def test_settings_that_make_no_sense():
    with pytest.raises(ValueError, match="use one of"):
        make_view(Image.new("RGB", (4, 4)), PLAIN, (16, 16), "zoom")
    with pytest.raises(ValueError, match="bicubic"):
        Preprocess((32, 32), interpolation="random")
    with pytest.raises(ValueError, match="squash"):
        Preprocess((32, 32), crop_mode="random")
    with pytest.raises(ValueError, match="1 .grey. or 3"):
        Preprocess((32, 32), mean=(0.5,))
