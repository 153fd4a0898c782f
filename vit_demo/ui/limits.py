"""How much a visitor may send, decided while it arrives and before anything else looks at it.

Gradio limits the size of each file; but one request may carry a thousand files, and a text in it can be
of any length.
"""

import asyncio
import json
from collections.abc import Callable

from gradio.route_utils import API_PREFIX

FILE_BYTES = 20 * 2**20  # one picture
TEXT_BYTES = 2**19  # everything that is not an upload: settings, names, a drawing
MOST_VALUES = 20_000  # in such a text: each takes some fifty bytes of memory
MOST_FILES = 16  # in one upload
FILE_MARK = b"content-disposition"  # every part of an upload has one, in whichever case
ENCODED_BYTES = FILE_BYTES * 4 // 3 + 2**16  # one picture as base64, and words around it
MOST_SESSIONS = 200  # that Gradio remembers; each takes 0.14 MB, and every call may be a new one
MOST_THREADS = 64  # for what visitors ask; the page itself is served by others
SLOWEST = 30.0  # seconds between two pieces of a request: its connection is an open file
MOST_WAITING = 100  # requests in the queue; the next one is refused with a message


class TooMuch(Exception):
    pass


class TooLate(Exception):
    pass


def is_upload(path: str) -> bool:
    """Are these files? The only requests that may be long, and that name no session."""
    return path.rstrip("/").endswith(API_PREFIX + "/upload") and path.count(API_PREFIX) == 1


class BodyLimit:
    """ASGI middleware: a request whose body is too long is refused with 413, however it is sent; one that
    does not come, with 408."""

    def __init__(self, app: Callable, tools: str | None = None):
        """`tools`: the path under which assistants send pictures inside of other data, as base64."""
        self.app, self.tools = app, tools

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if is_upload(scope["path"]):  # Gradio would keep its number for ever
            scope = scope | {"query_string": b""}
        most = self.most(scope["path"])
        claimed = dict(scope["headers"]).get(b"content-length", b"0")
        came, files, tail, begun, complete = 0, 0, b"", False, False

        async def counted() -> dict:
            nonlocal came, files, tail, complete
            try:  # once all is there, Gradio listens for the end of the connection
                message = await asyncio.wait_for(receive(), None if complete else SLOWEST)
            except TimeoutError:
                raise TooLate from None
            complete = not message.get("more_body")
            text = tail + message.get("body", b"").lower()
            came += len(text) - len(tail)
            files += text.count(FILE_MARK)
            tail = text[-len(FILE_MARK) + 1 :]  # a mark may lie across the border
            if came > most or files > MOST_FILES:
                raise TooMuch
            return message

        async def noted(message: dict) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            if not claimed.isdigit() or int(claimed) > most:
                raise TooMuch
            await self.app(scope, counted, noted)
        except TooMuch:
            if begun:
                raise
            size = f"{most // 2**20} MB" if most >= 2**20 else f"{most // 2**10} kB"
            text = f"That is too large; send at most {size} and {MOST_FILES} files at once."
            await answer(send, 413, text)
        except TooLate:
            if begun:
                raise
            await answer(send, 408, "The request did not arrive in full; send it again.")

    def most(self, path: str) -> int:
        if is_upload(path):
            return FILE_BYTES + 2**16
        return ENCODED_BYTES if self.tools and f"/{self.tools}" in f"{path}/" else TEXT_BYTES


async def answer(send: Callable, status: int, text: str) -> None:
    """Refuse a request in one sentence."""
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": text}).encode()})
