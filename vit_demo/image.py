"""From a file that anyone may send to a picture that is safe to work with.

    open_image   file, bytes, PIL image or array  ->  an upright RGB picture, or an `ImageError`

A file may be damaged, or made to burst: whatever it says, time and memory stay bounded, and every
limit is checked before a pixel is decoded. How a model wants to see the picture is `view.py`.
"""

import io
import math
import os
import re
import warnings
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from PIL import Image, JpegImagePlugin, TiffImagePlugin, TiffTags, UnidentifiedImageError

MAX_PIXELS = 64_000_000
MAX_BYTES = 8 * MAX_PIXELS  # of a file: four channels of 16 bits, not compressed
MAX_SIDE = 1_000_000  # a resize keeps some numbers for each pixel of a side: this bounds them
MAX_PASSES = 20  # over the largest picture: a progressive JPEG may come in more, if it is smaller
MAX_PIECES = 5_000  # of metadata before the pixels
MAX_TAG_BYTES = 2**18  # of numbers in one tag of a TIFF: where its 65,536 strips or tiles lie
MAX_RUNS = 4_000_000  # bytes or pixels of a run-length BMP, which Pillow decodes one by one
DECODING_BYTES = 400_000_000  # for one picture, everything that is needed on the way
BAND_PIXELS = 1_000_000  # that are converted at a time
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp")
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP")  # JPEG: also the MPO files of phones
JPEG = b"\xff\xd8\xff"
SIGNATURES = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n|RIFF.{4}WEBP|GIF8[79]a|II[*+]\0|MM\0[*+]|BM", re.DOTALL
)
EXIF_ORIENTATION, BITS_PER_SAMPLE, ROWS_PER_STRIP = 0x0112, 0x0102, 0x0116
TILE_WIDTH, TILE_HEIGHT = 0x0142, 0x0143
TURNS = "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE ROTATE_270 TRANSVERSE ROTATE_90"
UPRIGHT = {i: Image.Transpose[turn] for i, turn in enumerate(TURNS.split(), start=2)}  # 1: no turn


class ImageError(ValueError):
    """A picture that cannot be used; the message is for the person who sent it."""


def open_image(
    source: str | os.PathLike | bytes | BinaryIO | Image.Image | np.ndarray,
) -> Image.Image:
    """An upright RGB picture, fully loaded: the first frame, on white where it was transparent."""
    if isinstance(source, np.ndarray):
        return _from_array(source)
    if isinstance(source, Image.Image):
        return _load(source, "The picture")
    if isinstance(source, bytes | bytearray | memoryview):
        return _from_stream(io.BytesIO(source), "The picture")
    if isinstance(source, str | os.PathLike):
        return _from_path(os.fsdecode(source))
    if hasattr(source, "read"):
        return _from_stream(source, "The picture")
    kind = "nothing" if source is None else f"a {type(source).__name__}"
    raise ImageError(f"A picture was expected, but {kind} came; give a file, an image or an array.")


def _from_path(path: str) -> Image.Image:
    if re.match(r"[a-z][a-z0-9+.-]*://|data:", path.strip(), re.IGNORECASE):
        raise ImageError("Give a file, not an address: save the picture first, then choose it.")
    name = os.path.basename(os.path.normpath(path))
    name = name if len(name) <= 80 else name[:60] + "..."  # it may be megabytes long
    name = f'"{"".join(c if c.isprintable() else "?" for c in name)}"'
    if not os.path.exists(path):
        raise ImageError(f"There is no file {name}; check the name and the folder.")
    if os.path.isdir(path):
        raise ImageError(f"{name} is a folder; choose one picture in it.")
    if not os.path.isfile(path):  # a pipe would keep us waiting, a device never ends
        raise ImageError(f"{name} is not an ordinary file; save the picture to a file first.")
    try:
        with open(path, "rb") as stream:
            return _from_stream(stream, name)
    except OSError as error:
        raise ImageError(f"{name} cannot be read; check that you may open it.") from error


