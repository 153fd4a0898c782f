"""The page's script on the server."""

import gzip
import json
import re
from types import SimpleNamespace

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from vit_demo.ui.early import early_parts
from vit_demo.ui.modules import EarlyScript, preload_link, script_route
from vit_demo.ui.static import STATIC, address, modules, mount_script, page_script


def client() -> TestClient:
    return TestClient(Starlette(routes=[script_route()]))


def test_the_script_is_served_and_may_be_kept_for_good():
    answer = client().get("/" + address())
    assert answer.status_code == 200 and answer.text == page_script()
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]


def test_page_and_script_travel_compressed(site):
    """Read as they come, for browsers of today, old ones, and programs that know of no compression."""
    for path in ("", address()):
        sizes = {}
        for encoding in ("br, gzip", "gzip", "identity"):
            with httpx.stream(
                "GET", site.url + path, headers={"Accept-Encoding": encoding}
            ) as answer:
                raw = b"".join(answer.iter_raw())
            assert answer.status_code == 200
            used = answer.headers.get("content-encoding", "identity")
            assert used in encoding
            sizes[encoding] = len(raw)
            if used == "gzip":
                raw = gzip.decompress(raw)
            if used != "br":
                assert b"ViT Demo" in raw or b"export { modules }" in raw
        assert sizes["gzip"] < sizes["identity"] / 3 and sizes["br, gzip"] < sizes["identity"] / 3


def test_every_module_is_in_the_script():
    assert sorted(modules()) == sorted(
        path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js")
    )
    assert sorted(re.findall(r'^modules\["([^"]+)"\] = ', page_script(), re.MULTILINE)) == sorted(
        modules()
    )


def test_nothing_else_is_served():
    for name in ("__init__.py", "types.d.ts", "gradio.js", "000000000000.js", "../texts/en.py"):
        assert client().get(f"/static/{name}").status_code == 404


def test_addresses_are_relative_to_the_page():
    """It may be under a path of a proxy's."""
    assert re.findall(r'href="([^"]+)"', preload_link()) == [address()]
    assert not address().startswith("/")
    assert f'"{address()}", document.baseURI' in mount_script("page/link.js")


# The first map


def page_with_parts(html: str) -> TestClient:
    """A page like Gradio's, at / and elsewhere."""
    routes = [Route(path, lambda request: HTMLResponse(html)) for path in ("/", "/elsewhere")]
    app = Starlette(routes=routes, middleware=[Middleware(EarlyScript)])
    app.get_blocks = lambda: SimpleNamespace(early=("[head]", "[body]"))
    return TestClient(app)


@pytest.mark.parametrize("query", ["", "?lang=ko", "?__theme=dark&lang=en"])
def test_the_page_of_somebody_without_a_link_has_the_first_map(query):
    answer = page_with_parts("<head></head><gradio-app></gradio-app>").get("/" + query)
    assert answer.text == "<head>[head]</head>[body]<gradio-app></gradio-app>"


@pytest.mark.parametrize(
    "query",
    ["?example=camel", "?lang=ko&layer=2", "?tab=trust", "?layer=%D9%A1", "?example=", "?%ff"],
)
def test_the_page_of_a_link_has_only_the_script(query):
    answer = page_with_parts("<head></head><gradio-app></gradio-app>").get("/" + query)
    assert answer.text == f"<head>{preload_link()}</head><gradio-app></gradio-app>"


def test_gradios_script_waits_for_the_first_map_where_there_is_one():
    script = '<script type="module" crossorigin src="./assets/index-1.js"></script>'
    page = page_with_parts(f"<head>{script}</head><gradio-app></gradio-app>")
    waiting = '<link rel="modulepreload" crossorigin data-gradio href="./assets/index-1.js">'
    assert page.get("/").text == f"<head>[head]{waiting}</head>[body]<gradio-app></gradio-app>"
    assert script in page.get("/?example=camel").text


def test_other_pages_stay_as_they_are():
    """So does one that a later Gradio may have."""
    html = "<head></head><gradio-app></gradio-app>"
    assert page_with_parts(html).get("/elsewhere").text == html
    assert page_with_parts("<head></head>").get("/").text == "<head></head>"


def test_the_parts_are_whole():
    first = {"id": "x", "url": "gradio_api/file=/a%22b/explorer.bin"}
    head, body = early_parts(first)
    assert f'href="{first["url"]}"' in head and preload_link() in head
    assert body.count("<script") == body.count("</script") == 1
    given, end = json.JSONDecoder().raw_decode(body, body.index(".mount(") + len(".mount("))
    assert given["first"] == first and sorted(given["sketches"]) == ["en", "ko"]
    assert all(sketch.count("<slot>") == 1 for sketch in given["sketches"].values())
    setup, end = json.JSONDecoder().raw_decode(body, end + len(", "))
    assert "glossary" in setup and body[end:].startswith("))\n")
