"""What the model sees, held against timm and geometry worked out by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps
from support.pictures import noise, saved
from timm.data import create_transform

from vit_demo.image import MAX_PIXELS, open_image
from vit_demo.map_settings import FITS
from vit_demo.view import KEPT_PIXELS, Preprocess, View, make_view, to_tensor

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
PLAIN = Preprocess(size=(224, 224))


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


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("size", [(451, 300), (300, 640), (1500, 1000)])
@pytest.mark.parametrize("side", [60, 224])
def test_the_preview_shows_the_same_part_in_more_detail(side, size, fit):
    """On a picture whose colours are its coordinates, each pixel says where it came from."""
    w, h = size
    x, y = np.meshgrid(np.linspace(0, 255, w), np.linspace(0, 255, h))
    picture = Image.fromarray(np.stack([x, y, x * 0], axis=-1).round().astype(np.uint8))
    view = make_view(picture, Preprocess((side, side)), (side // 12,) * 2, fit)
    preview = view.preview()
    (rows, cols), (W, H) = view.grid, preview.size
    assert W % cols == 0 and H % rows == 0 and max(W, H) <= 1024
    assert W > view.picture.width or H > view.picture.height
    left, top, right, bottom = view.box
    found = np.asarray(preview, dtype=float)
    for row, col in np.ndindex(rows, cols):  # the middle of each patch, and its corner
        for share in (0.5, 0.05):
            j, i = int((col + share) * W / cols), int((row + share) * H / rows)
            at = left + (j + 0.5) / W * (right - left), top + (i + 0.5) / H * (bottom - top)
            if not (1 < at[0] < w - 1 and 1 < at[1] < h - 1):
                continue
            expected = [255 * (at[0] - 0.5) / (w - 1), 255 * (at[1] - 0.5) / (h - 1)]
            np.testing.assert_allclose(found[i, j, :2], expected, atol=1.5)
    if fit == "pad":
        np.testing.assert_array_equal(found[0, 0], np.asarray(view.picture)[0, 0])


def test_a_picture_without_more_detail_is_its_own_preview():
    for size in [(20, 30), (60, 60), (1, 9)]:
        view = make_view(Image.fromarray(noise(*size)), Preprocess((60, 60)), (5, 5), "stretch")
        assert view.preview() is view.picture
    thread = make_view(Image.new("RGB", (5000, 2), "red"), Preprocess((60, 60)), (5, 5), "pad")
    assert max(thread.preview().size) == 1020
    assert thread.preview().getpixel((500, 500)) == (255, 0, 0)


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


def test_settings_that_make_no_sense():
    with pytest.raises(ValueError, match="use one of"):
        make_view(Image.new("RGB", (4, 4)), PLAIN, (16, 16), "zoom")
    with pytest.raises(ValueError, match="bicubic"):
        Preprocess((32, 32), interpolation="random")
    with pytest.raises(ValueError, match="squash"):
        Preprocess((32, 32), crop_mode="random")
    with pytest.raises(ValueError, match="1 .grey. or 3"):
        Preprocess((32, 32), mean=(0.5,))


def test_a_large_picture_is_kept_small_and_its_places_stay_true():
    """A view of 12 megapixels beside one of the same picture at a quarter of the length: the same
    patches lie in the same place, four times as far out, and the memory is bounded."""
    x, y = np.meshgrid(np.linspace(0, 255, 4000), np.linspace(0, 255, 3000))
    large = Image.fromarray(np.stack([x, y, x * 0], axis=-1).round().astype(np.uint8))
    small = large.resize((1000, 750))
    view, like = (make_view(one, PLAIN, (16, 16)) for one in (large, small))
    assert view.size == (4000, 3000) and like.original is small
    assert view.nbytes <= 4 * (KEPT_PIXELS + 224 * 224) and like.nbytes == 4 * (750000 + 224 * 224)
    assert view.box == pytest.approx([4 * edge for edge in like.box])
    assert view.patch_box(3, 4) == pytest.approx([4 * edge for edge in like.patch_box(3, 4)], abs=8)
    assert view.patch_at(3999, 10) is None and view.patch_at(2100, 1600) == (7, 7)
    preview = view.preview()  # as sharp as ever: 1024 pixels, of a square 3,000 pixels wide
    assert preview.size == (1022, 1022)
    left, top, right, bottom = view.box
    for px in ((100, 900), (500, 500), (1000, 3)):
        at = [
            low + (p + 0.5) / 1022 * (high - low)
            for p, low, high in zip(px, (left, top), (right, bottom), strict=True)
        ]
        expected = [255 * at[0] / 3999, 255 * at[1] / 2999]
        np.testing.assert_allclose(preview.getpixel(px)[:2], expected, atol=1.5)


def test_a_view_can_be_seen_by_another_model():
    """What a view has kept of a picture is enough for the next model; places are those of the whole."""
    large = Image.fromarray(noise(60, 80)).resize((4000, 3000))
    first = make_view(large, PLAIN, (16, 16))
    again = make_view(first.original, PLAIN, (16, 16), size=first.size)
    assert again.size == (4000, 3000) and again.box == pytest.approx(first.box, rel=2e-3)
    apart = np.asarray(first.picture, dtype=int) - np.asarray(again.picture, dtype=int)
    assert np.abs(apart).mean() < 1
