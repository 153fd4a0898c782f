"""Explain every picture of a folder, and write down what was found.

    report.html   a contact sheet that opens from disk; its small pictures lie in report/
    answers.csv   one line a picture
    maps/         the numbers of each picture's maps, if asked for
    run/          what is done: the settings, and a line for each finished batch

A thread takes a batch from reading to writing, and there are as many threads as cores: nobody waits
for anybody. A batch counts once its line is in run/, which comes last; so a run that was killed at any
moment goes on, and ends with the same files. Under torchrun the batches are shared out.
"""

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from vit_demo.checkpoints.weights import checksum
from vit_demo.distributed import ProcessGroup
from vit_demo.explain import Classifier, Label
from vit_demo.files import append_line, atomic_write, locked, make_folder, write_text
from vit_demo.folders.batch import Question, Seen, answers, record_of, see
from vit_demo.folders.pictures import Batch, Pictures, batches_of, classes_by_name, find_pictures
from vit_demo.folders.pictures import true_class as true_class_of
from vit_demo.folders.report import Summary, map_file, thumbnail_file, write_report
from vit_demo.image import ImageError
from vit_demo.labels import find_label
from vit_demo.map_settings import CLASS_MAPS, COLOUR_MAPS, FITS, unknown_colours
from vit_demo.validate import choice, printable, whole

BATCH, BATCH_ON_GPU = 8, 64  # pictures
PASSES_ON_GPU = 2  # at a time: while one is computed, the next is sent
MAPS = ("rollout", *CLASS_MAPS)
SETTINGS, DONE = "settings.json", "batches.jsonl"  # in run/


