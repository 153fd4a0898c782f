"""Files that are there whole or not at all, whatever happens while they are written."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Write beside, then rename: there is the old file or the new one, never half of one."""
    handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part" + path.suffix)
    os.close(handle)
    try:
        yield Path(part)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
