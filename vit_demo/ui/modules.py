"""The page's script on the server: where it is served, and how the browser hears of it early."""

import re
from collections.abc import Callable

from starlette.datastructures import QueryParams
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vit_demo.ui.static import address, page_script

FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}
NO_PICTURE = {"lang", "__theme"}  # of an address: these name none, and no tab
GRADIO_SCRIPT = re.compile(rb'<script type="module" crossorigin src="([^"]+)"></script>')


def script_route() -> Route:
    """The script at its address; for `launch(app_kwargs={"routes": [...]})`."""

    def serve(request: Request) -> Response:
        return Response(page_script(), media_type="text/javascript", headers=FOR_GOOD)

    return Route(f"/{address()}", serve)


def preload_link() -> str:
    """For the page's head: the browser fetches the script while Gradio starts."""
    return f'<link rel="modulepreload" href="{address()}">'


class CompressedPage:
    """ASGI middleware: the page itself, 0.4 MB, goes compressed. (Scripts and styles do: Gradio looks at
    the ending of an address, and the page's has none.)"""

    def __init__(self, app: Callable):
        self.app, self.compressed = app, GZipMiddleware(app, compresslevel=5)

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        await (self.compressed if is_page(scope) else self.app)(scope, receive, send)


class EarlyScript:
    """ASGI middleware: the HTML itself names the page's script. (What `launch` is told to put into the head
    comes when Gradio's own scripts are there.) Who comes without a link gets the first map with it: the
    parts that `early.py` made."""

    def __init__(self, app: Callable):
        self.app = app

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        async def with_script(message: dict) -> None:
            if message["type"] == "http.response.start":  # its length will be another one
                headers = [pair for pair in message["headers"] if pair[0] != b"content-length"]
                message = message | {"headers": headers}
            elif b"<gradio-app" in message.get("body", b""):
                page, head, body = message["body"], preload_link(), ""
                if not QueryParams(scope["query_string"]).keys() - NO_PICTURE:
                    head, body = scope["app"].get_blocks().early
                    fetched = rb'<link rel="modulepreload" crossorigin data-gradio href="\1">'
                    page = GRADIO_SCRIPT.sub(fetched, page, count=1)  # the early script starts it
                page = page.replace(b"<head>", b"<head>" + head.encode(), 1)
                page = page.replace(b"<gradio-app", body.encode() + b"<gradio-app", 1)
                message = message | {"body": page}
            await send(message)

        await self.app(scope, receive, with_script if is_page(scope) else send)


def is_page(scope: dict) -> bool:
    return scope["type"] == "http" and scope["path"] in ("", "/")
