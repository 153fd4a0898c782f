"""What the server does and remembers between two clicks, and how much of it.

Browsers get an unguessable id; the explanation behind it, and the files made from it, stay here
until newer ones need the room. Loaded models are kept the same way: the last few, by size.
"""

import atexit
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote
from weakref import ref

from vit_demo import export
from vit_demo.checkpoints import LONGEST_NAME, SUFFIXES, CheckpointError, embedded
from vit_demo.checkpoints.hub import UNREACHABLE, is_on_disk, offline_message, room_in_cache
from vit_demo.checkpoints.timm_models import parameter_count, supported_timm
from vit_demo.explain import Classifier, Explanation, load
from vit_demo.files import atomic_write
from vit_demo.map_settings import MapSettings, settings_from
from vit_demo.memory import give_back, system_memory
from vit_demo.ui.explorer import standalone_html
from vit_demo.ui.folder import Folder
from vit_demo.ui.payload import payload
from vit_demo.ui.runner import GPU_COPIES, ZERO_GPU, Runner

MOST_EXPLANATIONS = 48
MOST_BYTES = 2**30
GIVEN_BACK_AT = 2**28  # bytes of explanations that were dropped
MODEL_BYTES = 2 * 2**30
MOST_VIEWS = 20  # of one picture, with files to take away
BEING_FETCHED = 60.0  # seconds: so long a view stays in any case
LOADING = threading.Semaphore(2)  # each needs memory for the file and for the model
DOWNLOADING = threading.Semaphore(4)  # more of them at once would only be slower, each
PREVIEW, PREVIEW_SIDE = "picture.jpg", 900  # pixels: three for each of the screen


class Store:
    """The last explanations, each with a folder of its own for files the page may serve."""

    def __init__(self, folder: Path, most: int = MOST_EXPLANATIONS, most_bytes: int = MOST_BYTES):
        self.most, self.most_bytes = most, most_bytes
        self.folder = folder
        self.kept: OrderedDict[str, Explanation] = OrderedDict()
        self.known: dict[Hashable, str] = {}  # example pictures: the same for everybody
        self.lock = threading.Lock()
        self.freed = 0  # bytes, since memory was given back to the system

    def new_id(self, id: str | None = None) -> str:
        """An unguessable name, or this one, with an empty folder for files."""
        id = id or secrets.token_urlsafe(18)
        self.folder_of(id).mkdir(exist_ok=True)
        return id

    def put(self, id: str, explanation: Explanation, key: Hashable | None = None) -> None:
        """Keep an explanation; the oldest ones, and their files, go when there is no room."""
        with self.lock:
            self.kept[id] = explanation
            if key is not None:
                self.known[key] = id
        self.trim()

    def trim(self) -> None:
        """The oldest ones go until there is room. Each question may have made one larger."""
        with self.lock:
            while len(self.kept) > self.most or (
                len(self.kept) > 1 and self.bytes > self.most_bytes
            ):
                self.drop(next(iter(self.kept)))

    def drop(self, id: str) -> None:
        memory = self.kept.pop(id).memory
        self.known = {k: v for k, v in self.known.items() if v != id}
        shutil.rmtree(self.folder_of(id), ignore_errors=True)
        self.freed += memory
        if self.freed > GIVEN_BACK_AT:
            self.freed = 0
            give_back()

    def drop_all_of(self, classifier: Classifier) -> None:
        """Explanations hold their model: to free it, they have to go."""
        with self.lock:
            for id in [id for id, kept in self.kept.items() if kept.classifier is classifier]:
                self.drop(id)

    def get(self, id: str) -> Explanation | None:
        with self.lock:
            if id in self.kept:
                self.kept.move_to_end(id)
            return self.kept.get(id)

    def find(self, key: Hashable) -> tuple[str, Explanation] | None:
        """An example that was explained before, and its id."""
        with self.lock:
            id = self.known.get(key)
            if id is None:
                return None
            self.kept.move_to_end(id)
            return id, self.kept[id]

    def example_of(self, id: str) -> str | None:
        """The name of the example that was looked at, if it was one."""
        with self.lock:
            return next((key[1] for key, known in self.known.items() if known == id), None)

    def folder_of(self, id: str) -> Path:
        return self.folder / id

    @property
    def bytes(self) -> int:
        return sum(explanation.memory for explanation in self.kept.values())

    def close(self) -> None:
        with self.lock:
            self.kept.clear()
            self.known.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


