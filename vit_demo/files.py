"""Folders for results, and files in them that are there whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vit_demo.validate import printable

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
LOCK = ".lock"


def make_folder(path: str | Path) -> Path:
    """A folder for results, made if it is not there, and tried out: now is the time to find out."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise ValueError(why_not_written(error, path)) from error
    return path


def why_not_written(error: OSError, path: str | Path | None = None) -> str:
    """What an error of the system means for somebody who wants files to be written."""
    path = os.fsdecode(path or error.filename or "The folder for the results")
    name = printable(path if len(path) <= 100 else f"{path[:60]}...{path[-20:]}")
    if error.errno == errno.ENAMETOOLONG:
        return f"{name} is too long for the name of a file; choose a shorter one."
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return f"{name} is a file, or lies in one; give a folder for the results."
    if error.errno in FORBIDDEN:
        return f"{name} may not be written to; choose a folder that you may change."
    if error.errno in FULL:
        return f"{name} cannot be written, the disk is full; make room, or choose another folder."
    return f"{name} cannot be written ({error.strerror or error}); choose another folder."


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else works in this folder meanwhile. The system releases the lock when the process ends,
    however it ends."""
    with open(folder / LOCK, "a") as file:
        try:
            if fcntl:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another run is writing into {printable(str(folder))}; wait until it is done, or "
                "choose another folder."
            ) from None
        except OSError:  # a file system without locks
            pass
        yield


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


def append_line(path: Path, line: str) -> None:
    """Add a line, whole: one that a crash cut short before is closed, and its reader will skip it."""
    with open(path, "ab+") as file:
        cut = False
        if file.tell():
            file.seek(-1, os.SEEK_END)
            cut = file.read(1) != b"\n"
        file.write(b"\n" * cut + line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
