"""What a visitor may name: files that he has sent, and nothing else.

Gradio fetches addresses on a visitor's behalf: a file in any value of any request may be one, and so may
the path behind /gradio_api/file=. It refuses private networks, but a server that can be made to contact
any host, or to look up its name, can be misused. Pictures come here as files, so nothing is fetched.

A value of the wrong type (a list where a number belongs) gets a sentence instead of an empty error.
"""

import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import gradio as gr
from gradio.utils import get_upload_folder
from starlette.requests import ClientDisconnect

from vit_demo.ui.limits import answer
from vit_demo.validate import printable

ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
BLOCKED = re.compile(  # endpoints of Gradio's that this page has no use for
    r"/(proxy=|process_recording|deep_link|vibe-|undo-vibe|dev/reload|stream/|monitoring"
    r"|upload_progress|custom_component/)"
    r"|/file[=/]" + ADDRESS.pattern,
    re.IGNORECASE,
)
OWN_HOST = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'"
)
POLICY = [
    (b"content-security-policy", OWN_HOST.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
]
NO_FIT = "The request does not fit this page; reload it and try again."
log = logging.getLogger("vit_demo")


class Blocks(gr.Blocks):
    """The page, with a look at what was sent before any of it is used."""

    async def process_api(self, block_fn, *arguments, **options) -> dict:
        function = self.fns[block_fn] if isinstance(block_fn, int) else block_fn
        if not function.fn:  # the browser does it by itself
            refuse(NO_FIT)
        try:
            return await super().process_api(function, *arguments, **options)
        except gr.Error:
            raise
        except Exception as error:  # noqa: BLE001 (values that no page sends, and no function expects)
            note(function.name, error)
            refuse(NO_FIT)

    async def preprocess_data(self, block_fn, inputs: list, *rest, **options):
        for path in paths_in(inputs):
            if ADDRESS.match(path):
                refuse("Give a file, not an address: save the picture first, then choose it.")
            if not was_sent(path):  # Gradio looks only where a mark says that this is a file
                refuse("There is no such picture here; send it, and choose it again in step 1.")
        try:
            return await super().preprocess_data(block_fn, inputs, *rest, **options)
        except gr.Error as error:
            error.print_exception = False
            error.message = short(re.sub(r" \(type: <.*?>\)", "", error.message))
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, it came from outside)
            log.info("a request that does not fit: %s", short(error))
            refuse("The request does not fit this page; check the values, send pictures as files.")


def note(where: str, error: Exception) -> None:
    """One line in the log, and the traceback for those who ask for it."""
    what = short(f"{where}: {type(error).__name__}: {error}")
    log.warning("a request that does not fit: %s", printable(what))
    log.debug("where", exc_info=error)


def refuse(message: str) -> NoReturn:
    raise gr.Error(message, print_exception=False) from None


def was_sent(path: str) -> bool:
    """Is it in the folder for uploads, wherever its dots and links lead?"""
    try:
        return Path(path).resolve().is_relative_to(Path(get_upload_folder()).resolve())
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, links in a ring
        return False


def paths_in(value: Any) -> Iterator[str]:
    """Everything in a request that could be taken for the path of a file."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("path"), str):
                yield value["path"]
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value


def short(text: object) -> str:
    text = " ".join(str(text).split())
    return text if len(text) <= 300 else text[:297] + "..."


class BlockedEndpoints:
    """ASGI middleware: endpoints that visitors have no use for, and addresses, get 403."""

    def __init__(self, app: Callable):
        self.app = app

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http" or not BLOCKED.search(scope["path"]):
            await self.app(scope, receive, send)
            return
        await answer(send, 403, "This is not for visitors; send pictures as files.")


class OneSentence:
    """ASGI middleware: a request that Gradio stumbles over gets a sentence, and the log gets one, too;
    whoever hangs up in the middle gets nothing, and whoever wants several parts of a file gets all of
    it."""

    def __init__(self, app: Callable):
        self.app = app

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        begun = False

        async def noted(message: dict) -> None:
            nonlocal begun
            begun = True
            await send(message)

        if scope["type"] == "http":
            headers = [
                pair for pair in scope["headers"] if pair[0] != b"range" or one_part(pair[1])
            ]
            scope = scope | {"headers": headers}
        try:
            await self.app(scope, receive, noted)
        except ClientDisconnect:
            return
        except Exception as error:
            if scope["type"] != "http":
                raise
            note(scope["path"], error)
            if not begun:  # or the answer breaks off: nobody takes it for whole
                await answer(send, 500, NO_FIT)


def one_part(wanted: bytes) -> bool:
    """Is it one part of a file, from a byte to a later one, or to the end?"""
    found = re.fullmatch(rb"bytes=(\d{1,15})-(\d{1,15})?", wanted)
    return bool(found) and (found[2] is None or int(found[1]) <= int(found[2]))


class OwnHostOnly:
    """ASGI middleware: the browser is told to ask no other host, whatever the page may contain. Gradio
    needs scripts and styles inside of the page, and functions made from text."""

    def __init__(self, app: Callable):
        self.app = app

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        async def with_policy(message: dict) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *POLICY]
            await send(message)

        await self.app(scope, receive, with_policy if scope["type"] == "http" else send)
