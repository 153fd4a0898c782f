"""What of the page is there before Gradio is: the first map, in a sketch of what is around it.

Gradio's page is a script that fetches many others, and whatever `launch` puts into the head comes with them.
Who comes without a link sees the first picture, and that is known: so its data and the page's script are
named in the HTML itself, and `static/page/early.js` shows the explorer until Gradio brings the page. Gradio's
script is fetched meanwhile, and starts after the first map: on few cores they would hold each other up.
"""

import json

from vit_demo.ui.explorer import setup
from vit_demo.ui.html import (
    CHOOSER_TEMPLATE,
    LANGUAGE_TEMPLATE,
    header_html,
    link_html,
    step,
    tabs_html,
    title_html,
)
from vit_demo.ui.layout import TABS
from vit_demo.ui.modules import preload_link
from vit_demo.ui.static import address, read_static
from vit_demo.ui.texts import LANGUAGES, words
from vit_demo.ui.theme import FONTS

PATIENCE = 1500  # milliseconds that Gradio's script waits for the first map
LIKE_GRADIO = f"""
:host {{ display: block; flex: 1 0 auto; background: var(--ground); color: var(--ink); font: 14px/1.5 {FONTS}; }}
* {{ box-sizing: border-box; }}
button {{ font-family: inherit; }}
main, #left, #right, #panel-explore {{ display: flex; flex-direction: column; }}
main {{ gap: 16px; }}
#header {{ display: flex; }}
#left > [inert] {{ display: contents; }}
#late {{ margin: 0; }}
"""


def early_parts(first: dict) -> tuple[str, str]:
    """For the head and for the body of the HTML; `first` is the explorer's value."""
    given = {
        "first": first,
        "css": LIKE_GRADIO + read_static("page/page.css") + read_static("page/models.css"),
        "sketches": {language: sketch(language) for language in LANGUAGES},
    }
    given = json.dumps(given, ensure_ascii=False).replace("<", "\\u003c")
    head = f"""{preload_link()}
<link rel="preload" as="fetch" crossorigin href="{first["url"]}">
<style>#early ~ gradio-app {{ position: absolute; inset: 0 0 auto; clip-path: inset(100%); }}</style>"""
    body = f"""<script type="module" async>
const later = setTimeout(startGradio, {PATIENCE});
import(new URL("{address()}", document.baseURI))
    .then(({{ modules }}) => modules["page/early.js"].mount({given}, {setup()}))
    .finally(() => requestAnimationFrame(startGradio));
function startGradio() {{
    clearTimeout(later);
    const waiting = document.querySelector("link[data-gradio]");
    if (!waiting) return;
    const script = document.createElement("script");
    Object.assign(script, {{ type: "module", crossOrigin: "", src: waiting.href }});
    waiting.replaceWith(script);
}}
</script>"""
    return head, body


def sketch(language: str) -> str:
    """The explorer comes into the slot. Nothing else can be used yet; if it stays so, `late` says it."""
    header = {"title": header_html(language), "model": CHOOSER_TEMPLATE}
    header |= {"language": LANGUAGE_TEMPLATE, "link": link_html(language), "knows": ""}
    tabs = tabs_html(TABS, language).replace('aria-selected="false"', 'aria-selected="true"', 1)
    picture = part("picture", '<div class="well"></div>')
    late = f'<p id="late" role="status" hidden>{words(language)["script_failed"]}</p>'
    return f"""<div class="gradio-container"><div class="app"><main>
<div id="header" inert>{"".join(part(*one) for one in header.items())}</div>
<div id="stage">
<div id="left"><div inert>{step(1, words(language)["step_picture"])}{picture}</div>{late}</div>
<div id="right"><div id="tabs" inert>{tabs}</div>
<div id="panel-explore">{title_html("explore", language)}<slot></slot></div></div>
</div></main></div></div>"""


def part(id: str, html: str) -> str:
    """As Gradio puts HTML on the page."""
    return f'<div id="{id}"><div class="html-container"><div>{html}</div></div></div>'
