"""How much a visitor may send, decided while it arrives and before anything else looks at it.

Gradio limits the size of each file; but one request may carry a thousand files, and a text in it can be
of any length.
"""

import json
from collections.abc import Callable

FILE_BYTES = 20 * 2**20  # one picture
TEXT_BYTES = 2 * 2**20  # everything that is not an upload: settings, names, a drawing
ENCODED_BYTES = FILE_BYTES * 4 // 3 + 2**16  # one picture as base64, and words around it
MOST_SESSIONS = 200  # that Gradio remembers; each takes 0.14 MB, and every call may be a new one
MOST_THREADS = 64  # for what visitors ask; the page itself is served by others
MOST_WAITING = 100  # requests in the queue; the next one is refused with a message


class TooMuch(Exception):
    pass


class BodyLimit:
    """ASGI middleware: a request whose body is too long is refused with 413, however it is sent."""

    def __init__(self, app: Callable, tools: str | None = None):
        """`tools`: the path under which assistants send pictures inside of other data, as base64."""
        self.app, self.tools = app, tools

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self.most(scope["path"])
        claimed = dict(scope["headers"]).get(b"content-length", b"0")
        came, begun = 0, False

        async def counted() -> dict:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > most:
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
            text = f"That is too large; send at most {most // 2**20} MB at once."
            await answer(send, 413, text)

    def most(self, path: str) -> int:
        if path.rstrip("/").endswith("/upload"):
            return FILE_BYTES + 2**16
        return ENCODED_BYTES if self.tools and f"/{self.tools}" in f"{path}/" else TEXT_BYTES


async def answer(send: Callable, status: int, text: str) -> None:
    """Refuse a request in one sentence."""
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": text}).encode()})
