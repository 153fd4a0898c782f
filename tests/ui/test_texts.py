"""Every word of the page exists in every language."""

import re

import pytest

from vit_demo.ui.texts import LANGUAGES, en


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", ["PAGE", "EXPLORER", "INSIDE", "TRUST", "EXAMPLES"])
def test_every_text_is_translated(language, part):
    english, other = getattr(en, part), getattr(LANGUAGES[language], part)
    assert english.keys() == other.keys()
    fields = re.compile(r"\{\w+\}")
    for key, text in english.items():
        assert sorted(fields.findall(text)) == sorted(fields.findall(other[key])), key
