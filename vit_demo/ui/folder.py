"""Where the server's files lie: one folder a server, and nothing in it for ever.

Pictures that visitors send are written by Gradio, also those that never arrive in full. They are removed
by age, and together with the files that visitors take away they have only so much room: the oldest go
first. The whole folder goes when the server stops; and if it was killed, when the next one starts. Whose
server still runs is told by a lock, which the system releases however a process ends: the number of a
process says little, for in a container each server is number 1.
"""

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from stat import S_ISREG
from typing import IO

try:
    import fcntl
except ImportError:  # not POSIX: there, folders of killed servers stay
    fcntl = None

KEEP_MINUTES = 30.0
MOST_BYTES = 2 * 2**30  # of uploads, and of files to take away
SWEEP_EVERY = 5.0  # seconds, at most
LOCK = "lock"


class Folder:
    """`uploads` is for Gradio, `pictures` for what is made from them."""

    def __init__(self):
        self.keep = 60 * float(os.environ.get("VIT_DEMO_KEEP_MINUTES") or KEEP_MINUTES)
        remove_abandoned(Path(tempfile.gettempdir()))
        new = Path(tempfile.mkdtemp(prefix=".vit-demo-"))
        self.lock = locked(new)
        self.path = new.rename(new.with_name(new.name[1:]))  # others see it when it is locked
        self.uploads, self.pictures = self.path / "uploads", self.path / "pictures"
        self.uploads.mkdir()
        self.pictures.mkdir()
        os.environ["GRADIO_TEMP_DIR"] = str(self.uploads)  # read by each component that is made now
        self.removed = threading.Event()
        threading.Thread(target=self.sweep, name="sweep", daemon=True).start()

    def sweep(self) -> None:
        """Remove old uploads now and then, whether anybody comes or not, and what is too much."""
        while not self.removed.wait(min(SWEEP_EVERY, self.keep)):
            remove_old(self.uploads, self.keep)
            remove_beyond([*self.uploads.rglob("*"), *self.pictures.glob("*/*/*")], MOST_BYTES)

    def remove(self) -> None:
        self.removed.set()
        shutil.rmtree(self.path, ignore_errors=True)
        if self.lock:
            self.lock.close()


def locked(folder: Path) -> IO | None:
    """The lock of a folder, held as long as this is open; None if another process holds it."""
    try:
        file = open(folder / LOCK, "a")  # noqa: SIM115 (it stays open)
    except OSError:
        return None
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
    except OSError:  # another one has it, or the file system has no locks
        pass
    file.close()
    return None


def remove_abandoned(place: Path) -> None:
    """Remove the folders of servers that were killed."""
    for old in place.glob("vit-demo-*"):
        lock = locked(old) if (old / LOCK).exists() else None
        if lock:
            shutil.rmtree(old, ignore_errors=True)
            lock.close()


def remove_old(folder: Path, seconds: float) -> None:
    """Remove what was written below this folder longer ago than this, and folders left empty."""
    for path in sorted(folder.rglob("*"), reverse=True):  # what is inside comes before its folder
        try:
            if time.time() - path.stat().st_mtime > seconds:
                path.rmdir() if path.is_dir() else path.unlink()
        except OSError:  # not empty, or somebody was faster
            continue


def remove_beyond(paths: list[Path], most: int) -> None:
    """Remove the oldest of these files until the others have at most so many bytes."""
    files = []
    for path in paths:
        try:
            about = path.stat()
        except OSError:  # somebody was faster
            continue
        if S_ISREG(about.st_mode):
            files.append((about.st_mtime, about.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= size
