"""The settings in a link: anybody may write one."""

import json
import random

import pytest

from vit_demo.map_settings import NAMES, settings_from, settings_in_link

ODD = [
    "01",
    "007",
    "00.5",
    "-01",
    "\u0661",
    "\u0663.\u0661",
    "1e5",
    "1e999",
    "NaN",
    "Infinity",
    "0x10",
]
ODD += [
    "1_0",
    "+1",
    ".5",
    "5.",
    "--1",
    "9" * 5000,
    "",
    " ",
    "\0",
    "null",
    "[]",
    "{}",
    "<b>",
    "1,2,3",
]
ODD += ["1,", ",1", "\u0661,\u0662", "True", "\ud800", "\u202e", "'", '"', "a" * 10_000]


@pytest.mark.parametrize("value", ODD, ids=ascii)
def test_what_is_not_understood_is_left_out(value):
    """As it is in every parameter; no JSON that Python reads and a browser does not."""
    assert settings_in_link(dict.fromkeys(NAMES, value)) == {}


def test_any_parameters_give_settings_as_json_has_them():
    chance, letters = random.Random(0), "0123456789.,-+eE_ truefalsnmx\u0661\u0969\uff11\0<>[]"
    for _ in range(5000):
        parameters = {
            name: "".join(chance.choices(letters, k=chance.randrange(8)))
            for name in chance.sample(NAMES, 4)
        }
        found = settings_in_link(parameters)
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert set(found) <= set(parameters)
        try:
            settings_from(found)
        except ValueError as error:  # numbers and names that no map has: a sentence
            assert str(error).endswith(".")


@pytest.mark.parametrize("value", [None, 5, ["1"], {"a": 1}, b"1"])
def test_only_text_is_looked_at(value):
    assert settings_in_link(dict.fromkeys(NAMES, value)) == {}


def test_what_a_link_says_is_understood():
    link = {"map": "attention", "layer": "3", "head": "0", "query": "4,11", "residual": "0.25"}
    link |= {"smooth": "true", "label": "-1", "unknown": "1"}
    expected = {"map": "attention", "layer": 3, "head": 0, "query": [4, 11], "residual": 0.25}
    assert settings_in_link(link) == expected | {"smooth": True, "label": -1}
