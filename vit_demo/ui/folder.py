"""Where the server's files lie: one folder a process, and nothing in it for ever.

Pictures that visitors send are written by Gradio, also those that never arrive in full. They are removed
by age. The whole folder goes when the server stops; and if it was killed, when the next one starts.
"""

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

KEEP_MINUTES = 30.0
SWEEP_EVERY = 30.0  # seconds, at most


class Folder:
    """`uploads` is for Gradio, `pictures` for what is made from them."""

    def __init__(self):
        self.keep = 60 * float(os.environ.get("VIT_DEMO_KEEP_MINUTES") or KEEP_MINUTES)
        place = Path(tempfile.gettempdir())
        for old in place.glob("vit-demo-*-*"):
            number = old.name.split("-")[2]
            if number.isdecimal() and not is_running(int(number)):
                shutil.rmtree(old, ignore_errors=True)
        self.path = Path(tempfile.mkdtemp(prefix=f"vit-demo-{os.getpid()}-"))
        self.uploads, self.pictures = self.path / "uploads", self.path / "pictures"
        self.uploads.mkdir()
        self.pictures.mkdir()
        os.environ["GRADIO_TEMP_DIR"] = str(self.uploads)  # read by each component that is made now
        self.swept, self.lock = time.monotonic(), threading.Lock()

    def sweep(self) -> None:
        """Remove old uploads; called with every picture, works now and then."""
        with self.lock:
            if time.monotonic() - self.swept < min(SWEEP_EVERY, self.keep):
                return
            self.swept = time.monotonic()
        remove_old(self.uploads, self.keep)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)  # only asks
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def remove_old(folder: Path, seconds: float) -> None:
    """Remove what was written below this folder longer ago than this, and folders left empty."""
    for path in sorted(folder.rglob("*"), reverse=True):  # what is inside comes before its folder
        try:
            if time.time() - path.stat().st_mtime > seconds:
                path.rmdir() if path.is_dir() else path.unlink()
        except OSError:  # not empty, or somebody was faster
            continue
