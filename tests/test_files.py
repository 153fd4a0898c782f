"""A file is there whole, or as it was."""

import pytest

from vit_demo.files import atomic_write


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]
    with atomic_write(path) as part:
        part.write_text("new")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["new"]
