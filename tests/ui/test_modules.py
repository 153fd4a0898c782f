"""The page's script on the server."""

import gzip
import re

import httpx
from starlette.applications import Starlette
from starlette.testclient import TestClient

from vit_demo.ui.modules import preload_link, script_route
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
