"""How the page looks: Gradio's own parts in our colours, and what `launch` is told."""

from pathlib import Path

import gradio as gr
from starlette.middleware import Middleware

from vit_demo.embedded import ASSETS
from vit_demo.ui.guard import BlockedEndpoints, OneSentence, OwnHostOnly
from vit_demo.ui.layout import TABS
from vit_demo.ui.limits import FILE_BYTES, MOST_SESSIONS, MOST_THREADS, BodyLimit
from vit_demo.ui.mcp import PATH as MCP_PATH
from vit_demo.ui.modules import CompressedPage, EarlyScript, script_route
from vit_demo.ui.static import STATIC
from vit_demo.ui.visitors import Visitors

FONTS = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans KR', sans-serif"


def launch_options(mcp: bool = False) -> dict:
    """What `demo.launch` needs besides host and port. `mcp`: also serve tools for assistants."""
    limit = Middleware(BodyLimit, tools=MCP_PATH if mcp else None)
    return {
        "theme": theme(),
        "css_paths": style_sheets(),
        "allowed_paths": [str(ASSETS / "examples")],  # wherever the app was started
        "footer_links": ["api"],
        "run_history": False,
        "max_file_size": FILE_BYTES,
        "head": tabs_head(),
        "app_kwargs": {
            "routes": [script_route()],
            "middleware": [
                Middleware(CompressedPage),
                Middleware(EarlyScript),
                Middleware(OwnHostOnly),
                Middleware(OneSentence),
                Middleware(BlockedEndpoints),
                limit,
                Middleware(Visitors),
            ],
        },
        "max_threads": MOST_THREADS,
        "state_session_capacity": MOST_SESSIONS,
        "show_error": False,
        "quiet": True,
        "mcp_server": mcp,
    }


def style_sheets() -> list[Path]:
    """The page's own, and that of each tab. (The explorer brings its own into any page.)"""
    page = [STATIC / "page" / name for name in ("page.css", "models.css")]
    sheets = page + [STATIC / name / f"{name}.css" for name in TABS]
    return [sheet for sheet in sheets if sheet.exists()]


def tabs_head() -> str:
    """The panels of all tabs are hidden but one's. A style, because it has to be there first."""
    hidden = "".join(f"html:not([data-tab={name}]) #panel-{name}{{display:none}}" for name in TABS)
    return f"<style>{hidden}</style>"


def theme() -> gr.themes.Base:
    """Gradio's own parts in the colours of page.css; every pair has contrast enough to read."""
    fonts = [font.strip("' ") for font in FONTS.split(",")]
    look = gr.themes.Base(
        primary_hue="blue",
        neutral_hue="slate",
        font=fonts,
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "monospace"],
    )
    colours = {
        "body_background_fill": "var(--paper)",
        "body_text_color": "var(--ink)",
        "body_text_color_subdued": "var(--muted)",
        "background_fill_primary": "var(--paper)",
        "background_fill_secondary": "var(--soft)",
        "border_color_primary": "var(--line)",
        "block_background_fill": "transparent",
        "block_border_color": "var(--line)",
        "block_label_text_color": "var(--muted)",
        "block_title_text_color": "var(--muted)",
        "input_background_fill": "var(--paper)",
        "input_border_color": "var(--line)",
        "input_border_color_focus": "var(--accent)",
        "input_placeholder_color": "var(--muted)",
        "link_text_color": "var(--accent)",
        "color_accent": "var(--accent)",
        "button_secondary_background_fill": "var(--paper)",
        "button_secondary_text_color": "var(--ink)",
        "checkbox_label_background_fill": "transparent",
        "checkbox_label_background_fill_selected": "transparent",
        "checkbox_label_text_color": "var(--muted)",
        "checkbox_label_text_color_selected": "var(--ink)",
    }
    dark = {f"{name}_dark": value for name, value in colours.items() if name != "color_accent"}
    return look.set(**colours, **dark, input_border_width="1px", input_border_width_dark="1px")
