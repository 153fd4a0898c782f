"""Several processes behind nginx, as docs/hosting.md recommends: a visitor stays with one of them."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.shared import missing

import vit_demo
from benchmarks.visitors import NGINX, Proxy, Refused, Server, Visitor, noise

VISITORS, EACH = 32, 3

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def two_servers():
    if not NGINX:
        missing("nginx is not installed: apt-get install nginx-light")
    with Server(OMP_NUM_THREADS="1") as first, Server(OMP_NUM_THREADS="1") as second:
        yield first, second


def test_32_visitors_each_get_their_own_answers_and_a_death_costs_a_reload(two_servers):
    model = vit_demo.load("vit-photos")
    files = {(v, k): noise(100 * v + k) for v in range(VISITORS) for k in range(EACH)}
    expected = {key: model.explain(file).top(1)[0] for key, file in files.items()}

    def look(visitor: Visitor, number: int, k: int) -> None:
        answer = visitor.call("classify", files[number, k], model.name, "crop", 10)
        top = answer[0]["labels"][0]
        assert top["label"] == expected[number, k].label
        assert top["probability"] == pytest.approx(expected[number, k].probability, abs=1e-3)

    with Proxy(two_servers) as proxy, ThreadPoolExecutor(VISITORS) as pool:
        visitors = [Visitor(proxy.address) for _ in range(VISITORS)]
        before = range(EACH - 1)
        list(pool.map(lambda v: [look(visitors[v], v, k) for k in before], range(VISITORS)))
        assert len({visitor.cookie for visitor in visitors}) == VISITORS

        uploads = [visitor.upload("a.jpg", files[v, 0]) for v, visitor in enumerate(visitors)]
        killed = two_servers[1].process
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()

        def again(v: int) -> bool:
            """Does what this visitor uploaded before still work? A reload is another session."""
            file = {"path": uploads[v], "meta": {"_type": "gradio.FileData"}}
            try:
                visitors[v].answer(
                    "classify", visitors[v].begin("classify", file, model.name, "crop", 10)
                )
                return True
            except Refused:
                return False

        kept = list(pool.map(again, range(VISITORS)))
        assert 4 < sum(kept) < VISITORS - 4  # only its own visitors lost theirs
        list(pool.map(lambda v: look(visitors[v], v, EACH - 1), range(VISITORS)))
