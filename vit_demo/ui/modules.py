"""The page's script on the server: where it is served, and how the browser hears of it early."""

from collections.abc import Callable

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vit_demo.ui.static import address, page_script

FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}


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
        page = scope["type"] == "http" and scope["path"] in ("", "/")
        await (self.compressed if page else self.app)(scope, receive, send)
