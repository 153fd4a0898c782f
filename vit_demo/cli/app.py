"""vit-demo app, or python app.py: open the page."""

import argparse

from vit_demo.cli import flags
from vit_demo.ui.launch import FIRST_PORT, address, build, launch, require_mcp


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", metavar="M", help="the model at start: embedded, a timm name, or a file")
    add("--checkpoint", metavar="FILE", help="a file of weights to offer on the page")
    flags.add_file_of_weights(parser)
    add("--host", metavar="H", help="address to listen on (127.0.0.1, or GRADIO_SERVER_NAME)")
    add("--port", metavar="P", type=int, help=f"({FIRST_PORT}, or GRADIO_SERVER_PORT)")
    add("--share", action="store_true", help="also make a public link, through Gradio's servers")
    add("--mcp", action="store_true", help="also serve the API as tools for assistants (MCP)")
    add("--device", default="auto", help=flags.DEVICE_HELP)


def run(args: argparse.Namespace) -> None:
    if args.mcp:
        require_mcp()
    where = address(args.host, args.port)  # first: nobody waits for a model only to hear about it
    demo = build(args.model, args.checkpoint, args.arch, args.labels, args.device)
    launch(demo, *where, args.share, args.mcp)