def _from_stream(stream: BinaryIO, name: str) -> Image.Image:
    try:
        try:
            stream.seek(0)
        except (AttributeError, io.UnsupportedOperation):  # a pipe, a socket
            stream = io.BytesIO(stream.read(MAX_BYTES + 1))
        head = stream.read(16)
        stream.seek(0, io.SEEK_END)
        size = stream.tell()
    except Exception as error:  # a closed file, an upload that broke off, a disk that fails
        raise ImageError(f"{name} cannot be read; open or send it again.") from error
    if not isinstance(head, bytes):
        raise ImageError(f'{name} was opened as text; open the file in binary mode, "rb".')
    if not head:
        raise ImageError(f"{name} is empty (0 bytes); save or send it again.")
    if size > MAX_BYTES:
        raise ImageError(
            f"{name} has more than {MAX_BYTES // 10**6} megabytes; make it smaller and try again."
        )
    return _load(_Metered(stream, size), name, head)


class _Metered:
    """A stream that is read about once, as an honest picture is.

    A file may name the same bytes over and over, as the contents of thousands of tags, or cut its
    metadata into a million pieces. Pillow takes them one by one, and gets three megabytes to fill
    sixty gigabytes, or to keep a core busy for minutes. Here such a file ends early.
    """

    def __init__(self, stream: BinaryIO, size: int):
        self.seek, self.tell = stream.seek, stream.tell  # no fileno: nobody reads past the meter
        self.stream, self.size = stream, size
        self.bytes_left, self.reads_left = 4 * size + 2**16, MAX_PIECES
        self.seek(0)

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.bytes_left -= len(data)
        self.reads_left -= 1
        if self.bytes_left < 0 or self.reads_left < 0:
            raise TooMuch
        return data


class TooMuch(Exception):
    """No OSError or ValueError: Pillow would take those for a small flaw, and go on."""


class _Jpeg(JpegImagePlugin.JpegImageFile):
    """A JPEG whose EXIF is not searched for its resolution: nobody asked, and it may be a trap."""

    def _read_dpi_from_exif(self) -> None:
        pass


class _Tiff(TiffImagePlugin.TiffImageFile):
    """A TIFF whose tags are not too long, and none stands there twice. Pillow makes a list of all
    strips or tiles, and 20 MB can name five million, all at one place: a gigabyte, and minutes to decode
    them. Of two equal tags Pillow takes one, and what decodes the pixels the other."""

    def _setup(self) -> None:
        tags = self.tag_v2
        here = self.fp.tell()
        if self._has_twins():
            raise TooMuch
        self.fp.seek(here)
        for tag, data in tags._tagdata.items():
            is_text = tags.tagtype[tag] in (TiffTags.BYTE, TiffTags.ASCII, TiffTags.UNDEFINED)
            if len(data) > MAX_TAG_BYTES and not is_text:
                raise TooMuch
        super()._setup()

    def _has_twins(self) -> bool:
        """Does a tag stand twice in the directory?"""
        big = self.tag_v2._bigtiff
        self.fp.seek(self.tag_v2.offset)
        count = self.tag_v2._unpack("Q" if big else "H", self.fp.read(8 if big else 2))[0]
        size = 20 if big else 12
        entries = self.fp.read(count * size)
        names = [entries[i : i + 2] for i in range(0, len(entries), size)]
        return len(names) != len(set(names))


