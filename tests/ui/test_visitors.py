"""One visitor cannot lock the others out."""

import io
import json
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest
from support.patience import wait_until

from vit_demo.ui import questions, server_functions, visitors


@pytest.fixture
def client():
    with httpx.Client(timeout=120, limits=httpx.Limits(max_keepalive_connections=0)) as client:
        yield client


@pytest.fixture
def long_question(site, monkeypatch) -> tuple[int, threading.Event, list]:
    """The number of the event for long questions, what ends one, and a note of each that begins and
    ends."""
    gate, notes = threading.Event(), []

    def slow(server, request):
        notes.append("begins")
        try:
            while not gate.wait(0.05):
                yield {"run": 0, "done": 0, "total": 1}
        finally:
            notes.append("ends")

    monkeypatch.setattr(questions, "work", slow)
    functions = site.demo.config["dependencies"]
    number = next(f["id"] for f in functions if f["targets"][0][1] == "submit" and any(
        site.demo.blocks[target].elem_id == "why" for target, _ in f["targets"]))  # fmt: skip
    yield number, gate, notes
    gate.set()


@pytest.fixture
def server_log():
    """What the server writes into its log, with everything that was thrown."""
    stream, names = io.StringIO(), ("uvicorn.error", "asyncio", "vit_demo")
    handler = logging.StreamHandler(stream)
    for name in names:
        logging.getLogger(name).addHandler(handler)
    yield stream
    for name in names:
        logging.getLogger(name).removeHandler(handler)


def join(
    client, site, number: int, session: object, address: str = "127.0.0.1", **more
) -> httpx.Response:
    body = {"data": [], "fn_index": number, "session_hash": session, "event_data": {}} | more
    proxy = {"X-Forwarded-For": address}  # as a proxy on this machine says it
    return client.post(f"{site.url}gradio_api/queue/join", json=body, headers=proxy)


def test_names_of_sessions_are_short(client, site):
    for session in ("x" * 65, "x" * 400_000, "a b", "", ["x"], {"a": 1}, "é"):
        for path in ("queue/join", "component_server", "run/predict", "cancel"):
            body = {"session_hash": session, "fn_index": 0, "data": [], "event_id": "x"}
            found = client.post(f"{site.url}gradio_api/{path}", json=body)
            assert found.status_code == 400, (session, path)
            assert found.json()["detail"].startswith("The request does not fit this page;")
    hidden = '{"session\\u005fhash": "%s", "data": []}' % ("x" * 100)
    for content, kind in ((hidden, "application/json"), (b"session_hash=x", "multipart/form-data")):
        head = {"content-type": kind}
        found = client.post(f"{site.url}gradio_api/component_server", content=content, headers=head)
        assert found.status_code == 400
    long = json.dumps({"session_hash": "x" * 1_000, "data": []})
    for path in ("call/upload", "call/v2/upload", "run/upload"):  # it only ends as an upload does
        assert client.post(f"{site.url}gradio_api/{path}", content=long).status_code == 400
    for encoding in ("utf-16", "utf-16-le", "utf-32"):  # json reads them, too
        found = client.post(f"{site.url}gradio_api/call/classify", content=long.encode(encoding))
        assert found.status_code == 400, encoding
    assert not any(len(name) > 64 for name in site.demo.app.state_holder.session_data)


def test_a_text_has_only_so_many_values(client, site):
    """Two bytes of "[]," are fifty in memory, for as long as the question waits."""
    for many, status in (("[]," * 20_001, 400), ("0," * 100, 200)):
        body = f'{{"session_hash": "s", "data": [{many}0]}}'
        head = {"content-type": "application/json"}
        found = client.post(f"{site.url}gradio_api/call/classify", content=body, headers=head)
        assert found.status_code == status


def test_nobody_passes_by_the_queue(client, site):
    for path in ("run/trust", "api/trust", "run/classify", "api/classify/"):
        found = client.post(f"{site.url}gradio_api/{path}", json={"data": [], "session_hash": "s"})
        assert found.status_code == 404 and "join the queue" in found.text, path


def test_answers_that_nobody_fetches_are_few(client, site, monkeypatch):
    monkeypatch.setattr(visitors, "MOST_UNFETCHED", 5)
    codes = []
    for _ in range(12):
        body = {"session_hash": "deaf-one", "data": []}
        codes.append(client.post(f"{site.url}gradio_api/call/classify", json=body).status_code)
        wait_until(lambda: not len(site.demo._queue), "an empty queue")
    assert codes[0] == 200 and codes[-1] == 503