def explain_folder(
    classifier: Classifier,
    images: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    map: str = "rollout",
    label: Label = None,
    fit: str = "crop",
    maps: bool = False,
    colours: str = "inferno",
    resume: bool = False,
    batch_size: int | None = None,
    workers: int | None = None,
    group: ProcessGroup | None = None,
) -> Summary | None:
    """Explain every picture of a folder (or of a glob, or several files) into the folder `out`.

    `map` is the one that the report shows: rollout, or a class map, of each picture's answer or of
    `label`. With `maps`, what `explain` writes into maps.npz is also written for each picture. Where
    a folder has the name of a label, the report says whether the answers are right. `resume` goes on
    with a run that was stopped. In a process group only rank 0 returns the summary.
    """
    group = group or ProcessGroup(0, 1, classifier.device)
    choice("fit", fit, FITS)
    choice("map", map, MAPS)
    if colours not in COLOUR_MAPS:
        raise unknown_colours(colours)
    if map != "rollout" or label is not None:
        classifier.require_labels()
    if label is not None:
        label = find_label(classifier.labels, label)
        if map == "rollout":
            raise ValueError(f"Rollout is the same for every label; use {', '.join(CLASS_MAPS)}.")
    on_cpu, out = group.device.type == "cpu", Path(out)
    if batch_size is not None:
        batch_size = whole("batch_size", batch_size, least=1)
    threads = torch.get_num_threads()
    workers = whole("workers", workers or (threads if on_cpu else max(4, threads)), least=1)
    sources = [images] if isinstance(images, str | os.PathLike) else list(images)
    question = Question(classifier, fit, map, label, maps)
    settings = settings_of(question, batch_size)

    with contextlib.ExitStack() as until_done:

        def prepare() -> tuple[Pictures, list[Batch], list[int]]:
            pictures = find_pictures(sources, out)
            make_folder(out)
            until_done.enter_context(locked(out))
            size = begin(out, settings, resume, BATCH if on_cpu else BATCH_ON_GPU)
            batches = batches_of(pictures, size)
            done = set(gather(out, batches, question, again=True))
            return pictures, batches, [n for n in range(len(batches)) if n not in done]

        pictures, batches, todo = group.first(prepare)
        check_shared(out, group)
        classes = classes_by_name(classifier.labels)
        mine = [batches[number] for number in todo[group.rank :: group.world]]
        passes = threading.Semaphore(workers if on_cpu else PASSES_ON_GPU)
        quiet = True if group.rank else None  # None: no bar where nobody watches
        count = sum(len(batch.pictures) for batch in mine)
        ready = 0 if group.world > 1 else len(pictures.names) - count
        bar = tqdm(total=ready + count, initial=ready, disable=quiet, unit="picture", leave=False)
        if group.world > 1:
            bar.set_description(f"process 1 of {group.world}")
        writing = threading.Lock()

        def work(batch: Batch, stopped: Callable[[], bool]) -> None:
            records = explain_batch(question, pictures, batch, classes, out, passes, stopped)
            if records is not None:
                line = json.dumps({"batch": batch.number, "key": batch.key, "pictures": records})
                with writing:
                    append_line(out / "run" / f"batches-{group.rank}.jsonl", line)
                    bar.update(len(batch.pictures))

        with bar:
            in_threads(mine, work, workers, max(1, threads // workers) if on_cpu else threads)
        group.wait()
        if group.rank:
            return None
        return finish(out, pictures, batches, question, colours)


def in_threads(
    batches: Sequence[Batch],
    work: Callable[[Batch, Callable[[], bool]], None],
    workers: int,
    threads: int,
) -> None:
    """Do all the work; each worker's matrix products run on so many threads of torch. On an error, or
    Ctrl-C, everybody stops after the picture at hand."""
    waiting, turn, stop = iter(batches), threading.Lock(), threading.Event()
    before = torch.get_num_threads()

    def worker() -> None:
        torch.set_num_threads(threads)  # of this thread, and of those that begin later
        while not stop.is_set():
            with turn:
                batch = next(waiting, None)
            if batch is None:
                return
            work(batch, stop.is_set)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for done in as_completed([pool.submit(worker) for _ in range(workers)]):
                done.result()
        finally:
            stop.set()
            torch.set_num_threads(before)


def explain_batch(
    question: Question,
    pictures: Pictures,
    batch: Batch,
    classes: dict[str, int],
    out: Path,
    passes: threading.Semaphore,
    stopped: Callable[[], bool],
) -> list[dict] | None:
    """Read, explain and write the pictures of a batch; their records, or nothing if stopped."""
    records: dict[int, dict] = {}
    by_size: dict[tuple, dict[int, Seen]] = {}  # native: not all have the same
    for number in batch.pictures:
        if stopped():
            return None
        try:
            seen = see(question, pictures.path(number))
            by_size.setdefault(seen.grid, {})[number] = seen
        except ImageError as error:
            name = printable(pictures.names[number])
            records[number] = {"picture": name, "error": printable(str(error))}
    for together in by_size.values():
        with passes:
            found = answers(question, list(together.values()))
        for (number, seen), answer in zip(together.items(), found, strict=True):
            name = printable(pictures.names[number])
            if not (answer.logits.isfinite().all() and answer.heat.isfinite().all()):
                records[number] = {"picture": name, "error": question.classifier.no_answer()}
                continue
            truth = true_class_of(pictures, number, classes)
            records[number] = record_of(question, name, seen, answer, truth)
            write(out / thumbnail_file(number, seen.size), seen.thumbnail)
            if question.arrays:
                path = out / map_file(number)
                path.parent.mkdir(parents=True, exist_ok=True)
                np.savez(path, **answer.arrays)
    return [records[number] for number in batch.pictures]


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# What is done


def settings_of(question: Question, batch_size: int | None) -> dict:
    """What decides the result. Other weights under the same name are another model."""
    classifier = question.classifier
    weights = {name: t.cpu() for name, t in classifier.model.state_dict().items()}
    return {
        "model": classifier.name,
        "weights": checksum(weights, json.dumps(classifier.labels)),
        "map": question.map,
        "label": question.label,
        "fit": question.fit,
        "maps": question.arrays,
        "batch_size": batch_size,
    }


def begin(out: Path, settings: dict, resume: bool, usual_size: int) -> int:
    """Write the settings down, or see that they are those of the run to go on with; its batch size."""
    path = make_folder(out / "run") / SETTINGS
    if not path.exists():
        size = settings["batch_size"] or usual_size
        write_text(path, json.dumps(settings | {"batch_size": size}, indent=2) + "\n")
        return size
    shown = printable(str(out))
    if not resume:
        raise ValueError(f"{shown} holds a run; add --resume to go on, or choose another --out.")
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
        size = whole("batch_size", old["batch_size"], least=1)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{printable(str(path))} is damaged; remove the folder, or choose another --out."
        ) from error
    given = settings | ({} if settings["batch_size"] else {"batch_size": size})
    other = [name for name in given if old.get(name) != given[name]]
    if other:
        value = "other numbers" if other[0] == "weights" else printable(str(old.get(other[0])))
        raise ValueError(
            f"The run in {shown} has another {other[0].replace('_', ' ')} ({value}); use the same one, "
            "or choose another --out."
        )
    return size


def check_shared(out: Path, group: ProcessGroup) -> None:
    """Every machine writes into the same folder, and rank 0 reads what they wrote."""
    sees = torch.tensor([float((out / "run" / SETTINGS).exists())])
    if int(group.sum(sees)) < group.world:
        raise ValueError(
            f"Not every machine sees {printable(str(out))}; give a folder that all of them share."
        )


class Line(NamedTuple):
    """Where the record of a batch stands."""

    path: Path
    start: int


def lines_in(out: Path) -> Iterator[tuple[Line, dict]]:
    """All that was written down, of all processes; a line that a crash cut short is left out."""
    for path in sorted((out / "run").glob("batches*.jsonl")):
        with open(path, "rb") as file:
            start = 0
            for line in file:
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if isinstance(record, dict):
                        yield Line(path, start), record
                start += len(line)


def gather(
    out: Path, batches: Sequence[Batch], question: Question, again: bool = False
) -> dict[int, Line]:
    """The batches that are done, in one file in their order; what belongs to no batch is dropped.

    Done means that the files are what they were, and all that was made of them is there. With `again`
    batches with a bad file are not: perhaps it can be read by now.
    """
    found: dict[int, Line] = {}
    for line, record in lines_in(out):
        number = record.get("batch")
        if isinstance(number, int) and 0 <= number < len(batches):
            batch, whole_batch = batches[number], record.get("pictures", ())
            if record.get("key") == batch.key and len(whole_batch) == len(batch.pictures):
                pairs = zip(batch.pictures, whole_batch, strict=True)
                if all(is_whole(out, question, *pair, again) for pair in pairs):
                    found[number] = line
    with atomic_write(out / "run" / DONE) as part, open(part, "wb") as file:
        done = {}
        for number in sorted(found):
            done[number] = Line(out / "run" / DONE, file.tell())
            file.write(read_line(found[number]))
    for path in (out / "run").glob("batches-*.jsonl"):
        path.unlink()
    return done


def is_whole(out: Path, question: Question, number: int, record: dict, again: bool) -> bool:
    """Is everything there that this record speaks of?"""
    if "error" in record:
        return not again
    try:
        size = os.stat(out / thumbnail_file(number, record["size"])).st_size
        has_maps = not question.arrays or os.stat(out / map_file(number)).st_size > 0
    except (OSError, KeyError, TypeError):
        return False
    return size == record["bytes"] and has_maps


def read_line(line: Line) -> bytes:
    with open(line.path, "rb") as file:
        file.seek(line.start)
        return file.readline()


def records_of(out: Path) -> Iterator[tuple[int, dict]]:
    """Every picture's number and record, in order, one batch at a time."""
    number = 0
    for _, batch in lines_in(out):
        for record in batch["pictures"]:
            yield number, record
            number += 1


def finish(
    out: Path, pictures: Pictures, batches: Sequence[Batch], question: Question, colours: str
) -> Summary:
    """When all processes are done: the report and the table."""
    if len(gather(out, batches, question)) < len(batches):
        raise ValueError(
            f"Files of the run in {printable(str(out))} were removed while it ran; go on with --resume."
        )
    return write_report(out, pictures, question, colours, lambda: records_of(out))
