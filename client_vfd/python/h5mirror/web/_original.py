"""Where a file is written from, and whether that keeps this page from restoring objects into its mirror."""

import os
import socket
from pathlib import Path
from typing import Any

_TEXT_MAX = 4096
# base/remote_origin.h: of a file that is on the server only.
_REMOTE = "(mode=remote"


def original_of(status: dict[str, Any]) -> dict[str, str] | None:
    """The local file, which a tool of this page may not write, with the host that has it; None: no
    local file (any more), so objects come back on the server. `status` is the document of `h5mirror
    status FILE`. It may wait for a disk."""
    origin = status.get("origin")
    if not isinstance(origin, dict):
        return None
    machine, host, path = (str(origin.get(key) or "")[:_TEXT_MAX] for key in ("machine_id", "host", "path"))
    if not path or path.startswith(_REMOTE) or (machine == _own_machine() and _is_gone(path)):
        return None
    return {"host": host, "path": path}


def _is_gone(path: str) -> bool:
    """False where it cannot be looked at."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _own_machine() -> str:
    """As base/who.h has it."""
    try:
        words = Path("/etc/machine-id").read_text(encoding="ascii", errors="replace").split()
    except OSError:
        words = []
    return words[0] if words else socket.gethostname()
