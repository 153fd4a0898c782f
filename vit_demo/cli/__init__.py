"""The command line: vit-demo COMMAND, or python -m vit_demo COMMAND. One file a command.

Results go to standard output, everything else to standard error. Exit code 0 is success; 2 is bad
input, with one line that says what to do. Only the chosen command is imported, and PyTorch only when
it runs: help comes at once.
"""

import argparse
import sys
import traceback
from importlib import import_module
from typing import NoReturn

COMMANDS = {
    "app": "Open the page.",
    "models": "List the models that can be used.",
    "classify": "Name what is in pictures.",
    "explain": "Show where in a picture the answer came from.",
    "compare": "Two models on one picture, or two pictures in one model.",
    "trust": "Test whether maps show what the answer came from.",
    "faithfulness": "Test maps over a folder of pictures, as the papers do.",
    "summary": "Print the layers of a model, with shapes and parameters.",
    "train": "Train a ViT from scratch, or fine-tune one.",
    "evaluate": "Measure a model's accuracy.",
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def __init__(self, **options):
        super().__init__(**options)
        self.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS,
            help="show where in the code an error came from",
        )  # fmt: skip

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    parser = Parser(prog="vit-demo", description="See how a Vision Transformer looks at a picture.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    chosen = next((word for word in argv if not word.startswith("-")), None)
    for name, about in COMMANDS.items():
        added = commands.add_parser(name, help=about, description=about)
        if name == chosen:
            add_command(added, name)
    return run(parser, argv)


def add_command(parser: Parser, name: str) -> None:
    """Give a parser the flags of a command, and what it does."""
    module = import_module(f"vit_demo.cli.{name}")
    module.add_arguments(parser)
    parser.set_defaults(run=module.run)


def run(parser: Parser, argv: list[str]) -> int:
    """Carry out a command; errors become one line and an exit code."""
    args = parser.parse_args(argv)
    try:
        return args.run(args) or 0
    except (ValueError, FileNotFoundError, PermissionError) as error:
        return fail(parser.prog, args, str(error), 2)
    except BrokenPipeError:  # the reader of our output (head, less) has seen enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - a stack trace helps nobody who did not ask for it
        return fail(parser.prog, args, f"unexpected {type(error).__name__}: {error}", 1)


def fail(prog: str, args: argparse.Namespace, message: str, code: int) -> int:
    if getattr(args, "debug", False):
        traceback.print_exc()
    print(f"{prog}: {' '.join(message.split())}", file=sys.stderr)
    return code
