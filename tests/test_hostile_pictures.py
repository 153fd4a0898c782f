"""Whatever picture is thrown at the library, a picture or one plain sentence comes back."""

import gc
import re
import subprocess
import sys
from collections import Counter

import pytest
from support import corpus
from support.memory import resident
from support.paths import ROOT
from support.sentences import plain

from vit_demo import image
from vit_demo.image import ImageError, open_image
from vit_demo.map_settings import FITS
from vit_demo.view import Preprocess, make_view, to_tensor

MUTANTS = 2_100
DIGITS = Preprocess((28, 28), (0.5,), (0.5,), light_on_dark=True)
PHOTOS = Preprocess((32, 32))


def test_samples_made_by_hand(tmp_path):
    """Each known trap, as bytes and as a file of its own name."""
    seen = Counter()
    for index, sample in enumerate(corpus.samples()):
        folder = tmp_path / str(index)
        folder.mkdir()
        path = folder / re.sub(r"[/\\]", "_", sample.name)
        path.write_bytes(sample.data)
        for source in (sample.data, path):
            try:
                picture = open_image(source)
            except ImageError as error:
                assert plain(str(error)), (sample.kind, sample.name, str(error))
                assert str(tmp_path) not in str(error)
                accepted = False
            else:
                assert picture.mode == "RGB" and picture.width * picture.height <= image.MAX_PIXELS
                accepted = True
            assert sample.accepted in (None, accepted), (sample.kind, sample.name, accepted)
            seen[sample.kind, accepted] += 1
    good = {"plain", "1x1", "1x10000", "16-bit", "cmyk", "palette", "animated", "exif", "icc"}
    good |= {"transparent", "loop", "extension", "name", "bomb"}
    assert {kind for kind, accepted in seen if accepted} == good
    bad = {kind for kind, accepted in seen if not accepted}
    assert bad == {"cut", "signature", "no picture", "bomb"}


def test_two_thousand_damaged_pictures(vit_mnist):
    """Decode, view, tensor; every tenth that is still a picture goes through the model, too."""
    seen, refusals, classified = Counter(), Counter(), 0
    before = None
    for index, sample in enumerate(corpus.mutants(MUTANTS)):
        if index == 300:  # by now everything has been loaded that will be
            gc.collect()
            before = resident()
        fit, preprocess = FITS[index % 4], (DIGITS, PHOTOS)[index % 3 > 0]
        try:
            view = make_view(open_image(sample.data), preprocess, (4, 4), fit)
        except ImageError as error:
            assert plain(str(error)), (index, str(error))
            seen[sample.kind, False] += 1
            refusals[re.sub(r"[\d.,]+", "0", str(error).partition(";")[0])] += 1
            continue
        pixels = to_tensor(view, preprocess)
        assert pixels.isfinite().all() and pixels.shape[1] == len(preprocess.mean)
        seen[sample.kind, True] += 1
        if seen[sample.kind, True] % 10 == 0:
            best = vit_mnist.classify(sample.data, 1, fit)[0]
            assert 0 < best.probability <= 1
            classified += 1
    assert sum(seen.values()) == MUTANTS
    for kind in corpus.DAMAGE:  # chance gives both of every kind, or the damage is no test
        assert seen[kind, True] >= 5 and seen[kind, False] >= 50, seen
    assert len(refusals) >= 3 and classified >= 20
    if before:
        gc.collect()
        assert resident() - before < 60 * corpus.MEGA


def test_bombs_do_not_go_off(tmp_path):
    """In a process of its own: each bomb, alone, would take hundreds of megabytes or seconds."""
    code = """
import resource, sys, time
sys.path.insert(0, "tests")
from support import corpus
from vit_demo.image import ImageError, open_image
bombs = [sample for sample in corpus.samples() if sample.kind == "bomb"]
open_image(corpus.saved(corpus.picture(), "PNG"))
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
for bomb in bombs:
    try:
        open_image(bomb.data)
    except ImageError:
        pass
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(len(bombs), peak // 1024, time.process_time() - began)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    count, megabytes, seconds = map(float, run.stdout.split())
    assert count >= 20
    assert megabytes < 100  # without the limits: 1,500
    assert seconds < 15  # of the processor, however busy the machine; without the limits: 20


def test_no_picture_takes_long():
    """Each by itself, refused or not, in a process that does nothing else."""
    code = """
import sys, time
sys.path.insert(0, "tests")
from support import corpus
from vit_demo.image import ImageError, open_image
open_image(corpus.saved(corpus.picture(), "PNG"))
for sample in corpus.samples():
    began = time.process_time()
    try:
        open_image(sample.data)
    except ImageError:
        pass
    print(time.process_time() - began, sample.kind, ascii(sample.name), sep="\t")
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = [line.split("\t") for line in run.stdout.splitlines()]
    assert len(lines) == len(corpus.samples())
    slow = [line for line in lines if float(line[0]) >= 5]  # of the processor, however busy it is
    assert not slow


def test_limits_hold_before_decoding(monkeypatch, tmp_path):
    """Too many pixels or bytes: the decoder is never even called."""
    from PIL import ImageFile

    def decoded(self):
        raise AssertionError("a pixel was decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", decoded)
    for sample in corpus.samples():
        if sample.kind == "bomb" and sample.name.startswith(("pixels", "screen", "frame", "long")):
            with pytest.raises(ImageError, match="megapixels|pixels long"):
                open_image(sample.data)
    monkeypatch.setattr(image, "MAX_BYTES", 1000)
    path = tmp_path / "much.bmp"
    path.write_bytes(corpus.saved(corpus.picture(64, 48), "BMP"))
    with pytest.raises(ImageError, match="megabytes; make it smaller"):
        open_image(path)
    with pytest.raises(ImageError, match="megabytes; make it smaller"):
        open_image(Endless())


class Endless:
    """A pipe without an end: only so much of it may be read."""

    def __init__(self):
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        assert 0 <= size, "asked for all of it"
        self.given += size
        assert self.given < 10_000
        return bytes(size)


@pytest.mark.parametrize("turn", range(1, 9))
def test_orientation_is_still_read_among_much_else(turn):
    exif = corpus.tiff({274: (3, 1, turn), 270: (2, 2_000_000, "data")}, b"d" * 2_000_000)
    for data in (
        corpus.saved(corpus.picture(), "PNG", exif=exif),
        corpus.saved(corpus.picture(), "WEBP", exif=b"Exif\0\0" + exif),
        corpus.jpeg_with(*corpus.exif_segments(exif)),
    ):
        assert open_image(data).size == ((24, 18) if turn < 5 else (18, 24))