def test_no_table_of_all_events_is_made(site):
    """Gradio would make it after each event, and look up to ten thousand back."""
    assert len(site.demo._queue.event_analytics) <= 1


def test_requests_that_gradio_stumbles_over_get_a_sentence(client, site, server_log):
    requests = [
        ("call/nope", {"data": []}),
        ("call/v2/nope", {}),
        ("call/%1b]0;x%07", {"data": []}),
        ("queue/join", {"data": [], "fn_index": 99_999, "session_hash": "s"}),
        (
            "component_server",
            {"component_id": 99_999, "fn_name": "x", "data": 1, "session_hash": "s"},
        ),
    ]
    for path, body in requests:
        found = client.post(f"{site.url}gradio_api/{path}", json=body)
        assert found.status_code >= 400 and "Traceback" not in found.text, path
    said = server_log.getvalue()
    assert said.count("does not fit") == len(requests)
    assert "Traceback" not in said and "\x1b" not in said, said


def test_an_upload_that_is_broken_off_leaves_no_traceback(site, server_log):
    where = urlsplit(site.url)
    for _ in range(3):
        with socket.create_connection((where.hostname, where.port)) as line:
            line.sendall(b"POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
                         b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n")  # fmt: skip
    assert httpx.get(site.url, timeout=60).status_code == 200
    time.sleep(0.5)
    assert "Traceback" not in server_log.getvalue()


@pytest.mark.parametrize("path", ["call/explain/nobody", "queue/data?session_hash=nobody"])
def test_answers_to_questions_that_nobody_asked_leave_no_traceback(client, site, server_log, path):
    """As a page asks for them whose server was started again."""
    with pytest.raises(httpx.RemoteProtocolError, match="without sending complete"):
        client.get(f"{site.url}gradio_api/{path}")
    time.sleep(0.5)
    assert "Traceback" not in server_log.getvalue()


def test_a_session_has_so_many_questions(client, site, long_question):
    number, gate, _ = long_question
    answers = [join(client, site, number, "greedy").status_code for _ in range(14)]
    assert answers[:10] == [200] * 10 and answers[-3:] == [503] * 3
    assert join(client, site, number, "modest").status_code == 200
    gate.set()
    wait_until(lambda: not len(site.demo._queue), "an empty queue")


def test_an_address_does_not_fill_the_queue(client, site, long_question, monkeypatch):
    number, gate, _ = long_question
    monkeypatch.setattr(visitors, "MOST_OF_ADDRESS", 5)
    answers = [join(client, site, number, f"one{i}").status_code for i in range(8)]
    assert answers == [200] * 6 + [503] * 2  # one runs, five wait
    gate.set()
    wait_until(lambda: not len(site.demo._queue), "an empty queue")


def test_an_address_has_so_many_requests_at_a_time(client, site, monkeypatch):
    """Also such as never end: a page's heartbeat is one."""
    monkeypatch.setattr(visitors, "MOST_OPEN", 3)
    one, other = {"X-Forwarded-For": "192.0.2.1"}, {"X-Forwarded-For": "192.0.2.2"}
    beat = f"{site.url}gradio_api/heartbeat/someone"
    with ExitStack() as held:
        for _ in range(3):
            stream = held.enter_context(client.stream("GET", beat, headers=one))
            assert stream.status_code == 200
        found = client.get(site.url, headers=one)
        assert found.status_code == 429 and "wait for their answers" in found.json()["detail"]
        assert client.get(site.url, headers=other).status_code == 200
    wait_until(lambda: client.get(site.url, headers=one).status_code == 200, "an end of them")


@pytest.mark.parametrize("address, owner", [
    ("192.0.2.7", "192.0.2.7"),
    ("::ffff:192.0.2.7", "192.0.2.7"),
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
    ("2001:db8:1:2::9%eth0", "2001:db8:1:2::/64"),
    ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
    ("testclient", "testclient"),
])  # fmt: skip
def test_who_has_many_addresses_is_one_visitor(address, owner):
    assert visitors.network(address) == owner


def test_many_addresses_of_one_network_do_not_fill_the_queue(
    client, site, long_question, monkeypatch
):
    number, gate, _ = long_question
    monkeypatch.setattr(visitors, "MOST_OF_ADDRESS", 5)
    answers = [
        join(client, site, number, f"one{i}", f"2001:db8::{i + 1}").status_code for i in range(8)
    ]
    assert answers == [200] * 6 + [503] * 2  # one runs, five wait
    assert join(client, site, number, "other", "2001:db8:0:1::1").status_code == 200
    gate.set()
    wait_until(lambda: not len(site.demo._queue), "an empty queue")


def test_all_take_turns(client, site, long_question):
    """Who has asked for much waits with the rest of it, behind those who come later."""
    number, gate, notes = long_question
    many, other, third = "10.0.0.1", "10.0.0.2", "10.0.0.3"
    asked = [("runs", other)] + [("one", many)] * 3 + [("two", many)] * 2
    asked += [("later", other)] * 2 + [("last", third)]
    for session, address in asked:
        assert join(client, site, number, session, address).status_code == 200
        wait_until(lambda: notes == ["begins"], "the first one")
    lines = site.demo._queue.event_queue_per_concurrency_id
    waiting = [event.session_hash for event in lines["trust"].queue]
    assert waiting == ["one", "later", "last", "two", "later", "one", "two", "one"]
    gate.set()
    wait_until(lambda: not len(site.demo._queue), "an empty queue")


def test_questions_that_nobody_listens_to_are_dropped(client, site, long_question, monkeypatch):
    """Also the one that runs: the visitor who listens gets his turn."""
    number, gate, notes = long_question
    for i in range(8):
        assert join(client, site, number, f"deaf{i}").status_code == 200
    wait_until(lambda: notes == ["begins"], "the first one")
    monkeypatch.setattr(visitors, "UNHEARD_SECONDS", -1)
    assert join(client, site, number, "listens").status_code == 200
    monkeypatch.setattr(visitors, "UNHEARD_SECONDS", 600)
    address = f"{site.url}gradio_api/queue/data?session_hash=listens"
    with client.stream("GET", address) as stream:
        lines = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        for message in lines:
            if message["msg"] == "process_generating":
                gate.set()
            if message["msg"] == "process_completed":
                assert message["success"]
                break
    assert notes == ["begins", "ends", "begins", "ends"]  # the first deaf one, and this


def test_short_questions_do_not_hold_up_the_page(client, site, monkeypatch):
    """More of them than Starlette has threads, all waiting; and an address asks only so many."""
    monkeypatch.setattr(visitors, "MOST_AT_ONCE", 45)
    began = []
    component = next(b for b in site.demo.blocks.values() if getattr(b, "elem_id", "") == "why")
    body = {"session_hash": "s", "component_id": component._id, "fn_name": "without"}
    body |= {"data": {"id": "x"}}
    monkeypatch.setattr(site.server.store, "get", lambda id: began.append(id))  # "gone", later
    held = threading.Event()
    monkeypatch.setattr(server_functions, "words", lambda language: held.wait(60) and {"gone": ""})

    def ask(_) -> int:
        return httpx.post(
            f"{site.url}gradio_api/component_server", json=body, timeout=120
        ).status_code

    with ThreadPoolExecutor(50) as pool:
        jobs = [pool.submit(ask, i) for i in range(50)]
        wait_until(lambda: sum(job.done() for job in jobs) == 5, "those who are too many")
        assert client.get(site.url, timeout=20).status_code == 200  # and not when `held` ends
        held.set()
        assert sorted(job.result(60) for job in jobs) == [200] * 45 + [429] * 5
    assert len(began) == 45


def test_the_list_of_models_is_prepared_by_one_thread(client, site, monkeypatch):
    begun, go = [], threading.Event()
    monkeypatch.setattr(server_functions, "supported_timm", lambda: begun.append(1) or go.wait(60))
    component = next(b for b in site.demo.blocks.values() if getattr(b, "elem_id", "") == "compare")
    body = {"session_hash": "s", "component_id": component._id, "fn_name": "find_models"}
    for _ in range(20):
        found = client.post(
            f"{site.url}gradio_api/component_server", json=body | {"data": {"text": ""}}
        )
        assert found.status_code == 200 and "error" not in found.json()
    wait_until(lambda: begun, "the thread")
    go.set()
    wait_until(lambda: not server_functions.PREPARING.locked(), "its end")
    assert len(begun) == 1
