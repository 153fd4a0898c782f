"""Whatever may get into the page, the browser asks this host alone."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from support.page import SECONDS, WIDE


@pytest.fixture
def stranger():
    """Another host, which notes who comes."""
    came = []

    class Note(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET

    server = HTTPServer(("127.0.0.1", 0), Note)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", came
    server.shutdown()
    server.server_close()


TRY_ALL = """async (there) => {
    const found = new Set();
    document.addEventListener("securitypolicyviolation", (e) => found.add(e.effectiveDirective));
    const add = (tag, properties) => document.body.append(
        Object.assign(document.createElement(tag), properties));
    add("img", { src: `${there}/img` });
    add("script", { src: `${there}/script` });
    add("link", { rel: "stylesheet", href: `${there}/style` });
    add("iframe", { src: `${there}/frame` });
    add("object", { data: `${there}/object` });
    add("div", { style: `background: url(${there}/background)` });
    await fetch(`${there}/fetch`, { mode: "no-cors" }).catch(() => {});
    navigator.sendBeacon(`${there}/beacon`);
    const form = document.createElement("form");
    Object.assign(form, { action: `${there}/form`, method: "post", target: "_blank" });
    document.body.append(form);
    form.submit();
    const wanted = ["img-src", "script-src-elem", "style-src-elem", "frame-src", "object-src",
                    "connect-src", "form-action"];
    for (let i = 0; i < 600 && !wanted.every((name) => found.has(name)); i++)
        await new Promise(requestAnimationFrame);
    return wanted.filter((name) => !found.has(name));
}"""


def test_no_way_leads_to_another_host(browser, site, stranger):
    there, came = stranger
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    page.goto(site.url)
    page.wait_for_selector("#explorer [data-ready=true][data-drawn]", state="attached")
    assert page.evaluate(TRY_ALL, there) == []
    context.close()
    assert came == []
