"""Where the weights of a timm model are: your own folder, the hub's cache, or the hub.

A hub may be slow, silent or wrong. The caller gets a complete file, or within seconds an error that
says why not and what works without it.
"""

import errno
import hashlib
import math
import os
import re
import shutil
import threading
import time
from pathlib import Path

from vit_demo.checkpoints.timm_models import nearest
from vit_demo.checkpoints.weights import SUFFIXES, CheckpointError
from vit_demo.embedded import embedded

HUB_FILES = ("model.safetensors", "pytorch_model.bin", "open_clip_model.safetensors")
UNREACHABLE = "the model hub cannot be reached"
HUB_SECONDS = 5  # how long the hub may take to answer before we say that it does not
STALL_SECONDS = 8  # how long a download may stand still
CHUNK_BYTES = 128 * 2**10
ASK_AGAIN_SECONDS = 20  # how long the hub's answer to `can_download` is believed
ANSWERS: dict[str, tuple[float, bool]] = {}  # of a repository: when, and what
DOWNLOADS: dict[str, "Download"] = {}  # that run now, by the model's name


def find_weights(name: str, cfg: dict) -> Path:
    """A file with the weights of this timm model: own folder, then the hub's cache, then the hub."""
    path = own_file(name)
    if path:
        return path
    repo = cfg.get("hf_hub_id")
    if not repo:
        raise CheckpointError(
            f"The weights of {name} are not on the model hub; try {nearest(name)}."
        )
    repo = f"timm/{name}" if repo == "timm/" else repo
    path = cached_file(repo)
    return path if path and intact(path) else download(repo, name)


def is_on_disk(name: str, repo: str | None = None) -> bool:
    """Can this timm model be loaded without a download? `repo`, if it is not called as the model."""
    return bool(own_file(name) or cached_file(repo or f"timm/{name}"))


def own_file(name: str) -> Path | None:
    """The weights in the folder that VIT_DEMO_WEIGHTS names."""
    folder = os.environ.get("VIT_DEMO_WEIGHTS")
    paths = [Path(folder) / (name + suffix) for suffix in SUFFIXES] if folder else []
    return next((path for path in paths if path.is_file()), None)


def room_in_cache() -> int:
    """Bytes that are free where downloads go."""
    from huggingface_hub.constants import HF_HUB_CACHE

    place = Path(HF_HUB_CACHE)
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def cached_file(repo: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    for filename in HUB_FILES:
        path = try_to_load_from_cache(repo, filename)
        if isinstance(path, str):
            return Path(path)
    return None


def intact(path: Path) -> bool:
    """Is a file in the hub's cache what the hub said it would be? If not, it is thrown away.

    The cache names large files by their SHA-256, and nobody else ever looks whether it is true.
    """
    blob = path.resolve()
    if not re.fullmatch("[0-9a-f]{64}", blob.name):
        return True
    with blob.open("rb") as stream:
        fine = hashlib.file_digest(stream, "sha256").hexdigest() == blob.name
    if not fine:
        path.unlink()
        blob.unlink(missing_ok=True)
    return fine


def can_download(repo: str) -> bool:
    """Would the hub give the weights now? Its answer is believed for a while."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    asked, answer = ANSWERS.get(repo, (-math.inf, False))
    if time.monotonic() - asked < ASK_AGAIN_SECONDS:
        return answer
    try:
        get_hf_file_metadata(hf_hub_url(repo, HUB_FILES[0]), timeout=HUB_SECONDS)
        answer = True
    except Exception:  # noqa: BLE001 (offline, silent, refused, away: all of them mean no)
        answer = False
    ANSWERS[repo] = time.monotonic(), answer
    return answer


def downloaded(name: str) -> tuple[int, int] | None:
    """How many bytes of a timm model have come, and of how many; None if it is not on its way, or
    nobody knows yet how large it is."""
    watched = DOWNLOADS.get(name)
    return (watched.most, watched.total) if watched and watched.total else None


def download(repo: str, name: str) -> Path:
    """Fetch the weights, with a progress bar, or say in seconds that they cannot be had."""
    watched = DOWNLOADS[name] = Download(repo)
    try:
        path = watched.wait()
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise CheckpointError(
            offline_message(name, "the disk is full" if full else UNREACHABLE)
        ) from error
    except Exception as error:  # the hub's client has many kinds, by version and transport
        raise CheckpointError(offline_message(name, UNREACHABLE)) from error
    finally:
        DOWNLOADS.pop(name, None)
    if path is None:
        raise CheckpointError(offline_message(name, f"the model hub has no weights in {repo}"))
    if not intact(path):
        raise CheckpointError(offline_message(name, "the file arrived damaged"))
    return path


class Download:
    """A download that is given up when it stands still.

    The hub's own client goes on for minutes with a hub that falls silent, and for ever with one that
    sends the first half again and again. It cannot be told to stop, so it works in a thread of its
    own, and is left alone there; the next byte that it gets ends it.
    """

    def __init__(self, repo: str):
        self.repo = repo
        self.most, self.moved = 0, time.monotonic()  # bytes so far, and when there were more
        self.total = 0  # bytes of the file, once the hub has said it
        self.given_up = False
        self.path, self.error = None, None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def wait(self) -> Path | None:
        """The file; None if there is none in this repository."""
        self.thread.start()
        while self.thread.is_alive():
            self.thread.join(0.1)
            if time.monotonic() - self.moved > STALL_SECONDS:
                self.given_up = True
                raise TimeoutError("The download stands still.")
        if self.error:
            raise self.error
        return self.path

    def run(self) -> None:
        from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import EntryNotFoundError

        # The client tells of each chunk. Of 10 MB, its own size, a slow line would bring less than one
        # in STALL_SECONDS, and pass for one that stands still.
        constants.DOWNLOAD_CHUNK_SIZE = CHUNK_BYTES
        try:
            for filename in HUB_FILES:
                self.moved = time.monotonic()
                try:  # without this question, the client would ask for minutes
                    url = hf_hub_url(self.repo, filename)
                    self.total = get_hf_file_metadata(url, timeout=HUB_SECONDS).size or 0
                except EntryNotFoundError:
                    continue
                options = {"etag_timeout": HUB_SECONDS, "tqdm_class": self.progress_bar()}
                self.path = Path(hf_hub_download(self.repo, filename, **options))
                return
        except BaseException as error:  # noqa: BLE001 (raised again by `wait`)
            self.error = error

    def progress_bar(self) -> type:
        from huggingface_hub.utils import tqdm

        class Bar(tqdm):
            came = None

            def update(bar, n: float | None = 1) -> bool | None:
                if self.given_up:
                    raise InterruptedError
                # Without a terminal, a bar does not count: `n` stays what it was in the beginning.
                bar.came = (bar.n if bar.came is None else bar.came) + n
                if bar.came > self.most:
                    self.most, self.moved = bar.came, time.monotonic()
                return super().update(n)

        return Bar


def offline_message(name: str, reason: str) -> str:
    near = ", ".join(embedded())
    instead = f" or choose a model that needs no download ({near})" if near else ""
    return (
        f"{name} could not be downloaded: {reason}. Put {name}.safetensors into a folder and set "
        f"VIT_DEMO_WEIGHTS to it,{instead or ' or try again with a connection'}."
    )
