"""A port for a process of a test. Without it, two processes that start look for the next free one at the
same time, and find the same."""

import socket


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
