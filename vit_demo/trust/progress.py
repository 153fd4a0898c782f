"""How far a long question is, and how to stop it."""

from collections.abc import Callable

Progress = Callable[[int, int], object]  # (done, total) now and then; answer False to stop


class Cancelled(Exception):
    """The one who watched the progress said False."""


def report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None and progress(done, total) is False:
        raise Cancelled(f"stopped after {done} of {total}")
