"""Nobody locks the others out: how much one visitor may ask for at a time, and whose turn it is.

A visitor is a session (a page that is open), and an address (of IPv6, its network), behind which may be
many. Gradio takes any text for a session's name and keeps it, and answers questions whose answer nobody
will ever fetch.
"""

import asyncio
import ipaddress
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import parse_qs

from gradio.queueing import Event, Queue

from vit_demo.ui.limits import MOST_VALUES, answer, is_upload

SESSION = re.compile(r"[\w-]{1,64}", re.ASCII)
SHORT = re.compile(r"/component_server/?$|/(run|api)/[^/]*/?$")  # questions that have no queue
STREAM = re.compile(r"/queue/data$|/call/.+/(?P<event>[\w-]+)$")  # where answers are fetched
MOST_OF_SESSION = 10  # questions in the queue
MOST_OF_ADDRESS = 50
MOST_UNFETCHED = 200  # messages about answers, which nobody has fetched
MOST_OPEN = 256  # requests of one address whose answers are on their way
MOST_AT_ONCE = 32  # short questions of one address, which have no queue
UNHEARD_SECONDS = 30.0  # so long a question may wait without anybody who waits for the answer
LONGEST_CLOSING = 0.5  # seconds
OUT_OF_STEP = 0.1  # seconds by which one of a browser's two connections may be behind the other

listening: Counter[str] = Counter()  # sessions and events whose answers are being fetched
stopped: dict[str, float] = {}  # sessions that stopped listening just now, and when


