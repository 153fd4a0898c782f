"""python -m vit_demo COMMAND, and what the command vit-demo runs: see vit_demo/cli.

Ctrl-C ends the process at once while nothing is at work, and is told to the command while it runs.
"""

import signal
import sys

QUIET = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so under nohup
if QUIET:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from vit_demo import cli


def main() -> None:
    if QUIET:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = cli.main()
    if QUIET:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


if __name__ == "__main__":
    main()
