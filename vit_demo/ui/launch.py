"""Start the page: find a port, build the page around a model that is ready, serve it."""

import os
import signal
import socket
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gradio as gr

FIRST_PORT = 7860


def build(
    model: str | None = None,
    checkpoint: str | None = None,
    arch: str | None = None,
    labels: str | None = None,
    device: str = "auto",
) -> "gr.Blocks":
    """The page around a model that is ready."""
    say("Starting (loading PyTorch and Gradio takes a few seconds) ...")
    began = time.perf_counter()
    from vit_demo.ui import page

    say(f"  libraries loaded in {time.perf_counter() - began:.1f} s")
    return page.make(model, checkpoint, arch, labels, device, say)


def launch(demo: "gr.Blocks", host: str, port: int, share: bool = False, mcp: bool = False) -> None:
    """Serve until Ctrl-C; with `mcp` also tools for assistants."""
    from vit_demo.ui import page
    from vit_demo.ui.connections import limit_connections

    _, url, shared = demo.launch(
        server_name=host,
        server_port=port,
        share=share,
        prevent_thread_lock=True,
        **page.launch_options(mcp),
    )
    limit_connections(demo.server)
    if mcp:
        page.finish_tools(demo)  # Gradio has said where they are
    say(f"Ready: {url}" + (f"  public: {shared}" if shared else ""))
    say("Press Ctrl-C to stop.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # docker stop, kill: as clean
    try:
        demo.block_thread()
    except KeyboardInterrupt:
        pass
    finally:
        demo.close(verbose=False)
        for number in (signal.SIGINT, signal.SIGTERM):  # who asks twice does not want to wait
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        say("\nStopped.")


def require_mcp() -> None:
    if find_spec("mcp") is None:
        raise ValueError(
            "--mcp needs packages that are not installed; pip install -r requirements-mcp.txt, or "
            "pip install 'vit-demo[mcp]', and start again."
        )


def address(host: str | None, port: int | None) -> tuple[str, int]:
    """Host and port to listen on: as asked for, else as the environment says, else the usual ones."""
    usual = "0.0.0.0" if os.environ.get("SYSTEM") == "spaces" else "127.0.0.1"
    host = host or os.environ.get("GRADIO_SERVER_NAME") or usual
    host = host.strip("[]")
    from_environment = os.environ.get("GRADIO_SERVER_PORT")
    if from_environment and not from_environment.isdecimal():
        raise ValueError(
            f"GRADIO_SERVER_PORT is {from_environment!r:.40}; set it to a number, such as 7860."
        )
    for name in ("GRADIO_SERVER_NAME", "GRADIO_SERVER_PORT"):  # Gradio stumbles over some values
        os.environ.pop(name, None)
    given = port if port is not None else from_environment or None
    port = free_port(host, int(FIRST_PORT if given is None else given), fixed=given is not None)
    return (f"[{host}]" if ":" in host else host), port  # an IPv6 address, as in a URL


def free_port(host: str, port: int, fixed: bool) -> int:
    """This port, or the next free one. A port that was asked for by number is not exchanged."""
    if not 1 <= port <= 65535:
        raise ValueError(f"there is no port {port}; choose a port from 1 to 65535.")
    for candidate in range(port, port + 1 if fixed else port + 100):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError as error:
                reason = error.strerror
                continue
        if candidate != port:
            say(f"Port {port} is in use, taking {candidate}.")
        return candidate
    raise ValueError(
        f"cannot listen on {host}:{port} ({reason}); choose another one with --port, or leave "
        "--port out to take the next free one."
    )


def say(text: str) -> None:
    print(text, flush=True)
