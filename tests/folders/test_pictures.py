"""Which pictures are found, in which order, and what their folders say about them."""

import os
from pathlib import Path

import pytest
from support.folders import make_pictures

from vit_demo.checkpoints.timm_models import imagenet_labels
from vit_demo.folders.pictures import (
    Pictures,
    batches_of,
    classes_by_name,
    find_pictures,
    true_class,
)

OUT = Path("nowhere")


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return folder


def test_a_folder_gives_its_pictures_by_name_and_leaves_out_the_rest(tmp_path):
    touch(tmp_path, "b/2.JPG", "b/10.png", "a.webp", "b/notes.txt", ".hidden/x.png", "b/._2.jpg")
    touch(tmp_path, "out/report/000/000001.jpg")
    found = find_pictures([tmp_path], tmp_path / "out")
    assert found == Pictures(str(tmp_path), ["a.webp", "b/10.png", "b/2.JPG"])
    assert Path(found.path(2)) == tmp_path / "b" / "2.JPG"


def test_files_and_globs_are_named_below_the_folder_they_share(tmp_path):
    touch(tmp_path, "x/1.png", "x/2.png", "y/3.png", "y/readme.txt")
    found = find_pictures([tmp_path / "y" / "3.png", tmp_path / "x" / "1.png"], OUT)
    assert found == Pictures(str(tmp_path), ["y/3.png", "x/1.png"])
    found = find_pictures([f"{tmp_path}/*/*.png"], OUT)
    assert found.names == ["x/1.png", "x/2.png", "y/3.png"]
    found = find_pictures([tmp_path / "x", tmp_path / "x" / "1.png"], OUT)
    assert found == Pictures(str(tmp_path / "x"), ["1.png", "2.png"])  # each once
    found = find_pictures([tmp_path / "y" / "readme.txt", tmp_path / "x" / "1.png"], OUT)
    assert found.names == ["y/readme.txt", "x/1.png"]  # asked for, so it will be told


def test_a_name_with_stars_that_is_there_is_no_glob(tmp_path):
    touch(tmp_path, "[a].png", "a.png")
    assert find_pictures([tmp_path / "[a].png"], OUT).names == ["[a].png"]


@pytest.mark.parametrize("source", ["missing", "missing/*.png"])
def test_nothing_found_is_a_sentence(tmp_path, source):
    with pytest.raises(ValueError, match="There is no file or folder"):
        find_pictures([tmp_path / source], OUT)
    with pytest.raises(ValueError, match="holds no pictures"):
        find_pictures([tmp_path], OUT)


def test_a_circle_of_links_ends(tmp_path):
    touch(tmp_path, "a/1.png")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    assert find_pictures([tmp_path], OUT).names == ["a/1.png"]


def test_a_batch_is_known_by_its_files(tmp_path):
    pictures = find_pictures([make_pictures(tmp_path / "p", 5)], OUT)
    first = batches_of(pictures, 2)
    assert [list(batch.pictures) for batch in first] == [[0, 1], [2, 3], [4]]
    assert batches_of(pictures, 2) == first
    os.utime(pictures.path(3), (1, 1))
    changed = batches_of(pictures, 2)
    assert [a.key == b.key for a, b in zip(first, changed, strict=True)] == [True, False, True]
    os.unlink(pictures.path(0))
    assert batches_of(pictures, 2)[0].key != first[0].key


def test_a_folder_says_a_class_by_any_unmistakable_name():
    classes = classes_by_name(["tabby, tabby cat", "crane", "crane", "Egyptian cat", "cat, tabby"])
    assert classes["tabby cat"] == 0 and classes["egyptian cat"] == 3
    assert "crane" not in classes and "tabby" not in classes  # two have it
    pictures = Pictures(os.sep + "val", ["Egyptian_Cat/1.png", "x/2.png", "Tabby  cat/inner/3.png"])
    assert [true_class(pictures, i, classes) for i in range(3)] == [3, None, 0]
    assert true_class(Pictures(f"{os.sep}x{os.sep}egyptian cat", ["1.png"]), 0, classes) == 3


def test_synsets_are_names_of_imagenets_labels_only():
    assert classes_by_name(imagenet_labels(1000))["n02123045"] == 281
    assert "n02123045" not in classes_by_name([f"class {i}" for i in range(1000)])
