"""How much memory a process has."""

import os
from pathlib import Path


def resident(process: int | str = "self") -> int:
    """Bytes in use right now; 0 where the system does not say."""
    statm = Path(f"/proc/{process}/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0
