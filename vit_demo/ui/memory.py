"""Memory that was freed goes back to the system.

Pictures and tensors are freed at once, but the C library keeps the pages for later, for each thread apart:
a server on which many threads have opened a large picture once would look as large for ever.
"""

import ctypes

try:
    trim = ctypes.CDLL(None).malloc_trim
except (AttributeError, OSError, TypeError):  # not glibc
    trim = None


def give_back() -> None:
    if trim:
        trim(0)
