"""What a run leaves for people: report.html, a contact sheet that opens from disk, and answers.csv.

The page is one file with everything in it but the small pictures, which lie beside it in report/. It
carries each map in one byte a patch and colours it in the browser. What comes from file names, labels
and errors reaches the page as JSON and is only ever shown as text.
"""

import base64
import csv
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from urllib.parse import quote

import matplotlib
import numpy as np

from vit_demo.files import atomic_write
from vit_demo.folders.batch import TOP, Question
from vit_demo.folders.pictures import Pictures
from vit_demo.map_settings import DIFFERENCES, SIGNED_MAPS
from vit_demo.render import CRISP_SIDE
from vit_demo.validate import cell, printable

HERE = Path(__file__).parent
COLUMNS = (
    "picture",
    "truth",
    "right",
    "truth_probability",
    *(f"{what}_{place}" for place in range(1, TOP + 1) for what in ("label", "probability")),
    "prefix",
    "maps",
    "error",
)
Records = Callable[[], Iterator[tuple[int, dict]]]


@dataclass
class Summary:
    """What came out: of how many pictures, and, where their folders name labels, how many are right."""

    out: Path
    pictures: int = 0  # that could be read
    judged: int = 0  # of which the true label is known
    right: int = 0
    right_in_5: int = 0
    errors: dict[str, str] = field(default_factory=dict)  # files that are no use, and why

    def count(self, record: dict) -> None:
        if "error" in record:
            self.errors[record["picture"]] = record["error"]
            return
        self.pictures += 1
        if "truth" in record:
            answers = [index for index, _ in record["top"]]
            self.judged += 1
            self.right += answers[0] == record["truth"]
            self.right_in_5 += record["truth"] in answers

    @property
    def lines(self) -> list[str]:
        """In words."""
        lines = [f"{self.pictures:,} pictures explained"]
        if self.judged:
            shares = [f"{n:,} ({n / self.judged:.1%})" for n in (self.right, self.right_in_5)]
            lines.append(
                f"of {self.judged:,} with a true label: {shares[0]} right, "
                f"{shares[1]} right among the first {TOP}"
            )
        return lines


def thumbnail_file(number: int, size: Sequence[int]) -> str:
    """Below the folder of results; a thousand files a folder."""
    return f"report/{numbered(number)}.{'png' if max(size) <= CRISP_SIDE else 'jpg'}"


def map_file(number: int) -> str:
    return f"maps/{numbered(number)}.npz"


def numbered(number: int) -> str:
    return f"{number // 1000:03}/{number:06}"


def write_report(
    out: Path, pictures: Pictures, question: Question, colours: str, records: Records
) -> Summary:
    """Both files, picture by picture: however many there are, few are in memory."""
    summary, labels = Summary(out), question.classifier.labels
    base = relative_address(pictures.folder, out)
    for _, record in records():
        summary.count(record)
    with ExitStack() as stack:
        table_file, page_file = (
            stack.enter_context(
                open(
                    stack.enter_context(atomic_write(out / name)), "w", encoding="utf-8", newline=""
                )
            )
            for name in ("answers.csv", "report.html")
        )
        table = csv.writer(table_file, lineterminator="\n")
        table.writerow(COLUMNS)
        head, tail = page_parts(summary, question, colours, base)
        page_file.write(head)
        comma = ""
        for number, record in records():
            table.writerow(table_row(number, record, labels, question.arrays))
            if "error" not in record:
                row = page_row(number, record, pictures.names[number])
                page_file.write(comma + json_text(row))
                comma = ",\n"
        page_file.write(tail)
    return summary


# answers.csv


def table_row(number: int, record: dict, labels: Sequence[str], maps: bool) -> list:
    if "error" in record:
        return [cell(record["picture"], "./"), *[""] * (len(COLUMNS) - 2), record["error"]]
    truth, top = record.get("truth"), record["top"]
    judged = ["", "", ""]
    if truth is not None:
        right = int(top[0][0] == truth)
        judged = [cell(printable(labels[truth])), right, f"{record['truth_probability']:.6f}"]
    answers = [text for index, p in top for text in (cell(printable(labels[index])), f"{p:.6f}")]
    answers += [""] * (2 * TOP - len(answers))
    where = map_file(number) if maps else ""
    return [cell(record["picture"], "./"), *judged, *answers, record["prefix"], where, ""]


# report.html


def page_parts(summary: Summary, question: Question, colours: str, base: str) -> tuple[str, str]:
    """The page up to its rows, and from there on."""
    classifier, signed = question.classifier, question.map in SIGNED_MAPS
    table = matplotlib.colormaps[DIFFERENCES if signed else colours](np.arange(256), bytes=True)
    setup = {
        "model": printable(classifier.name),
        "map": question.map.replace("_", " "),
        "label": None if question.label is None else printable(classifier.labels[question.label]),
        "signed": signed,
        "shares": question.map in ("rollout", "gradient_rollout"),  # of 1; else units of the logit
        "fit": question.fit,
        "labels": [printable(label) for label in classifier.labels],
        "colours": base64.b64encode(np.ascontiguousarray(table[:, :3]).tobytes()).decode(),
        "crisp": CRISP_SIDE,
        "base": base,
        "pictures": summary.pictures,
        "judged": summary.judged,
        "right": summary.right,
        "rightInFive": summary.right_in_5,
        "errors": [[name, error] for name, error in summary.errors.items()],
    }
    script, style = (read(f"report.{kind}") for kind in ("js", "css"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    texts = {
        "TITLE": escape(f"{summary.pictures:,} pictures, explained by {setup['model']}"),
        "SCRIPT_HASH": digest,
        "STYLE": style,
        "SCRIPT": script,
        "SETUP": json_text(setup),
    }
    head, tail = read("report.html").split("{{ROWS}}")
    return filled(head, texts), filled(tail, texts)


def filled(template: str, texts: dict[str, str]) -> str:
    """{{NAME}} becomes its text, in one go: what a text holds is left alone."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: texts[found[1]], template)


def page_row(number: int, record: dict, name: str) -> list:
    """One picture in the order in which report.js takes it apart. The address of the file is only
    there where it does not follow from the name that is shown."""
    address = quote(os.fsencode(name))
    return [
        number,
        record["picture"],
        address if name != record["picture"] else 0,
        record.get("truth", -1),
        record.get("truth_probability", 0),
        [number for pair in record["top"] for number in pair],
        record["heat"],
        *record["grid"],
        *record["scale"],
        record["prefix"],
        *record["size"],
    ]


def relative_address(folder: str, out: Path) -> str:
    """The way from the report to the pictures, as an address; none between the drives of Windows."""
    try:
        way = os.path.relpath(os.path.realpath(folder), os.path.realpath(out))
    except ValueError:
        return ""
    return quote(os.fsencode(way.replace(os.sep, "/"))) + "/"


def read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def json_text(value) -> str:
    """JSON that may stand in a <script>: nothing in it ends the element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