class Visitors:
    """ASGI middleware: names of sessions are short, short questions are few, listeners are known."""

    def __init__(self, app: Callable):
        self.app = app
        self.asking: Counter[str] = Counter()  # short questions of each address, right now
        self.open: Counter[str] = Counter()  # all of its requests

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        address = network(scope["client"][0]) if scope["client"] else ""
        if self.open[address] >= MOST_OPEN:
            await answer(send, 429, "Too many questions at once; wait for their answers.")
            return
        with counted(self.open, address):
            await self.pass_on(scope, receive, send)

    async def pass_on(self, scope: dict, receive: Callable, send: Callable) -> None:
        if scope["method"] == "GET" and (stream := STREAM.search(scope["path"])):
            sessions = parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [])
            name = stream["event"] or "".join(sessions)[:64]
            try:
                with counted(listening, name):
                    await self.app(scope, receive, send)
            finally:
                forget_before(time.monotonic() - OUT_OF_STEP)
                stopped[name] = time.monotonic()
        elif scope["method"] == "POST" and not is_upload(scope["path"]):
            await self.ask(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def ask(self, scope: dict, receive: Callable, send: Callable) -> None:
        body, messages = b"", []
        while not messages or messages[-1].get("more_body"):
            messages.append(await receive())
            body += messages[-1].get("body", b"")
        kind = dict(scope["headers"]).get(b"content-type", b"")
        odd = b"form" in kind or not readable(body) or not SESSION.fullmatch(session_in(body))
        if odd:
            await answer(send, 400, "The request does not fit this page; reload it and try again.")
            return
        address = network(scope["client"][0]) if scope["client"] else ""
        if not SHORT.search(scope["path"]):
            address = None
        elif self.asking[address] >= MOST_AT_ONCE:
            await answer(send, 429, "Too many questions at once; wait for their answers.")
            return

        async def again() -> dict:
            return messages.pop(0) if messages else await receive()

        with counted(self.asking, address):
            await self.app(scope, again, send)


@contextmanager
def counted(counter: Counter, name: str | None) -> Iterator[None]:
    """Something of this name goes on; None has no number."""
    counter[name] += name is not None
    try:
        yield
    finally:
        counter[name] -= name is not None
        if not counter[name]:
            del counter[name]


def readable(body: bytes) -> bool:
    """Is it JSON in UTF-8 (others have zero bytes), with no more values than a page has?"""
    return b"\0" not in body and sum(map(body.count, (b",", b"[", b"{"))) <= MOST_VALUES


def session_in(body: bytes) -> str:
    """The session that a request names, or "none"."""
    if b"session" not in body and b"\\u" not in body:
        return "none"
    try:
        found = json.loads(body).get("session_hash")
    except (ValueError, AttributeError, RecursionError):  # no request at all: others say so
        return "none"
    return "none" if found is None else str(found)


def limit_queue(queue: Queue) -> None:
    """Let nobody fill the queue alone, or with questions whose answers nobody waits for, and let all take
    turns. And no table of all events so far is made after each: nobody looks at it, and it takes longer
    and longer."""
    push = queue.push
    queue.ANALYTICS_MAX_EVENTS, queue.ANAYLTICS_CACHE_FREQUENCY = 1, sys.maxsize  # so it is spelt

    async def limited(body, request, username) -> tuple:
        await drop_unheard(queue)
        waiting = [e for line in queue.event_queue_per_concurrency_id.values() for e in line.queue]
        session = sum(event.session_hash == body.session_hash for event in waiting)
        address = sum(address_of(event.request) == address_of(request) for event in waiting)
        if session >= MOST_OF_SESSION or address >= min(MOST_OF_ADDRESS, queue.max_size):
            return False, "Queue is full. Many questions of yours are waiting.", "queue_full"
        unfetched = queue.pending_messages_per_session.get(body.session_hash)
        if unfetched is not None and unfetched.qsize() > MOST_UNFETCHED:
            return False, "Queue is full. Fetch the answers to your questions first.", "queue_full"
        await until_closed(queue, body.session_hash)
        found = await push(body=body, request=request, username=username)
        for line in queue.event_queue_per_concurrency_id.values():
            line.queue[:] = in_turns(line.queue)
        return found

    queue.push = limited


def in_turns(events: Sequence[Event]) -> list[Event]:
    """The next question of every address, then everybody's second one, and so on. Pages behind one address
    share its turns in the same way."""
    by_page = by_turn(events, lambda event: event.session_hash)
    return by_turn(by_page, lambda event: address_of(event.request))


def by_turn(events: Sequence[Event], owner: Callable[[Event], str]) -> list[Event]:
    """Everybody's first, everybody's second, ...; those of one turn stay as they are."""
    before: Counter[str] = Counter()
    turns = []
    for event in events:
        turns.append(before[owner(event)])
        before[owner(event)] += 1
    return [event for _, event in sorted(zip(turns, events, strict=True), key=lambda pair: pair[0])]


async def until_closed(queue: Queue, session: str | None) -> None:
    """Wait while the connection on which a page hears its answers is being closed.

    Gradio closes it when every question of the page is answered. A page that asks again in that moment
    takes it for open, if it hears of the new question before it hears of the end, and waits for ever; and
    what is still in the queue when the browser hangs up is thrown away.
    """
    until = time.monotonic() + LONGEST_CLOSING
    while session and not queue.pending_event_ids_session.get(session):
        now = time.monotonic()
        if now > until or not (listening[session] or now - stopped.get(session, 0.0) < OUT_OF_STEP):
            return
        await asyncio.sleep(0.01)


def forget_before(moment: float) -> None:
    for session in [session for session, when in stopped.items() if when < moment]:
        del stopped[session]


async def drop_unheard(queue: Queue) -> None:
    """Drop questions for whose answers nobody waits, once anybody else has to wait for them."""
    if not len(queue):
        return
    for event in list(queue.event_ids_to_events.values()):
        if listening[event.session_hash] or listening[event._id]:
            continue
        if time.monotonic() - event.enqueue_time > UNHEARD_SECONDS:
            await queue.clean_events(event_id=event._id)
    for session in list(queue.pending_event_ids_session):
        if session not in queue.pending_messages_per_session:
            del queue.pending_event_ids_session[session]


def address_of(request) -> str:
    return network(request.client.host) if request.client else ""


def network(host: str) -> str:
    """Whom an address belongs to: of IPv6, everybody has as many as can be named in the last 64 bits."""
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