def _open(stream: _Metered, name: str, head: bytes) -> Image.Image:
    """Read the header, decode nothing. Every limit is checked here, before a pixel is decoded."""
    if head.startswith(JPEG):
        image = _Jpeg(stream)
    elif head[:4] in TiffImagePlugin.PREFIXES:
        image = _Tiff(stream)
    else:
        image = Image.open(stream, formats=FORMATS)
    _check_size(*image.size, name)
    pixels, extra = image.width * image.height, 0  # bytes that the decoder itself needs
    if image.format == "TIFF":  # a tile is decoded whole, however small the picture is
        sides = [image.tag_v2.get(tag, 1) for tag in (TILE_WIDTH, TILE_HEIGHT)]
        _check_size(*sides, f"{name}, counted in whole tiles,")
        tiles = math.ceil(image.width / sides[0]) * math.ceil(image.height / sides[1])
        if tiles * sides[0] * sides[1] > 2 * MAX_PIXELS:
            raise ImageError(_too_large(tiles * sides[0] * sides[1], f"{name}, in whole tiles,"))
        rows = image.tag_v2.get(ROWS_PER_STRIP, image.height)
        depths = image.tag_v2.get(BITS_PER_SAMPLE, (8,))
        bytes_each = max(4, sum(bits // 8 for bits in depths))
        extra = bytes_each * max(sides[0] * sides[1], image.width * min(rows, image.height))
    elif image.format == "JPEG":
        start = stream.tell()
        passes = 1 + stream.read().count(b"\xff\xda")
        stream.seek(start)
        if passes * pixels > MAX_PASSES * MAX_PIXELS:
            raise ImageError(
                f"{name} is a JPEG in {passes} passes, which takes too long; save it as an "
                "ordinary JPEG."
            )
        if passes > 1:  # keeps all coefficients until the last one
            extra = 2 * len(image.getbands()) * pixels
    elif image.format == "WEBP":
        extra = 16 * pixels  # two canvases, what was decoded, and a copy of it
    elif image.format == "BMP" and image.tile[0][0] == "bmp_rle":
        _check_runs(max(stream.size, pixels, 256 * image.width), name)
    needed = pixels * (_stored(image) + (0 if image.mode == "RGB" else 4)) + extra
    if needed > DECODING_BYTES:
        raise ImageError(_too_much_memory(pixels, needed, name))
    stream.reads_left = 100_000 + stream.size // 1000  # an honest piece has some thousand bytes
    return image


def _check_runs(work: int, name: str) -> None:
    if work > MAX_RUNS:
        raise ImageError(f"{name} is a run-length BMP, which takes too long; save it as PNG.")


def _stored(image: Image.Image) -> int:
    """Bytes that Pillow takes for a pixel."""
    return {"1": 1, "L": 1, "P": 1}.get(image.mode, 2 if image.mode.startswith("I;16") else 4)


def _load(source: _Metered | Image.Image, name: str, head: bytes = b"") -> Image.Image:
    """Decode and convert, or say in plain words why not.

    Pillow's decoders fail on bad files with almost any kind of exception, so all are caught here.
    """
    damaged = f"{name} is damaged or cut short; open and save it again, or choose another picture."
    with warnings.catch_warnings():  # Pillow's, about odd metadata: the visitor cannot act on them
        warnings.filterwarnings("ignore", module=r"PIL\.")
        try:
            if isinstance(source, Image.Image):
                image = source
                _check_size(*image.size, name)
            else:
                image = _open(source, name, head)
            image.load()
            turn, pixels = _turn(image), image.width * image.height
            if turn is not None and 8 * pixels > DECODING_BYTES:
                raise ImageError(_too_much_memory(pixels, 8 * pixels, name))
            image = _rgb(image)
            if turn is not None:
                image = image.transpose(turn)
            elif image is source:  # the caller's own
                image = image.copy()
            image = image._new(image.im)  # the pixels without the file, its tags and profiles
        except ImageError:
            raise
        except TooMuch as error:
            message = f"{name} holds more metadata than pictures have; save it again without."
            raise ImageError(message) from error
        except Image.DecompressionBombError as error:  # Pillow's own limit, above ours
            pixels = int(re.search(r"\d+", str(error))[0])
            raise ImageError(_too_large(pixels, name)) from error
        except UnidentifiedImageError as error:
            if SIGNATURES.match(head):
                raise ImageError(damaged) from error
            formats = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
            message = f"{name} is not a picture this demo can read; use {formats}."
            raise ImageError(message) from error
        except MemoryError as error:
            message = f"There is not enough memory for {name}; make the picture smaller."
            raise ImageError(message) from error
        except Exception as error:
            raise ImageError(damaged) from error
    image.info = {}  # the orientation is spent: nobody shall apply it a second time
    return image


def _check_size(width: int, height: int, name: str) -> None:
    if width < 1 or height < 1:
        raise ImageError(f"{name} has no pixels ({width} x {height}); choose another one.")
    if width * height > MAX_PIXELS:
        raise ImageError(_too_large(width * height, name))
    if max(width, height) > MAX_SIDE:
        raise ImageError(
            f"{name} is {max(width, height):,} pixels long; cut out a part of at most {MAX_SIDE:,}."
        )


def _too_large(pixels: int, name: str) -> str:
    return (
        f"{name} has {pixels / 1e6:.1f} megapixels, but the limit is {MAX_PIXELS // 10**6}; "
        "make it smaller and try again."
    )


def _too_much_memory(pixels: int, needed: int, name: str) -> str:
    return (
        f"{name} has {pixels / 1e6:.1f} megapixels and would take {needed // 10**6} MB to open, but "
        f"the limit is {DECODING_BYTES // 10**6}; make it smaller and try again."
    )


def _turn(image: Image.Image) -> Image.Transpose | None:
    """What makes the picture upright. `ImageOps.exif_transpose` would also write the EXIF anew,
    and fail there on a broken tag that has nothing to do with the orientation."""
    try:
        exif, text = image.info.get("exif"), image.info.get("Raw profile type exif")
        if exif is None and text:  # as ImageMagick wrote it into PNGs
            exif = bytes.fromhex("".join(text.split("\n")[3:]))
        if exif:  # read it once with the meter on: a trap ends here
            tags = io.BytesIO(exif.removeprefix(b"Exif\0\0"))
            Image.Exif().load_from_fp(_Metered(tags, len(exif)))
        return UPRIGHT.get(image.getexif().get(EXIF_ORIENTATION))
    except Exception:  # noqa: BLE001 (broken EXIF, of any kind, is no reason to refuse a picture)
        return None


def _rgb(image: Image.Image) -> Image.Image:
    """An RGB picture; transparent parts become white, deep greys are scaled to 8 bits. Some rows at a
    time: a second copy on the way would be too large."""
    if image.mode == "RGB" and not image.has_transparency_data:
        return image
    shares = image.mode == "F" and _all_shares(image)
    whole = Image.new("RGB", image.size)
    for band in _bands(image):
        part = image.crop(band)
        part = _eight_bits(part, shares) if part.mode[0] in "IF" else part
        if part.has_transparency_data:
            part = part.convert("RGBA")
            white = Image.new("RGB", part.size, "white")
            white.paste(part, (0, 0), part)
            part = white
        whole.paste(part.convert("RGB"), band)
    return whole


def _bands(image: Image.Image) -> Iterator[tuple[int, int, int, int]]:
    """The picture as boxes over its whole width, a few rows each."""
    rows = max(1, BAND_PIXELS // image.width)
    for top in range(0, image.height, rows):
        yield 0, top, image.width, min(top + rows, image.height)


def _eight_bits(deep: Image.Image, shares: bool) -> Image.Image:
    """Greys of 16 or 32 bits, or with decimal places (`shares`: from 0 to 1), in 8 bits."""
    values = np.asarray(deep)
    if deep.mode == "F":
        values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0) * (255 if shares else 1)
        return Image.fromarray(values.clip(0, 255).round().astype(np.uint8))
    grey = ((np.clip(values, 0, 65535).astype(np.int32) + 128) // 257).astype(np.uint8)
    if isinstance(deep.info.get("transparency"), int):  # PNG: one grey is transparent
        grey[values == deep.info["transparency"]] = 255
    return Image.fromarray(grey)


def _all_shares(image: Image.Image) -> bool:
    """Do all numbers lie from 0 to 1? What is no number counts as 0."""
    for band in _bands(image):
        values = np.nan_to_num(np.asarray(image.crop(band)), nan=0.0, posinf=0.0, neginf=0.0)
        if values.min() < 0 or values.max() > 1:
            return False
    return True


def _from_array(array: np.ndarray) -> Image.Image:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim != 2 and not (array.ndim == 3 and array.shape[2] in (3, 4)):
        raise ImageError(
            f"An array of shape {array.shape} is not a picture; "
            "use (height, width) or (height, width, channels) with 1, 3 or 4 channels."
        )
    _check_size(array.shape[1], array.shape[0], "The array")
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    elif np.issubdtype(array.dtype, np.floating):
        if not (array.min() >= 0 and array.max() <= 1):  # false for NaN, too
            raise ImageError(
                "The array's numbers are not all in 0..1; scale them, or use uint8 for 0..255."
            )
        array = (array * 255).round().astype(np.uint8)
    elif array.dtype != np.uint8:
        raise ImageError(f"An array of {array.dtype} is not a picture; use uint8 or float in 0..1.")
    return _rgb(Image.fromarray(np.ascontiguousarray(array)))
