"""Where the server's files lie: one folder a server, and nothing in it for ever.

Pictures that visitors send are written by Gradio, also those that never arrive in full. They are removed
by age, and together with the files that visitors take away they have only so much room and number: the
oldest go first. The whole folder goes when the server stops; and if it was killed, when the next one
starts. Whose server still runs is told by a lock, which the system releases however a process ends: the
number of a process says little, for in a container each server is number 1.
"""

import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import IO

from vit_demo.files import atomic_write
from vit_demo.validate import shown

try:
    import fcntl
except ImportError:  # not POSIX: there, folders of killed servers stay
    fcntl = None

KEEP_MINUTES = 30.0
LEAST_MINUTES = 0.001
MOST_BYTES = 2 * 2**30  # of uploads, and of files to take away
MOST_FILES = 5_000  # of them
SWEEP_EVERY = 5.0  # seconds, at most
LOCK = "lock"


class Folder:
    """`uploads` is for Gradio, `pictures` for what is made from them."""

    def __init__(self):
        self.keep = 60 * keep_minutes()
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
            self.tidy()

    def tidy(self) -> None:
        files = remove_old(self.uploads, self.keep)
        for path, _, names in os.walk(self.pictures):  # what vanishes meanwhile is left out
            if Path(path).parent.parent == self.pictures:  # a view's files to take away
                files += [Path(path, name) for name in names]
        for path in remove_beyond(files, MOST_BYTES, MOST_FILES):
            if path.parent.parent == self.uploads:  # Gradio gives each upload a folder
                with suppress(OSError):  # somebody has sent the same picture just now
                    path.parent.rmdir()

    def remove(self) -> None:
        self.removed.set()
        shutil.rmtree(self.path, ignore_errors=True)
        if self.lock:
            self.lock.close()


def saved(data: bytes, name: str, folder: str) -> str:
    """A file in a folder that is named by its contents: the same for all who ask for the same, and whole."""
    path = Path(folder, hashlib.sha256(data).hexdigest(), name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as part:
            part.write_bytes(data)
    return str(path.resolve())


def keep_minutes() -> float:
    """How long uploads are kept, as the environment says."""
    said = os.environ.get("VIT_DEMO_KEEP_MINUTES") or KEEP_MINUTES
    try:
        minutes = float(said)
    except ValueError:
        minutes = 0.0
    if not minutes >= LEAST_MINUTES:  # also if it is no number
        raise ValueError(
            f"VIT_DEMO_KEEP_MINUTES is {shown(said)}; set it to the minutes for which uploads are kept, "
            f"such as 30, and at least {LEAST_MINUTES}."
        )
    return minutes


def locked(folder: Path) -> IO | None:
    """The lock of a folder, held as long as this is open; None if another process holds it, or if it is
    no plain file: anybody may write to the place for temporary files, and a pipe would be waited for."""
    if not fcntl:
        return None
    flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = open(os.open(folder / LOCK, flags, 0o600), "r+b", buffering=0)  # noqa: SIM115 (it stays open)
    except OSError:
        return None
    try:
        if S_ISREG(os.fstat(file.fileno()).st_mode):
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


def remove_old(folder: Path, seconds: float) -> list[Path]:
    """Remove what was written below this folder longer ago than this, and folders left empty; the files
    that stay."""
    kept, before = [], time.time() - seconds
    walk = os.walk(folder, topdown=False)  # what is inside comes before its folder
    for path, names, files in walk:
        for name in [*files, *names]:
            inside = Path(path, name)
            try:
                if inside.lstat().st_mtime < before:
                    inside.rmdir() if name in names else inside.unlink()
                elif name in files:
                    kept.append(inside)
            except OSError:  # not empty, or somebody was faster
                continue
    return kept


def remove_beyond(paths: Iterable[Path], most_bytes: int, most_files: int) -> list[Path]:
    """Remove the oldest of these files until the others are at most so many; those that are gone."""
    files, gone = [], []
    for path in paths:
        try:
            about = path.lstat()
        except OSError:  # somebody was faster
            continue
        if S_ISREG(about.st_mode):
            files.append((about.st_mtime, about.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= most_bytes and len(files) - len(gone) <= most_files:
            break
        with suppress(OSError):
            path.unlink()
        total -= size
        gone.append(path)
    return gone
