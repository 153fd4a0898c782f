"""Start the demo: python app.py, then open the address it prints."""

import sys

from vit_demo.cli import Parser, add_command, carry_out


def __getattr__(name: str) -> object:
    """`demo`, for those who serve it themselves (`gradio app.py`): built when it is asked for."""
    if name == "demo":
        from vit_demo.ui.launch import build

        globals()["demo"] = build()
        return globals()["demo"]
    raise AttributeError(name)


def parser() -> Parser:
    made = Parser(prog="app.py", description="See how a Vision Transformer looks at a picture.")
    add_command(made, "app")
    return made


if __name__ == "__main__":
    sys.exit(carry_out(parser, sys.argv[1:]))
