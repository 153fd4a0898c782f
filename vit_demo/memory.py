"""Memory that was freed: a little of it is kept for the next picture, much of it goes back to the system.

A page of memory that the system hands out anew costs a microsecond, and a small model's explanation has a
thousand of them: a tenth of its time. So what one explanation frees stays for the next one, up to KEPT_BYTES.

Pictures and tensors are freed at once, but the C library keeps the pages for later, for each thread apart:
a server on which many threads have opened a large picture once would look as large for ever.
"""

import ctypes
import os

KEPT_BYTES = 128 * 2**20
LARGE_BYTES = 32 * 2**20  # what is larger goes back at once; glibc allows no more
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h

try:
    library = ctypes.CDLL(None)
    trim, mallopt = library.malloc_trim, library.mallopt
except (AttributeError, OSError, TypeError):  # not glibc
    trim = mallopt = None


def keep_some() -> None:
    """Let freed memory stay for what comes next, unless the environment says how much of it."""
    if mallopt and not any(name.startswith("MALLOC_") for name in os.environ):
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def give_back() -> None:
    if trim:
        trim(0)


def system_memory() -> float:
    """Bytes of memory that this computer has; without a number where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not POSIX
        return float("inf")
