"""The example photographs: what the embedded model and DeiT-tiny call them."""

import shlex
from html import unescape
from pathlib import Path

import pytest
from support.paths import ROOT

import vit_demo
from vit_demo.embedded import DEFAULT, example_path
from vit_demo.labels import names_of
from vit_demo.ui.html import EXAMPLES, image_of, take_html

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


@pytest.mark.parametrize("name", SUBJECTS)
def test_an_example_is_named_rightly_with_a_wide_margin(classifier, name):
    """One subject is at least three times as probable as the next label; of two, both come first, and
    each is twice as probable as the next."""
    answer = classifier.classify(example_path(name), top=3)
    subjects = SUBJECTS[name]
    for subject in subjects:
        assert any(subject in names_of(p.label) for p in answer[: len(subjects)]), answer
    after = answer[len(subjects)].probability
    assert answer[len(subjects) - 1].probability > (3 if len(subjects) == 1 else 2) * after, answer


def test_the_file_of_an_example_is_there_wherever_the_page_was_started(monkeypatch, tmp_path):
    """What the page's Python code and command name."""
    monkeypatch.chdir(ROOT)
    assert image_of({"example": "koala"}) == "assets/examples/koala.jpg"
    monkeypatch.chdir(tmp_path)
    named = image_of({"example": "koala"})
    assert Path(named).is_absolute() and Path(named).samefile(example_path("koala"))
    command = take_html({"example": "koala"}, "en").split("<code>")[1].split("</code>")[0]
    assert shlex.split(unescape(command))[2] == named
