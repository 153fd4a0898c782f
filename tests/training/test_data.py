import io
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from vit_demo.image import open_image
from vit_demo.training import data
from vit_demo.training.data import DataError, fit, load_dataset
from vit_demo.view import Preprocess, make_view, to_tensor

CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def picture(seed: int, size=(20, 16)) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def make_folder(root, classes=("ant", "bee"), count=20, first=0):
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for i in range(count):
            picture(first + 1000 * label + i).save(root / name / f"{i:03}.png")
    return root


# Named sets


def test_mnist_is_read_from_its_files(shared):
    train, test = load_dataset("mnist", shared / "data", 28, 1)
    assert (len(train), len(test)) == (60_000, 10_000)
    assert train.class_names == [str(digit) for digit in range(10)]
    assert train.labels[:5].tolist() == [5, 0, 4, 1, 9]  # the first digits, as everyone knows them
    assert train.batch(torch.tensor([0, 1])).shape == (2, 1, 28, 28)


def test_cifar10_is_read_from_the_zip(shared):
    (test,) = load_dataset("cifar10", shared / "data", 32, 3, parts=("test",))
    assert test.class_names == CIFAR10
    assert torch.bincount(test.labels).tolist() == [1000] * 10
    assert test.images.shape == (10_000, 3, 32, 32) and test.images.dtype == torch.uint8


def test_cifar10_of_torchvision_has_the_same_form(monkeypatch, tmp_path):
    class Pickled:
        classes = CIFAR10

        def __init__(self, root, train, download):
            assert not download  # a folder was named: nothing is fetched
            self.data = np.full((4, 32, 32, 3), (1, 2, 3), dtype=np.uint8)
            self.targets = [3, 1, 0, 9]

    monkeypatch.setitem(data.NAMED, "cifar10", Pickled)
    train, test = load_dataset("cifar10", tmp_path, 32, 3)
    assert train.images[2, :, 5, 5].tolist() == [1, 2, 3] and test.labels.tolist() == [3, 1, 0, 9]
    assert train.class_names == CIFAR10


@pytest.mark.parametrize("name", data.NAMED)
def test_missing_files_of_a_named_set(name, tmp_path):
    with pytest.raises(DataError, match=f"{name} pictures are not in .*leave --data out"):
        load_dataset(name, tmp_path, 32, 3)


def test_a_bad_picture_in_the_zip_is_named(tmp_path):
    good = io.BytesIO()
    picture(0, (32, 32)).save(good, "PNG")
    with zipfile.ZipFile(tmp_path / data.CIFAR10_ZIP, "w") as archive:
        for part in data.PARTS:
            archive.writestr(f"{part}/cat/1.png", good.getvalue())
            archive.writestr(f"{part}/dog/1.png", good.getvalue())
        archive.writestr("test/dog/2.png", good.getvalue()[:200])
    with pytest.raises(DataError, match="test/dog/2.png is not a picture"):
        load_dataset("cifar10", tmp_path, 32, 3)
    assert len(load_dataset("cifar10", tmp_path, 32, 3, parts=("train",))[0]) == 2


def test_a_damaged_zip(tmp_path):
    (tmp_path / data.CIFAR10_ZIP).write_bytes(b"PK not really")
    with pytest.raises(DataError, match="cannot be read .*get the file again"):
        load_dataset("cifar10", tmp_path, 32, 3)


# Folders


@pytest.mark.parametrize("held_out", ["test", "val"])
def test_folder_with_train_and_test(held_out, tmp_path):
    make_folder(tmp_path / "train", count=3)
    make_folder(tmp_path / held_out, count=2, first=50)
    train, test = load_dataset(str(tmp_path), None, 16, 3)
    assert train.class_names == test.class_names == ["ant", "bee"]
    assert train.labels.tolist() == [0, 0, 0, 1, 1, 1] and test.labels.tolist() == [0, 0, 1, 1]
    assert not {bytes(i.numpy()) for i in train.images} & {bytes(i.numpy()) for i in test.images}


