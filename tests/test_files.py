"""A file is there whole, or as it was."""

import os
import stat

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


def test_contents_are_on_the_disk_before_the_name_and_the_name_before_it_returns(
    tmp_path, monkeypatch
):
    done, replace, fsync = [], os.replace, os.fsync

    def synced(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *names: done.append("rename") or replace(*names))
    with atomic_write(tmp_path / "new.txt") as part:
        part.write_text("new")
    assert done == ["file", "rename", "folder"]
    assert (tmp_path / "new.txt").read_text() == "new"
