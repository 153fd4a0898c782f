"""The command line: vit-demo COMMAND, or python -m vit_demo COMMAND. One file a command.

Results go to standard output, everything else to standard error. Exit code 0 is success; 2 is bad
input, with one line that says what to do. Only the chosen command is imported, and PyTorch only when
it runs: help comes at once.
"""

import argparse
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import NoReturn, TextIO

from vit_demo.validate import printable

COMMANDS = {
    "app": "Open the page.",
    "models": "List the models that can be used.",
    "classify": "Name what is in pictures.",
    "explain": "Show where in a picture, or in every picture of a folder, the answer came from.",
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
        self.exit(2, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    return carry_out(lambda: make_parser(argv), argv)


def carry_out(parser: Callable[[], Parser], argv: list[str]) -> int:
    """Carry out a command, whatever it prints, and whenever somebody presses Ctrl-C."""
    with noticed_interrupt():
        try:
            with plain_output():
                return run(parser(), argv)
        except BaseException as error:
            if not was_interrupted(error):
                raise
            if signal.getsignal(signal.SIGINT) is interrupt:
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # who asks twice does not want to wait
            return 130


pressed: list[int] = []  # Ctrl-C, since the command began


def interrupt(number: int, frame: object) -> NoReturn:
    pressed.append(number)
    raise KeyboardInterrupt


@contextmanager
def noticed_interrupt() -> Iterator[None]:
    """Remember Ctrl-C: the library whose code it hits may turn it into an error of its own."""
    pressed.clear()
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def was_interrupted(error: BaseException | None) -> bool:
    """Did Ctrl-C cause this?"""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None or bool(pressed)


def make_parser(argv: list[str]) -> Parser:
    parser = Parser(prog="vit-demo", description="See how a Vision Transformer looks at a picture.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    chosen = next((word for word in argv if not word.startswith("-")), None)
    for name, about in COMMANDS.items():
        added = commands.add_parser(name, help=about, description=about)
        if name == chosen:
            add_command(added, name)
    return parser


def add_command(parser: Parser, name: str) -> None:
    """Give a parser the flags of a command, and what it does."""
    module = import_module(f"vit_demo.cli.{name}")
    module.add_arguments(parser)
    parser.set_defaults(run=module.run)


def run(parser: Parser, argv: list[str]) -> int:
    """Errors become one line and an exit code."""
    args = parser.parse_args(argv)
    try:
        return args.run(args) or 0
    except BrokenPipeError:  # the reader of our output (head, less) has seen enough
        sys.stderr.close()
        return 0
    except ValueError as error:
        if pressed:
            raise
        return fail(parser.prog, args, str(error), 2)
    except OSError as error:
        if pressed:
            raise
        if error.errno is None:  # not the system's, but some library's
            return fail(parser.prog, args, f"unexpected {type(error).__name__}: {error}", 1)
        return fail(parser.prog, args, sentence_of(error), 2)
    except Exception as error:  # a stack trace helps nobody who did not ask for it
        if was_interrupted(error):
            raise
        return fail(parser.prog, args, f"unexpected {type(error).__name__}: {error}", 1)


def sentence_of(error: OSError) -> str:
    """An error of the system, in words: a file that is missing, or results that cannot be written."""
    from vit_demo.files import why_not_written

    if isinstance(error, FileNotFoundError):
        return f"There is no file or folder {error.filename}; check the path."
    return why_not_written(error)


def fail(prog: str, args: argparse.Namespace, message: str, code: int) -> int:
    if getattr(args, "debug", False):
        traceback.print_exc()
    print(f"{prog}: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code


class PlainOutput:
    """Standard output that does nothing to a terminal: names of files, labels and models come from
    anywhere. It also never fails because a character is not in the terminal's alphabet."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def write(self, text: str) -> int:
        lines = ("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))
        alphabet = getattr(self.stream, "encoding", None) or "utf-8"
        plain = "\n".join(lines).encode(alphabet, "backslashreplace").decode(alphabet)
        return self.stream.write(plain)

    def __getattr__(self, name: str):
        return getattr(self.stream, name)


@contextmanager
def plain_output() -> Iterator[None]:
    stream = sys.stdout
    sys.stdout = PlainOutput(stream)
    try:
        yield
    finally:
        sys.stdout = stream
