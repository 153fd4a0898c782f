"""The JavaScript modules on the server: where they are served, and how the browser hears of them early."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vit_demo.ui.static import address, modules, version

FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}


def module_route() -> Route:
    """Every module at its address; for `launch(app_kwargs={"routes": [...]})`."""

    def serve(request: Request) -> Response:
        text = modules().get(request.path_params["name"])
        if text is None:
            return PlainTextResponse("There is no such module; reload the page.", 404)
        return Response(text, media_type="text/javascript", headers=FOR_GOOD)

    return Route(f"/static/{version()}/{{name:path}}", serve)


def preload_links() -> str:
    """For the page's head: the browser fetches the modules while Gradio starts."""
    return "".join(f'<link rel="modulepreload" href="{address(name)}">' for name in modules())
