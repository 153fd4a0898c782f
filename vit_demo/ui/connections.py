"""Nobody holds the line: connections on which nothing is asked are closed, so that others find one free.

uvicorn waits for ever for the head of a request, and every connection is an open file, of which a process
has only so many. A connection on which an answer is on its way is never closed.
"""

import asyncio
import errno
import logging
import time
from contextlib import suppress

import uvicorn

from vit_demo.ui.visitors import network

try:
    import resource
except ImportError:  # not POSIX
    resource = None

PATIENCE = 10.0  # seconds in which the head of a request has to come
UNREAD = 60.0  # seconds for which the rest of an answer may lie here, and nobody takes any of it
MOST_OF_ADDRESS = 400  # a browser has about six. Of this machine, a proxy: those that ask nothing
MOST_FILES = 2**13  # open at once, if the system allows as many
ROOM = 0.75  # the share of them that is for connections
LOCAL = network("::1")
LOG_EVERY = 60.0  # seconds: whoever floods the server does not flood its log
log = logging.getLogger("vit_demo")


def raise_file_limit() -> int:
    """As many open files as the system allows; how many that are."""
    if resource is None:
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, MOST_FILES)


def limit_connections(server: uvicorn.Server) -> None:
    """From now on, the connections of a server that runs are `patient` ones."""
    room = int(ROOM * raise_file_limit())
    server.config.http_protocol_class = patient(server.config.http_protocol_class, room)
    loop = server.servers[0].get_loop()
    loop.call_soon_threadsafe(loop.set_exception_handler, out_of_files)


def patient(protocol: type[asyncio.Protocol], room: int) -> type[asyncio.Protocol]:
    """uvicorn's protocol, whichever it is: with an end to its patience, and at most `room` of them."""

    class Patient(protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.came = self.changed = time.monotonic()
            self.seen = (None, True, 0)
            self.address = network(self.client[0]) if self.client else ""
            self.loop.call_later(PATIENCE / 2, self.look)
            everybody = [one for one in self.connections if isinstance(one, Patient)]
            mine = [one for one in everybody if one.address == self.address]
            if self.address.startswith("127.") or self.address == LOCAL:
                mine = [one for one in mine if one.idle]
            if len(mine) > MOST_OF_ADDRESS:
                give_way(mine)
            elif len(everybody) > room:
                give_way(everybody)

        @property
        def idle(self) -> bool:
            """Is no answer on its way?"""
            closing = self.transport.is_closing()
            return not closing and (self.cycle is None or self.cycle.response_complete)

        def look(self) -> None:
            """Close the connection if nothing is asked for a while."""
            if self not in self.connections:  # closed, or no longer HTTP
                return
            now = (self.cycle, self.idle, self.transport.get_write_buffer_size())
            if now != self.seen:
                self.seen, self.changed = now, time.monotonic()
            unchanged = time.monotonic() - self.changed
            if self.idle and unchanged >= PATIENCE:
                self.transport.close()  # what is on its way arrives before
            elif self.transport.is_closing() and unchanged >= UNREAD:
                self.transport.abort()
            self.loop.call_later(PATIENCE / 2, self.look)

    return Patient


def give_way(crowd: list) -> None:
    """The oldest on which nothing is asked is closed; if there is no other, the newest."""
    min((one for one in crowd if one.idle), key=lambda one: one.came).transport.close()
    say_now_and_then("Too many connections; those on which nothing is asked are closed.")


def out_of_files(loop: asyncio.AbstractEventLoop, context: dict) -> None:
    """asyncio writes a traceback for each connection that it cannot accept; one line a minute will do."""
    if getattr(context.get("exception"), "errno", None) in (errno.EMFILE, errno.ENFILE):
        say_now_and_then("Too many open files; new connections wait (raise the limit: ulimit -n).")
    else:
        loop.default_exception_handler(context)


said: dict[str, float] = {}


def say_now_and_then(text: str) -> None:
    if time.monotonic() - said.get(text, float("-inf")) > LOG_EVERY:
        said[text] = time.monotonic()
        log.warning("%s", text)
