"""The trust meter on models whose best and worst orders are known, and on small and real ViTs."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from support.models import WITH_HEAD, small_classifier

from vit_demo import faithful
from vit_demo.trust.curves import BUDGET, Trust, kept_counts, measure, trust, trust_all
from vit_demo.trust.progress import Cancelled
from vit_demo.trust.randomisation import spearman
from vit_demo.trust.removal import predictor

# A synthetic additive model: the probability is the sum of what each patch left is worth


def additive(worth: torch.Tensor):
    return lambda keep: worth[keep].sum(dim=-1)


def judge(worth: torch.Tensor, heat: torch.Tensor, steps: int = 8, **options) -> Trust:
    n = len(worth)
    counts = kept_counts(n, steps, 0)
    deletion, insertion, chance = measure(additive(worth), heat[None], counts, **options)
    kept = torch.tensor(counts) / n
    return Trust("tabby, tabby cat", kept, deletion[0], insertion[0], chance, 0.0)


def test_the_oracle_is_the_best_of_all_orders_and_its_reverse_the_worst():
    worth = torch.tensor([0.4, 0.05, 0.3, 0.02, 0.23])
    scores = {
        order: judge(worth, -torch.tensor(order).float(), steps=5).score
        for order in itertools.permutations(range(5))
    }
    best, worst = judge(worth, worth, steps=5), judge(worth, -worth, steps=5)
    assert best.score == pytest.approx(max(scores.values()))
    assert worst.score == pytest.approx(min(scores.values()))
    assert worst.score == pytest.approx(-best.score)


def best_possible(worth: torch.Tensor, steps: int = 8) -> float:
    """The closed formula: k patches left are worth at most the k best, and at least the k worst."""
    n, ranked = len(worth), sorted(worth.double().tolist(), reverse=True)
    counts = kept_counts(n, steps, 0)
    gap = [sum(ranked[:k]) - sum(ranked[n - k :]) for k in counts]
    return -np.trapezoid(gap, np.divide(counts, n)) / 2


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31 - 1), st.sampled_from([16, 49, 196]), st.integers(1, 6))
def test_on_larger_models_the_oracle_reaches_the_best_possible_score(seed, n, power):
    generator = torch.Generator().manual_seed(seed)
    worth = torch.rand(n, generator=generator) ** power
    worth = worth / worth.sum()
    best = best_possible(worth)
    oracle, reverse = judge(worth, worth), judge(worth, -worth)
    assert oracle.score == pytest.approx(best, abs=1e-6)
    assert reverse.score == pytest.approx(-best, abs=1e-6)
    heat = torch.rand(n, generator=generator)
    between = judge(worth, heat)
    half_true = judge(worth, worth + 0.3 * worth.max() * heat)
    for other in (between, half_true):
        assert -best <= other.score + 1e-6 and other.score <= best + 1e-6
    for curve in (between.deletion, between.insertion, *between.random):
        assert (curve >= oracle.deletion - 1e-6).all()
        assert (curve <= oracle.insertion + 1e-6).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_the_oracle_is_better_than_chance_and_much_better_once_chance_is_known_well(seed):
    """Ten orders say only roughly how wide chance is, so the band has to be wide; 200 say it well."""
    worth = torch.rand(49, generator=torch.Generator().manual_seed(seed)) ** 4
    worth = worth / worth.sum()
    oracle, reverse = judge(worth, worth), judge(worth, -worth)
    assert "better" in oracle.verdict and reverse.verdict == "worse"
    assert judge(worth, worth, orders=200).verdict == "much better"


@pytest.mark.parametrize(("n", "power"), [(16, 1), (49, 4), (64, 3), (196, 2)])
def test_a_random_map_is_inside_the_band_nine_times_of_ten(n, power):
    generator = torch.Generator().manual_seed(0)
    inside = 0
    for seed in range(200):
        worth = torch.rand(n, generator=generator) ** power
        result = judge(worth / worth.sum(), torch.rand(n, generator=generator), seed=seed)
        inside += abs(result.score) <= result.band
    assert 180 <= inside < 200  # not so wide that it would hold anything


def test_the_sentence_says_how_the_map_did():
    worth = torch.rand(64, generator=torch.Generator().manual_seed(0)) ** 3
    worth = worth / worth.sum()
    sentence = judge(worth, worth).sentence
    assert sentence == "Removing what the map marks lowers 'tabby' much faster than chance."
    assert "do not trust" in judge(worth, torch.ones(64)).sentence  # a flat map says nothing
    assert "wrong way" in judge(worth, -worth).sentence
    assert judge(worth, worth).score > judge(worth, worth).band > 0


def test_ends_are_looked_at_once_and_everything_in_batches():
    sizes = []

    def predict(keep):
        sizes.append(tuple(keep.shape))
        return torch.zeros(len(keep))

    progress = []
    heats = torch.rand(2, 10)
    counts = kept_counts(10, 5, 0)
    assert counts == [10, 8, 6, 4, 2, 0]
    curves = measure(predict, heats, counts, batch=8, progress=lambda *s: progress.append(s))
    assert [tuple(c.shape) for c in curves] == [(2, 6), (2, 6), (10, 6)]
    assert sizes == [(1, 10), *[(8, k) if i == 0 else (6, k) for k in (8, 6, 4, 2) for i in (0, 1)],
                     (1, 0)]  # fmt: skip
    assert progress[-1] == (58, 58) and len(progress) == len(sizes)
    with pytest.raises(Cancelled):
        measure(predict, heats, counts, progress=lambda done, total: done < 20)
    with pytest.raises(KeyboardInterrupt):

        def stop(done, total):
            raise KeyboardInterrupt

        measure(predict, heats, counts, progress=stop)


# On models


@pytest.mark.parametrize("remove", faithful.REMOVALS)
@pytest.mark.parametrize("shape", WITH_HEAD.values(), ids=WITH_HEAD.keys())
def test_every_readout_and_every_way_of_removing(shape, remove, picture):
    explanation = small_classifier(**shape).explain(picture)
    maps = {"relevance": explanation.relevance(2), "rollout": explanation.rollout()}
    results = trust_all(explanation, maps, "label 2", remove=remove)
    expected = explanation.logits.softmax(0)[2].item()
    for name, result in results.items():
        for curve in (result.deletion, result.insertion, *result.random):
            assert len(curve) == len(result.kept) and torch.isfinite(curve).all()
            assert curve[0] == pytest.approx(expected, abs=1e-6)
        assert result.label == "label 2" and result.sentence and -1 <= result.score <= 1
        alone = trust(explanation, maps[name], 2, remove=remove)
        assert alone.score == pytest.approx(result.score, abs=1e-6)
        assert alone.band == pytest.approx(result.band, abs=1e-6)
        assert alone.forwards <= BUDGET


def test_removed_patches_are_what_they_are_called(picture):
    """Black: painted before normalisation. Tokens: the model asked with what is left."""
    explanation = small_classifier().explain(picture)
    keep = torch.tensor([[0, 5, 15], [1, 2, 3]])
    for row, black in zip(keep, predictor(explanation, 1, "black")(keep), strict=True):
        array = np.asarray(explanation.view.picture).copy()
        for patch in set(range(16)) - set(row.tolist()):
            r, c = divmod(patch, 4)
            array[8 * r : 8 * r + 8, 8 * c : 8 * c + 8] = 0
        painted = explanation.classifier.explain(Image.fromarray(array))
        assert black == pytest.approx(painted.logits.softmax(0)[1].item(), abs=1e-6)
    dropped = predictor(explanation, 1, "tokens")(keep)
    expected = explanation.classifier.model(
        explanation.pixels.expand(2, -1, -1, -1), kept_patches=keep
    )
    torch.testing.assert_close(dropped, expected.softmax(-1)[:, 1])


def test_the_default_stays_within_forty_forward_passes(deit_tiny, imagenet_pictures):
    explanation = deit_tiny.explain(imagenet_pictures[9])  # a zebra: one thing, clearly seen
    tokens, rows = [0], 197
    full = deit_tiny.model.blocks[0].register_forward_pre_hook(
        lambda module, args: tokens.append(args[0].shape[0] * args[0].shape[1])
    )
    result = trust(explanation, explanation.relevance())
    full.remove()
    assert sum(tokens) / rows - 1 == pytest.approx(result.forwards)  # 1: relevance itself
    assert 30 < result.forwards <= 40
    assert len(result.random) == 10 and len(result.kept) >= 8
    assert "better" in result.verdict


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"orders": 9}, "10 or more"),
        ({"remove": "acid"}, "tokens, black, blur"),
        ({"label": "label 9"}, "closest"),
    ],
)
def test_wrong_settings_say_what_is_possible(picture, options, words):
    explanation = small_classifier().explain(picture)
    with pytest.raises(ValueError, match=words):
        trust(explanation, explanation.rollout(), **options)


def test_a_map_of_another_grid_and_a_headless_model_are_refused(picture):
    with pytest.raises(ValueError, match=r"grid is \(4, 4\)"):
        trust(small_classifier().explain(picture), torch.rand(3, 3))
    explanation = small_classifier(num_classes=0).explain(picture)
    for ask in (lambda e: trust(e, e.rollout()), faithful.random_weights, faithful.method_maps):
        with pytest.raises(ValueError, match="maps only"):
            ask(explanation)


# A closer look, and which map was best


def test_a_thorough_check_has_more_steps_and_orders_and_both_ways(picture):
    explanation = small_classifier(image_size=48).explain(picture)  # 36 patches
    maps = {"contribution": explanation.contribution(2), "rollout": explanation.rollout()}
    seen = []
    ways = faithful.trust_thoroughly(
        explanation, maps, 2, progress=lambda done, total: seen.append(done / total)
    )
    assert list(ways) == ["tokens", "black"] and seen == sorted(seen) and seen[-1] == 1
    for way, trusts in ways.items():
        alone = trust_all(explanation, maps, 2, remove=way, steps=20, orders=30)
        for name, result in trusts.items():
            assert len(result.kept) == 21 and len(result.random) == 30
            torch.testing.assert_close(result.deletion, alone[name].deletion)
            torch.testing.assert_close(result.random, alone[name].random)
    with pytest.raises(Cancelled):
        faithful.trust_thoroughly(explanation, maps, progress=lambda *_: False)
    with pytest.raises(ValueError, match="paint is 'tokens'; use one of black, blur"):
        faithful.trust_thoroughly(explanation, maps, paint="tokens")


def trust_with(score: float) -> Trust:
    """Curves whose score is this, in a band of random orders that is about 0.1 wide."""
    kept, flat = torch.tensor([1.0, 0.5, 0.0]), torch.ones(3)
    random = 0.5 + 0.04 * torch.linspace(-1, 1, 10)[:, None] * flat
    return Trust("label 2", kept, (0.5 - score) * flat, (0.5 + score) * flat, random, 1.0)


def test_the_best_method_of_a_picture():
    trusts = {"relevance": trust_with(0.2), "contribution": trust_with(0.3)}
    trusts |= {"random": trust_with(0.4)}
    best = faithful.best_method(trusts)
    assert best.method == "contribution"
    assert best.sentence.startswith(
        "On this picture contribution did best (+0.300), before relevance (+0.200)."
    )
    assert "None wins everywhere" in best.sentence
    painted = {"relevance": trust_with(0.45), "contribution": trust_with(0.3)}
    assert faithful.best_method(trusts, painted).method == "relevance"  # the mean of both ways
    alone = faithful.best_method({"grad_cam": trust_with(0.3)})
    assert alone.sentence.startswith("On this picture grad cam did best (+0.300). None")
    chance = faithful.best_method({"relevance": trust_with(0.01), "rollout": trust_with(-0.3)})
    assert chance.method is None and "no method did better than chance" in chance.sentence
    with pytest.raises(ValueError, match="no map to choose from"):
        faithful.best_method({"random": trust_with(0.4)})


# Random weights


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=12), st.integers(0, 1000))
@settings(deadline=None, max_examples=25)
def test_spearman_is_the_correlation_of_mean_ranks(values, seed):
    a = torch.tensor(values).float()
    b = torch.rand(len(values), generator=torch.Generator().manual_seed(seed)).round(decimals=1)

    def by_hand(x):
        return np.array([(x < v).sum() + ((x == v).sum() + 1) / 2 for v in x])

    ra, rb = by_hand(a.numpy()), by_hand(b.numpy())
    if ra.std() and rb.std():
        assert spearman(a, b) == pytest.approx(np.corrcoef(ra, rb)[0, 1], abs=1e-9)
    assert spearman(b, b) == pytest.approx(1) and spearman(a, a * 7 - 2) == pytest.approx(1)


def test_flat_maps_are_like_flat_maps_only():
    flat, other = torch.ones(2, 2), torch.rand(2, 2)
    assert spearman(flat, flat) == 1 and spearman(flat, other) == 0


def test_weights_become_random_from_the_top_in_a_copy(picture):
    explanation = small_classifier().explain(picture)
    model = explanation.classifier.model
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    seen, changed = [], []

    def look(e, index):
        state = e.classifier.model.state_dict()
        changed.append({k.split(".")[1] for k in weights if not torch.equal(state[k], weights[k])})
        return e.relevance(index)

    result = faithful.random_weights(explanation, look, 1, progress=lambda *s: seen.append(s))
    assert changed == [set(), {"2"}, {"1", "2"}, {"0", "1", "2"}]
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert result.heats.shape == (4, 4, 4) and result.correlations[0] == 1
    torch.testing.assert_close(result.heats[0], explanation.relevance(1))
    for name, value in model.state_dict().items():
        assert torch.equal(value, weights[name])
    again = faithful.random_weights(explanation, look, 1)
    torch.testing.assert_close(again.heats, result.heats)
    with pytest.raises(Cancelled):
        faithful.random_weights(explanation, progress=lambda *_: False)
    with pytest.raises(ValueError, match="relevance, grad_cam"):
        faithful.random_weights(explanation, "magic")


def test_a_map_that_does_not_change_fails_the_check(deit_tiny, imagenet_pictures):
    explanation = deit_tiny.explain(imagenet_pictures[9])
    edges = faithful.random_weights(explanation, "random")
    assert not edges.passed and "fails" in edges.sentence
    real = faithful.random_weights(explanation, "relevance")
    assert real.passed and real.correlations[-1] < 0.5 < real.correlations[0]
