"""Files that are there whole or not at all, whatever happens while they are written."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Write beside, then rename: there is the old file or the new one, never half of one.

    Also after a power cut: the contents reach the disk before the name does, and the name before
    this returns.
    """
    path = Path(path)
    handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part" + path.suffix)
    os.close(handle)
    try:
        yield Path(part)
        os.chmod(part, 0o644)
        sync(part)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened
        sync(path.parent)


def sync(path: str | Path) -> None:
    """Wait until what was written is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")
