"""How far heads look, as a mean over pictures, against loops in plain Python."""

import math

import pytest
from support.models import noise, small_classifier

from vit_demo.anatomy import anatomy, head_facts

pytestmark = pytest.mark.usefixtures("one_thread")


def test_mean_over_pictures_and_the_line_of_uniform_attention():
    classifier = small_classifier(registers=1, image_size=(16, 24))
    explanations = [classifier.explain(noise(seed)) for seed in range(3)]
    found = anatomy(explanations)
    assert found.pictures == 3
    rows, cols = explanations[0].grid
    places = [(8 * r, 8 * c) for r in range(rows) for c in range(cols)]
    pairs = [math.dist(a, b) for a in places for b in places]
    assert found.uniform_distance == pytest.approx(sum(pairs) / len(pairs), rel=1e-5)
    assert found.uniform_entropy == pytest.approx(math.log2(rows * cols))
    for layer, head in ((0, 0), (2, 1)):
        far, bits = [], []
        for e in explanations:
            for i, a in enumerate(places):
                row = e.attention(layer, head, divmod(i, cols)).flatten().tolist()
                shares = [x / sum(row) for x in row]
                far.append(sum(s * math.dist(a, b) for s, b in zip(shares, places, strict=True)))
                bits.append(-sum(s * math.log2(s) for s in shares))
        assert float(found.distance[layer, head]) == pytest.approx(sum(far) / len(far), rel=1e-4)
        assert float(found.entropy[layer, head]) == pytest.approx(sum(bits) / len(bits), rel=1e-4)


def test_one_picture_is_its_own_mean():
    e = small_classifier().explain(noise())
    distance, entropy = head_facts(e)
    assert anatomy([e]).distance.equal(distance)
    assert anatomy([e]).entropy.equal(entropy)


def test_pictures_on_different_grids_have_no_mean():
    classifier = small_classifier()
    wide = classifier.explain(noise(), fit="native")
    for wrong in ([], [classifier.explain(noise()), wide]):
        with pytest.raises(ValueError, match="same grid"):
            anatomy(wrong)
