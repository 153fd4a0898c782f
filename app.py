"""Start the demo: python app.py, then open the address it prints."""

import argparse
import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gradio as gr

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # nothing is sent to anybody
FIRST_PORT = 7860


def build(args: argparse.Namespace) -> "gr.Blocks":
    """The page around a model that is ready."""
    say("Starting (loading PyTorch and Gradio takes a few seconds) ...")
    began = time.perf_counter()
    from vit_demo.ui import page

    say(f"  libraries loaded in {time.perf_counter() - began:.1f} s")
    try:
        return page.make(args.model, args.checkpoint, args.arch, args.labels, args.device, say)
    except ValueError as error:
        sys.exit(f"app.py: {' '.join(str(error).split())}")


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="app.py", description="See how a Vision Transformer looks at a picture."
    )
    add = parser.add_argument
    add("--model", metavar="M", help="the model at start: embedded, a timm name, or a file")
    add("--checkpoint", metavar="FILE", help="a file of weights to offer on the page")
    add("--arch", help="timm architecture of a file that does not describe itself")
    add("--labels", metavar="FILE", help="text file with one label a line, for --checkpoint")
    add("--host", metavar="H", help="address to listen on (127.0.0.1, or GRADIO_SERVER_NAME)")
    add("--port", metavar="P", type=int, help=f"({FIRST_PORT}, or GRADIO_SERVER_PORT)")
    add("--share", action="store_true", help="also make a public link, through Gradio's servers")
    add("--device", default="auto", help="auto, cpu, cuda or mps")
    return parser.parse_args(argv)


def launch(demo: "gr.Blocks", host: str, port: int, share: bool) -> None:
    """Serve until Ctrl-C."""
    from vit_demo.ui import page

    _, url, shared = demo.launch(
        server_name=host,
        server_port=port,
        share=share,
        prevent_thread_lock=True,
        **page.launch_options(),
    )
    say(f"Ready: {url}" + (f"  public: {shared}" if shared else ""))
    say("Press Ctrl-C to stop.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # docker stop, kill: as clean
    try:
        demo.block_thread()
    except KeyboardInterrupt:
        pass
    finally:
        demo.close(verbose=False)
        say("\nStopped.")


def place(args: argparse.Namespace) -> tuple[str, int]:
    """Host and port to listen on. Looked at first: nobody waits for a model only to hear about it."""
    usual = "0.0.0.0" if os.environ.get("SYSTEM") == "spaces" else "127.0.0.1"
    host = args.host or os.environ.get("GRADIO_SERVER_NAME") or usual
    given = args.port or os.environ.get("GRADIO_SERVER_PORT")
    return host, free_port(host, int(given or FIRST_PORT), fixed=bool(given))


def free_port(host: str, port: int, fixed: bool) -> int:
    """This port, or the next free one. A port that was asked for by number is not exchanged."""
    if not 1 <= port <= 65535:
        sys.exit(f"app.py: there is no port {port}; choose a port from 1 to 65535.")
    for candidate in range(port, port + 1 if fixed else port + 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError as error:
                reason = error.strerror
                continue
        if candidate != port:
            say(f"Port {port} is in use, taking {candidate}.")
        return candidate
    sys.exit(
        f"app.py: cannot listen on {host}:{port} ({reason}); choose another one with --port, or leave "
        "--port out to take the next free one."
    )


def say(text: str) -> None:
    print(text, flush=True)


arguments = parse(sys.argv[1:] if __name__ == "__main__" else [])
address = place(arguments) if __name__ == "__main__" else None
demo = build(arguments)

if __name__ == "__main__":
    launch(demo, *address, arguments.share)
