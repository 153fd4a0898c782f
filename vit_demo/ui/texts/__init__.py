"""Every word on the page, one language a file."""

import re
from collections.abc import Sequence
from functools import cache

from vit_demo.map_settings import FITS
from vit_demo.ui.texts import en, ko

LANGUAGES = {"en": en, "ko": ko}
LOST = {
    name: {"lost": language.PAGE["lost"]} for name, language in LANGUAGES.items()
}  # in every tab
EXPLORER_TEXTS = {
    name: language.EXPLORER
    | LOST[name]
    | {f"fit_{fit}": language.PAGE[f"fit_{fit}"] for fit in FITS}
    for name, language in LANGUAGES.items()
}
INSIDE_TEXTS = {name: language.INSIDE | LOST[name] for name, language in LANGUAGES.items()}
GLOSSARY = {
    name: {
        "question": language.QUESTION,
        "words": {word: text.split(": ", 1) for word, text in language.GLOSSARY.items()},
    }
    for name, language in LANGUAGES.items()
}
LABELS = {name: language.LABELS for name, language in LANGUAGES.items() if language.LABELS}
TRUST_TEXTS = {name: language.TRUST | LOST[name] for name, language in LANGUAGES.items()}
LEARN_TEXTS = {name: language.LEARN | LOST[name] for name, language in LANGUAGES.items()}

LIST = re.compile(r"^([\w.]+(?:, [\w.]+)+) or ([\w.]+)$")  # "JPEG, PNG or BMP", inside a sentence

CITATION = """@inproceedings{dosovitskiy2021image,
  title     = {An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale},
  author    = {Dosovitskiy, Alexey and Beyer, Lucas and Kolesnikov, Alexander and Weissenborn, Dirk
               and Zhai, Xiaohua and Unterthiner, Thomas and Dehghani, Mostafa and Minderer, Matthias
               and Heigold, Georg and Gelly, Sylvain and Uszkoreit, Jakob and Houlsby, Neil},
  booktitle = {International Conference on Learning Representations},
  year      = {2021}
}"""


def words(language: str | None) -> dict[str, str]:
    """The page's words; English where the language is none that we speak."""
    return LANGUAGES.get(language, en).PAGE if isinstance(language, str) else en.PAGE


def names_in(label: str, labels: Sequence[str], language: str) -> tuple[str, str]:
    """What a label is called, and what else: the visitor's word first, the model's own beside it."""
    known = LANGUAGES[language].LABELS
    if label in known and all(other in known for other in labels):  # all of them or none
        return known[label], label
    first, _, others = label.partition(",")
    return first, others.strip()


def example_name(example: str, language: str) -> str:
    return LANGUAGES[language].EXAMPLES[example]


def language_of(wanted: object) -> str:
    """The page's language for a browser's: "ko-KR" is Korean, all others get English."""
    return "ko" if str(wanted)[:2].lower().startswith("ko") else "en"


def one_sentence(error: Exception | str, language: str | None = "en") -> str:
    """What the library says about an error, on one line, in the visitor's language."""
    said = " ".join(str(error).split())
    for pattern, sentence in sentences(language_of(language)):
        found = pattern.fullmatch(said)
        if found:
            return sentence.format(*(LIST.sub(r"\1, \2", one) for one in found.groups()))
    return said


def toasts(language: str) -> dict[str, str]:
    """What Gradio may say on the page in English, in this language; only whole sentences."""
    return {said: own for said, own in LANGUAGES[language].ERRORS.items() if "{}" not in said}


@cache
def sentences(language: str) -> list[tuple[re.Pattern, str]]:
    """The library's sentences as patterns, each with its translation."""
    known = LANGUAGES.get(language, en).ERRORS
    return [
        (re.compile(re.escape(said).replace(r"\{\}", "(.+?)")), own) for said, own in known.items()
    ]
