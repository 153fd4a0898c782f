"""Several maps put to the test together: the quick check and the thorough one, against the functions they
are made of."""

import json

import pytest
from support.models import small_classifier

from vit_demo import faithful
from vit_demo.trust.progress import Cancelled

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def explanation(picture):
    return small_classifier().explain(picture)


def test_a_quick_check(explanation):
    found = faithful.check(explanation, ["rollout", "random"], "label 1", remove="blur")
    expected = faithful.trust_all(explanation, found.maps, 1, remove="blur")
    assert list(found.ways) == ["blur"] and found.also == {} and found.label == 1
    about = json.loads(json.dumps(found.describe()))
    for name, trust in expected.items():
        assert about["methods"][name]["score"] == pytest.approx(trust.score)
        assert about["methods"][name]["sentence"] == trust.sentence
    assert about["label"]["label"] == "label 1" and "also" not in about
    assert found.best == faithful.best_method(expected)


@pytest.mark.parametrize(("remove", "other"), [("tokens", "black"), ("blur", "tokens")])
def test_a_thorough_check_removes_in_both_ways(explanation, remove, other):
    steps = []
    found = faithful.check(
        explanation,
        ["raw", "contribution"],
        remove=remove,
        thorough=True,
        progress=lambda done, total: steps.append((done, total)),
    )
    assert set(found.ways) == {remove, other} and list(found.also) == [other]
    for trusts in found.ways.values():
        for trust in trusts.values():
            assert len(trust.random) == 30 and len(trust.kept) >= 16  # 16 patches: each is a step
    assert found.best == faithful.best_method(*found.ways.values())
    assert found.describe()["also"]["remove"] == other
    assert steps == sorted(steps) and steps[-1][0] == steps[-1][1]


def test_maps_that_are_no_methods_have_no_best(explanation):
    heat = explanation.rollout()
    assert faithful.check(explanation, {"shown": heat}).best is None
    assert faithful.check(explanation, ["random"]).best is None
    with_names = faithful.check(explanation, {"rollout": heat, "random": heat})
    assert with_names.best.method in ("rollout", None)


def test_what_does_not_fit(explanation):
    with pytest.raises(ValueError, match="There is no method 'nonsense'"):
        faithful.check(explanation, ["nonsense"])
    with pytest.raises(ValueError, match="There is no map to test"):
        faithful.check(explanation, [])
    with pytest.raises(ValueError, match="remove is 'magic'"):
        faithful.check(explanation, ["raw"], remove="magic")
    with pytest.raises(Cancelled):
        faithful.check(explanation, ["raw"], thorough=True, progress=lambda *_: False)
