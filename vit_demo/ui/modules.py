"""The page's script on the server: where it is served, and how the browser hears of it early."""

from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vit_demo.ui.static import address, page_script

FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}
NO_PICTURE = {b"lang", b"__theme"}  # of an address: these name none, and no tab


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


class EarlyMap:
    """ASGI middleware: who comes without a link gets the page with `early.early_parts` in it."""

    def __init__(self, app: Callable):
        self.app = app

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        async def with_map(message: dict) -> None:
            if message["type"] == "http.response.start":  # its length is another one
                headers = [pair for pair in message["headers"] if pair[0] != b"content-length"]
                message = message | {"headers": headers}
            elif b"<gradio-app" in message.get("body", b""):
                head, body = scope["app"].get_blocks().early
                page = message["body"].replace(b"<head>", b"<head>" + head, 1)
                page = page.replace(b"<gradio-app", body + b"<gradio-app", 1)
                message = message | {"body": page}
            await send(message)

        early = is_page(scope) and parse_qs(scope["query_string"]).keys() <= NO_PICTURE
        await self.app(scope, receive, with_map if early else send)


def is_page(scope: dict) -> bool:
    return scope["type"] == "http" and scope["path"] in ("", "/")
