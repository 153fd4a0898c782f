"""Wait for a condition, not for a time. The limit only ends a test that would hang."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest

SECONDS = 120


def wait_until(condition: Callable[[], object], what: str = "it") -> None:
    end, pause = time.monotonic() + SECONDS, threading.Event()
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"{what} did not happen within {SECONDS} s")
        pause.wait(0.005)


def call_with_patience(call: Callable[[], object]) -> object:
    """What the call returns or raises; a call that never ends fails the test instead of holding it."""
    answer = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test shall see it
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return answer.result(SECONDS)