class Models:
    """The last models used, within so many bytes; visitors who ask for the same one at the same time
    wait for one loading.

    A model is in use as long as anybody holds it: a pass that runs, an explanation that is kept. To
    forget such a one would free nothing, and the next visitor would load it a second time. So idle
    ones go first, the least recently used before others. Only when the models in use are too many by
    themselves, `let_go` is called with the oldest: who keeps explanations of it drops them then.
    """

    def __init__(
        self,
        load: Callable[[str], Classifier],
        most_bytes: int = MODEL_BYTES,
        let_go: Callable[[Classifier], object] = lambda classifier: None,
    ):
        self.load, self.most_bytes, self.let_go = load, most_bytes, let_go
        self.kept: OrderedDict[str, Classifier] = OrderedDict()
        self.loading: dict[str, Future] = {}
        self.lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        return name in self.kept

    def get(self, name: str) -> Classifier:
        """The model of this name, loaded if need be. Raises what the loader raises, to all who wait;
        who asks again afterwards makes it try again."""
        if not isinstance(name, str) or len(name) > LONGEST_NAME:
            raise CheckpointError("That is no model's name; choose one from the list.")
        with self.lock:
            if name in self.kept:
                self.kept.move_to_end(name)
                return self.kept[name]
            others = self.loading.get(name)
            loading = others or self.loading.setdefault(name, Future())
        if others:
            return others.result()
        try:
            classifier = self.load(name)
        except BaseException as error:
            with self.lock:
                del self.loading[name]
            loading.set_exception(error)
            raise
        with self.lock:
            self.kept[name] = classifier
            del self.loading[name]
            self.make_room()
        loading.set_result(classifier)
        return classifier

    def make_room(self) -> None:
        """Forget models until the rest fits; never the newest, and none that is in use."""
        for let_go in (lambda classifier: None, self.let_go):
            for name in list(self.kept)[:-1]:
                if self.bytes <= self.most_bytes:
                    return
                let_go(self.kept[name])
                model = ref(self.kept[name])
                self.kept[name] = None  # keeps its place
                if model() is None:
                    del self.kept[name]
                    give_back()
                else:  # somebody else holds it, too
                    self.kept[name] = model()

    @property
    def bytes(self) -> int:
        return sum(map(size_of, self.kept.values()))


def file_size(name: str) -> int:
    """Bytes of a timm model's weights; of other files nobody but the person at the server decides."""
    return 4 * parameter_count(name) if name in supported_timm() else 0


def size_of(classifier: Classifier) -> int:
    return sum(parameter.nbytes for parameter in classifier.model.parameters())


