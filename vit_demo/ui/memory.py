"""Memory that was freed goes back to the system.

Pictures and tensors are freed at once, but the C library keeps the pages for later, for each thread apart:
a server on which many threads have opened a large picture once would look as large for ever.
"""

import ctypes
import os

try:
    trim = ctypes.CDLL(None).malloc_trim
except (AttributeError, OSError, TypeError):  # not glibc
    trim = None


def give_back() -> None:
    if trim:
        trim(0)


def system_memory() -> float:
    """Bytes of memory that this computer has; without a number where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not POSIX
        return float("inf")