def test_folder_of_classes_is_split_the_same_way_every_time(tmp_path):
    make_folder(tmp_path, count=20)
    train, test = load_dataset(str(tmp_path), None, 16, 3)
    again = load_dataset(str(tmp_path), None, 16, 3)[1]
    assert torch.bincount(test.labels).tolist() == [2, 2]  # a tenth of each class
    assert test.files == again.files
    assert sorted(train.files + test.files) == sorted(tmp_path.rglob("*.png"))
    (everything,) = load_dataset(str(tmp_path), None, 16, 3, parts=("all",))
    assert len(everything) == 40


def test_a_big_folder_is_read_batch_by_batch(tmp_path, monkeypatch):
    make_folder(tmp_path, count=5)
    small = load_dataset(str(tmp_path), None, 16, 3)[0]
    monkeypatch.setattr(data, "IN_MEMORY", 0)
    big = load_dataset(str(tmp_path), None, 16, 3)[0]
    assert small.images is not None and big.images is None
    wanted = torch.tensor([5, 0, 3])
    assert torch.equal(small.batch(wanted), big.batch(wanted))
    (tmp_path / "bee" / "002.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    with pytest.raises(DataError, match="bee/002.png"):  # before training, in this case too
        load_dataset(str(tmp_path), None, 16, 3)


@pytest.mark.parametrize("channels", [1, 3])
def test_folder_pictures_are_what_inference_sees(tmp_path, channels):
    make_folder(tmp_path, count=2)
    mean = (0.4,) * channels
    preprocess = Preprocess((16, 16), mean, mean, crop_pct=0.8, light_on_dark=True)
    (tests,) = load_dataset(
        str(tmp_path), None, 16, channels, preprocess=preprocess, parts=("test",)
    )
    path = tests.files[0]
    seen = to_tensor(make_view(open_image(path), preprocess, (4, 4)), preprocess)
    assert torch.equal(data.normalise(tests.batch(torch.tensor([0])), preprocess), seen)


def break_empty(root):
    for file in (root / "bee").iterdir():
        file.unlink()


def break_text(root):
    (root / "bee" / "001.png").write_text("not a picture")


def break_truncated(root):
    file = root / "bee" / "001.png"
    file.write_bytes(file.read_bytes()[:300])


def break_one_class(root):
    break_empty(root)
    (root / "bee").rmdir()


def break_single(root):
    for file in sorted((root / "bee").iterdir())[1:]:
        file.unlink()


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (break_empty, "bee has no pictures"),
        (break_text, "bee/001.png"),
        (break_truncated, "bee/001.png"),
        (break_one_class, "only the class 'ant'"),
        (break_single, "'bee' has one picture, .*bee/000.png"),
    ],
)
def test_folders_that_cannot_be_trained_on_are_refused(tmp_path, break_it, message):
    break_it(make_folder(tmp_path, count=5))
    with pytest.raises(DataError, match=message):
        load_dataset(str(tmp_path), None, 16, 3)


def test_train_and_test_must_have_the_same_classes(tmp_path):
    make_folder(tmp_path / "train", count=2)
    make_folder(tmp_path / "test", classes=("ant", "wasp"), count=2)
    with pytest.raises(DataError, match="same classes.*bee, wasp"):
        load_dataset(str(tmp_path), None, 16, 3)


def test_neither_folder_nor_name(tmp_path):
    with pytest.raises(DataError, match="neither a folder nor a named set.*cifar10"):
        load_dataset(str(tmp_path / "nothing"), None, 16, 3)
    with pytest.raises(DataError, match="no classes"):
        load_dataset(str(tmp_path), None, 16, 3)


# Size, channels


def test_fit_changes_channels_and_size():
    grey = torch.arange(64, dtype=torch.uint8).reshape(1, 1, 8, 8)
    colour = fit(grey, (8, 8), 3)
    assert colour.shape == (1, 3, 8, 8) and torch.equal(colour[:, 1], grey[:, 0])
    image = picture(1, (24, 24))
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None]
    assert np.array_equal(fit(pixels, (24, 24), 1)[0, 0], np.array(image.convert("L")))
    small = fit(pixels, (8, 8), 3)[0].permute(1, 2, 0).int()
    by_pillow = np.array(image.resize((8, 8), Image.Resampling.BICUBIC), dtype=int)
    assert np.abs(small.numpy() - by_pillow).max() <= 1