class Server:
    """Models, explanations, and the files that visitors take away."""

    def __init__(self, files: dict[str, dict] | None = None, device: str = "auto"):
        self.files = files or {}  # name -> how to load it: what the person at the server offers
        self.device = device
        self.runner = Runner()
        self.folder = Folder()
        self.store = Store(self.folder.pictures)
        self.first: dict | None = None  # what the explorer opens with
        self.silent = -math.inf  # when the hub could not be reached
        self.models = Models(self.load, let_go=self.store.drop_all_of)
        atexit.register(self.close)

    def close(self) -> None:
        self.store.close()
        self.folder.remove()

    def load(self, name: str) -> Classifier:
        """A model by the name a visitor gave: never a path, whatever it looks like."""
        if name in self.files:
            how = self.files[name]
        elif Path(name).suffix in SUFFIXES or "/" in name or os.sep in name:
            raise CheckpointError(
                f"There is no model {name!r}; choose one from the list, or type a timm name."
            )
        else:
            how = {"name": name}
        size = file_size(name)
        if 2 * size > system_memory():  # a file is read, and a model made of it
            raise CheckpointError(
                f"{name} takes {size / 1e9:.1f} GB, too much for the memory here; choose a smaller model."
            )
        if not self.is_here(name):
            return self.download(name)
        with LOADING:
            return self.loaded(how)

    def download(self, name: str) -> Classifier:
        """A model from the hub: a few at a time, and none that has no room here. Once the hub cannot be
        reached, all who wait are told."""
        began, size = time.monotonic(), file_size(name)
        if 2 * size > room_in_cache():
            raise CheckpointError(
                f"{name} takes {size / 1e9:.1f} GB, too much for the disk here; choose a smaller model."
            )
        with DOWNLOADING:
            if self.silent > began:
                raise CheckpointError(offline_message(name, UNREACHABLE))
            try:
                return self.loaded({"name": name})
            except CheckpointError as error:
                if UNREACHABLE in str(error):
                    self.silent = time.monotonic()
                raise

    def loaded(self, how: dict) -> Classifier:
        if not ZERO_GPU:
            return load(**how, device=self.device)
        classifier = load(**how, device="cpu")
        GPU_COPIES[classifier] = load(**how, device="cuda")
        return classifier

    def is_here(self, name: str) -> bool:
        """Can it be loaded without a download?"""
        if name in self.models or name in self.files or name in embedded():
            return True
        return bool(re.fullmatch(r"\w[\w.-]{0,199}", name, re.ASCII)) and is_on_disk(name)

    def fetch(self, name: str) -> Future:
        """The model of this name, loaded in a thread of its own: a download may take minutes."""
        job = Future()

        def work() -> None:
            try:
                job.set_result(self.models.get(name))
            except BaseException as error:  # noqa: BLE001 (for whoever waits)
                job.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return job

    def explain(
        self, picture: object, model: str, fit: str, example: str | None = None
    ) -> tuple[str, Explanation]:
        """Look at a picture: what was seen, and its id. Examples are looked at once for everybody."""
        return self.look(self.models.get(model), picture, fit, example)

    def look(
        self, classifier: Classifier, picture: object, fit: str, example: str | None = None
    ) -> tuple[str, Explanation]:
        """The same with a model that is at hand. (Two models may have the same name.)"""
        key = (classifier, example, fit) if example else None
        known = key and self.store.find(key)
        if known:
            return known
        explanation, blob = self.runner.explain(classifier, picture, fit, payload)
        id = self.store.new_id(self.first_id(classifier, example, fit))
        try:
            self.store.folder_of(id).joinpath("explorer.bin").write_bytes(blob)
            save_preview(explanation, self.store.folder_of(id) / PREVIEW)
        except OSError:  # the disk is full
            shutil.rmtree(self.store.folder_of(id), ignore_errors=True)
            raise
        self.store.put(id, explanation, key)
        return id, explanation

    def first_id(self, classifier: Classifier, example: str | None, fit: str) -> str | None:
        """The name that the page knows the first picture by: it keeps it when it has to be looked at again."""
        first = self.first
        if not first or (example, fit) != (first["example"], first["fit"]):
            return None
        same = self.models.kept.get(first["model"]) is classifier  # others may have its name
        return first["id"] if same and first["id"] not in self.store.kept else None

    def classify(self, picture: object, model: str, fit: str, top: int) -> dict:
        """The labels alone, in words that JSON knows."""
        classifier = self.models.get(model)
        labels = self.runner.classify(classifier, picture, top, fit)
        return {"model": classifier.name, "labels": [asdict(label) for label in labels]}

    def maps(
        self, picture: object, model: str, fit: str, settings: MapSettings
    ) -> tuple[dict, bytes]:
        """For programs: explanation.json and maps.npz, of which nothing stays here."""
        classifier = self.models.get(model)

        def files(explanation: Explanation) -> tuple[dict, bytes]:
            arrays = export.npz_bytes(export.arrays_of(explanation, settings))
            return json.loads(json.dumps(export.description(explanation, settings))), arrays

        return self.runner.explain(classifier, picture, fit, files)[1]

    def explanation(self, picture: object, model: str, fit: str) -> Explanation:
        """For programs: what one picture's pass can tell; nothing of it stays here."""
        return self.runner.explain(self.models.get(model), picture, fit, lambda e: None)[0]

    def url(self, id: str, name: str = "explorer.bin") -> str:
        """Where the browser gets a file; relative, so that it works behind any proxy."""
        return f"gradio_api/file={quote(self.store.folder_of(id).joinpath(name).as_posix())}"

    def picture_url(self, id: str) -> str:
        """The whole picture, to look at: also of a file that browsers cannot draw."""
        return self.url(id, PREVIEW)

    def save(self, id: str, kind: str, state: dict, language: str) -> str | None:
        """Write one of the files to take away; where it lies in the picture's folder, or None if
        the picture is gone. Visitors share the examples, so each view has a folder of its own."""
        explanation = self.store.get(id)
        if explanation is None:
            return None
        digest = hashlib.sha256(json.dumps([state, language], sort_keys=True).encode()).hexdigest()
        path = self.store.folder_of(id) / digest[:16] / FILES[kind]
        if path.exists():
            with suppress(FileNotFoundError):  # it was forgotten just now
                os.utime(path.parent)  # young again
                return f"{path.parent.name}/{path.name}"
        forget_old_views(self.store.folder_of(id))
        path.parent.mkdir(exist_ok=True)
        settings = settings_from(state)
        with atomic_write(path) as part:  # others may be fetching it just now
            if kind == "npz":
                part.write_bytes(export.npz_bytes(export.arrays_of(explanation, settings)))
            elif kind == "json":
                text = export.json_text(export.description(explanation, settings))
                part.write_text(text, encoding="utf-8")
            elif kind == "html":
                part.write_text(standalone_html(explanation, language, state), encoding="utf-8")
            else:
                export.save_animation(explanation, settings, part)
        return f"{path.parent.name}/{path.name}"


def forget_old_views(folder: Path) -> None:
    """Of a picture's views the newest stay, and those that somebody may be fetching just now."""
    views = []
    for view in folder.iterdir():
        with suppress(FileNotFoundError):  # somebody else forgets it, too
            views += [(view.stat().st_mtime, view)] if view.is_dir() else []
    for since, view in sorted(views)[: max(0, len(views) - MOST_VIEWS)]:
        if since < time.time() - BEING_FETCHED:
            shutil.rmtree(view, ignore_errors=True)


def save_preview(explanation: Explanation, path: Path) -> None:
    """The visitor's picture, upright, no larger than its place on the page needs."""
    picture = explanation.view.original
    if max(picture.size) > PREVIEW_SIDE:
        picture = picture.copy()
        picture.thumbnail((PREVIEW_SIDE, PREVIEW_SIDE))
    picture.save(path, quality=90, subsampling=0)


FILES = {
    "npz": "maps.npz",
    "json": "explanation.json",
    "gif": "layers.gif",
    "webp": "layers.webp",
    "html": "explorer.html",
}
