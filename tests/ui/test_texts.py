"""Every word of the page exists in every language."""

import ast
import math
import re

import pytest
from PIL import Image
from support.paths import ROOT

from vit_demo.checkpoints import CheckpointError, about_embedded, load_checkpoint
from vit_demo.image import ImageError, open_image
from vit_demo.ui.folder import KEEP_MINUTES
from vit_demo.ui.html import about_html
from vit_demo.ui.models import CURATED, curated_title
from vit_demo.ui.texts import LANGUAGES, en, ko, names_in, one_sentence
from vit_demo.view import KEPT_PIXELS, bounded

HANGUL = re.compile("[가-힣]")
ENGLISH = re.compile(r"\b(?:or|and|of|the|a|is)\b")  # what no name, format or setting is called
PARTS = ["PAGE", "EXPLORER", "GLOSSARY", "INSIDE", "TRUST", "COMPARE", "LEARN", "EXAMPLES"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", PARTS)
def test_every_text_is_translated(language, part):
    english, other = getattr(en, part), getattr(LANGUAGES[language], part)
    assert english.keys() == other.keys()
    fields = re.compile(r"\{\w+\}")
    for key, text in english.items():
        assert sorted(fields.findall(text)) == sorted(fields.findall(other[key])), key


ASKING = re.compile(  # what makes a "?", to the end of the statement, and the lists of words for it
    r"\b(?:question|question_html|help|asked|range|field|panel|figure)\([^;]*"
    r"|(?:WORDS|FITS|words) = [^;]*"
    r"|function askerWords\(\{[^}]*\}\) \{[^}]*\}"
)


def test_every_word_of_the_glossary_is_asked_about():
    """Somewhere on the page a "?" explains it."""
    ui = ROOT / "vit_demo" / "ui"
    sources = [*(ui / "static").rglob("*.js"), ui / "html.py"]
    asking = [text for path in sources for text in ASKING.findall(path.read_text(encoding="utf-8"))]
    asked = set(re.findall(r"""["'](\w+)["']""", " ".join(asking)))
    assert [word for word in en.GLOSSARY if word not in asked] == []


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", [f"after {KEEP_MINUTES:g} minutes", f"at most {KEPT_PIXELS / 1e6:.1f} megapixels"]),
        ("ko", [f"{KEEP_MINUTES:g}분이 지나면", f"최대 {KEPT_PIXELS / 1e6:.1f}메가픽셀"]),
    ],
)
def test_about_says_how_long_and_how_large_pictures_are_kept(language, told):
    about = " ".join(about_html(language, KEEP_MINUTES).split())
    assert all(words in about for words in told)
    assert bounded(Image.new("L", (1400, 1490))).size == (1400, 1490)  # few pixels: as it is
    assert math.prod(bounded(Image.new("L", (3000, 2000))).size) <= KEPT_PIXELS


# Korean: the labels, and what the library says


def test_every_label_of_the_photo_model_has_a_korean_word():
    labels = about_embedded("vit-photos")["labels"]
    assert sorted(ko.LABELS) == sorted(labels)
    assert len(set(ko.LABELS.values())) == len(labels)
    assert all(
        HANGUL.search(word) and not re.search("[A-Za-z]", word) for word in ko.LABELS.values()
    )


def test_korean_word_first_and_the_models_own_beside_it():
    labels = about_embedded("vit-photos")["labels"]
    assert names_in("lion", labels, "ko") == ("사자", "lion")
    assert names_in("lion", labels, "en") == ("lion", "")
    imagenet = ["lion", "tench, Tinca tinca"]  # other labels: all of a model's or none
    assert names_in("lion", imagenet, "ko") == ("lion", "")
    assert names_in("tench, Tinca tinca", imagenet, "ko") == ("tench", "Tinca tinca")


SOURCES = ("image", "checkpoints/hub", "checkpoints/timm_models", "checkpoints/checkpoint",
           "checkpoints/weights", "ui/runner", "ui/events", "ui/store", "ui/questions",
           "ui/guard", "ui/visitors", "ui/limits")  # fmt: skip
NOT_FOR_VISITORS = ("The numbers cannot be meant.", "The download stands still.")


