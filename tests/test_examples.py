"""The example pictures: what the embedded model and DeiT-tiny call them, and whose they are."""

import re
import shlex
from fnmatch import fnmatch
from html import unescape
from pathlib import Path

import pytest
from support.paths import ROOT

import vit_demo
from vit_demo.embedded import DEFAULT, example_path
from vit_demo.labels import names_of
from vit_demo.ui.html import EXAMPLES, image_of, take_html
from vit_demo.ui.texts import LANGUAGES

SUBJECTS = {
    "koala": ["koala"],
    "camel": ["Arabian camel"],
    "goldfish": ["goldfish"],
    "espresso": ["espresso"],
    "lemon": ["lemon"],
    "penguin": ["king penguin"],
    "shepherd": ["German shepherd"],
    "camel-and-shepherd": ["Arabian camel", "German shepherd"],
}


@pytest.fixture(params=["embedded", "deit_tiny"])
def classifier(request):
    if request.param == "embedded":
        return vit_demo.load(DEFAULT, device="cpu")
    return request.getfixturevalue("deit_tiny")


def test_every_example_is_named_here():
    assert set(SUBJECTS) == set(EXAMPLES["photo"])
    assert len(SUBJECTS) == 8


def rows() -> dict[str, str]:
    """The table in assets/README.md: the licence of each file."""
    readme = (ROOT / "assets" / "README.md").read_text(encoding="utf-8")
    table = readme.split("## Example pictures")[1]
    found = re.findall(r"^\| `([\w*.-]+)` \|.*\| (.+?) \|$", table, re.MULTILINE)
    return {file: re.sub(r"\[(.+?)\]\(.+?\)|, as .*", r"\1", licence) for file, licence in found}


def test_every_example_file_has_a_row():
    files = {path.name for path in (ROOT / "assets" / "examples").iterdir()}
    photographs = {file for file in files if not fnmatch(file, "digit-*.png")}
    assert photographs | {"digit-*.png"} == set(rows())
    assert photographs == {f"{name}.jpg" for name in SUBJECTS}


@pytest.mark.parametrize("language", LANGUAGES)
def test_about_names_every_licence_of_the_examples(language):
    licences = set(rows().values())
    assert {"CC0", "CC BY-SA 3.0", "GPL-2 or later"} <= licences
    about = " ".join(LANGUAGES[language].PAGE["about"].split())
    listed = about.split("Apache-2.0. ", 1)[1]  # after the code's own
    assert [licence for licence in licences if licence not in listed] == []


@pytest.mark.parametrize("name", SUBJECTS)
def test_an_example_is_named_rightly_with_a_wide_margin(classifier, name):
    """One subject is at least five times as probable as the next label; of two, both come first, and
    each is twice as probable as the next."""
    answer = classifier.classify(example_path(name), top=3)
    subjects = SUBJECTS[name]
    for subject in subjects:
        assert any(subject in names_of(p.label) for p in answer[: len(subjects)]), answer
    after = answer[len(subjects)].probability
    assert answer[len(subjects) - 1].probability > (5 if len(subjects) == 1 else 2) * after, answer


def test_the_file_of_an_example_is_there_wherever_the_page_was_started(monkeypatch, tmp_path):
    """What the page's Python code and command name."""
    monkeypatch.chdir(ROOT)
    assert image_of({"example": "koala"}) == "assets/examples/koala.jpg"
    monkeypatch.chdir(tmp_path)
    named = image_of({"example": "koala"})
    assert Path(named).is_absolute() and Path(named).samefile(example_path("koala"))
    command = take_html({"example": "koala"}, "en").split("<code>")[1].split("</code>")[0]
    assert shlex.split(unescape(command))[2] == named
