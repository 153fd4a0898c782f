"""The JavaScript modules on the server."""

import re

from starlette.applications import Starlette
from starlette.testclient import TestClient

from vit_demo.ui.modules import module_route, preload_links
from vit_demo.ui.static import STATIC, address, modules, mount_script, version


def test_every_module_is_served_and_may_be_kept_for_good():
    client = TestClient(Starlette(routes=[module_route()]))
    assert sorted(modules()) == sorted(
        path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js")
    )
    for name in modules():
        answer = client.get("/" + address(name))
        assert answer.status_code == 200 and answer.content == (STATIC / name).read_bytes()
        assert answer.headers["content-type"].startswith("text/javascript")
        assert "immutable" in answer.headers["cache-control"]


def test_nothing_else_is_served():
    client = TestClient(Starlette(routes=[module_route()]))
    for name in ("__init__.py", "types.d.ts", "page/page.css", "../texts/en.py", "%2e%2e/page.py"):
        assert client.get(f"/static/{version()}/{name}").status_code == 404
    assert client.get("/static/000000000000/gradio.js").status_code == 404


def test_addresses_are_relative_to_the_page():
    """It may be under a path of a proxy's."""
    links = re.findall(r'href="([^"]+)"', preload_links())
    assert len(links) == len(modules()) and all(link.startswith("static/") for link in links)
    assert f'"{address("page/link.js")}", document.baseURI' in mount_script("page/link.js")