def template(node: ast.expr) -> str | None:
    """The text of a string in the source, with {} where something is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    return None


def library_sentences() -> list[str]:
    """Every sentence in the source that is no docstring: what a visitor may be told."""
    found = {}
    for source in SOURCES:
        tree = ast.parse((ROOT / "vit_demo" / f"{source}.py").read_text(encoding="utf-8"))
        inner = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                inner.add(node.value)  # a docstring
            if isinstance(node, ast.JoinedStr):
                inner.update(node.values)  # a part of a longer one
            text = None if node in inner else template(node) if isinstance(node, ast.expr) else None
            if text and re.search(r"^(\{\}|[A-Z]).*\w.* .*[.]$", text) and len(text) > 15:
                found[text] = source
    return [text for text in found if text not in NOT_FOR_VISITORS]


def test_sentences_of_the_library_are_found():
    """Or the next test would find nothing missing for the wrong reason."""
    assert "{} is a folder; choose one picture in it." in library_sentences()
    assert any(text.startswith("{} has {} megapixels") for text in library_sentences())
    assert len(library_sentences()) > 35


@pytest.mark.parametrize("text", library_sentences())
def test_the_library_speaks_korean(text):
    given = [f"name{k}" for k in range(text.count("{}"))]
    said = text.format(*given)
    korean = one_sentence(ValueError(said), "ko")
    assert HANGUL.search(korean), said
    assert one_sentence(ValueError(said), "en") == said
    assert not re.search(r"[{}]", korean)
    assert not ENGLISH.search(korean)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"", "빈 파일"),
        (b"hello", "읽을 수 있는 사진이 아닙니다"),
        (b"\xff\xd8\xff\xe0 and no more", "손상되었거나"),
    ],
)
def test_a_bad_picture_in_korean(source, words):
    with pytest.raises(ImageError) as error:
        open_image(source)
    korean = one_sentence(error.value, "ko")
    assert words in korean
    assert not ENGLISH.search(korean)  # also in what is filled in


def test_a_model_that_is_no_plain_vit_in_korean():
    with pytest.raises(CheckpointError) as error:
        load_checkpoint("swin_tiny_patch4_window7_224.ms_in1k")
    said = one_sentence(error.value, "ko")
    assert not ENGLISH.search(said)
    assert said.startswith("swin_tiny_patch4_window7_224.ms_in1k 모델은") and "Swin" in said


AS_IN_CODE = ("points", "exponential", "by_unfold")  # %p, exp, unfold + Linear


@pytest.mark.parametrize("part", [*PARTS, "ERRORS"])
def test_korean_is_korean(part):
    """What differs from English is in Korean, with particles that fit whatever is filled in."""
    english, korean = getattr(en, part), getattr(ko, part)
    for key, text in korean.items():
        own = re.sub(r"\{\w*\}", "", text)
        if text != english.get(key) and re.search("[A-Za-z]", own) and key not in AS_IN_CODE:
            assert HANGUL.search(own), key
        assert not re.search(r"\((?:이|가|은|는|을|를|으)\)", text), key
        assert not re.search("logit|softmax|residual", own), key  # 로짓, 소프트맥스, 잔차


GONE = (
    "사영",
    "보폭",
    "장부",
    "눈금",
    "훈련",
    "첫째",
    "둘째",
    "숫자판",
    "의 몫",
    "살펴보는 중",
    "'{label}'",
)


@pytest.mark.parametrize("part", PARTS)
def test_one_thing_has_one_korean_word(part):
    """The word that Korean students of machine learning use, and no other beside it."""
    for key, text in getattr(ko, part).items():
        assert not [word for word in GONE if word in text], key


def test_an_example_is_called_what_its_label_is_called():
    shared = {"koala", "goldfish", "espresso", "lemon", "king penguin", "German shepherd"}
    names = {en.EXAMPLES[name].casefold(): word for name, word in ko.EXAMPLES.items()}
    assert {label: names[label.casefold()] for label in shared} == {
        label: ko.LABELS[label] for label in shared
    }


def test_titles_of_models_in_korean():
    for family, what, _, _ in CURATED:
        assert curated_title("en", family, what).endswith(what)
        korean = curated_title("ko", family, what)
        assert HANGUL.search(korean) and not re.search("patch|registers", korean), korean
