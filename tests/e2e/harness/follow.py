"""A raw client of FollowFile: it follows from any cut, or follows without reading."""

import json

from . import paths
from .process import Process

ALL = 1 << 30  # of the metadata


class Follow:
    """Drives the follow_client program."""

    def __init__(self, site, name: str):
        command = [paths.TEST_BIN / "e2e_follow_client", site.server.address, name]
        self.process = Process(command, site.logs, env=site.plain_env(), name="follow", talks=True)
        site.beside.append(self.process)

    def _ask(self, *words) -> dict:
        answer = json.loads(self.process.ask(" ".join(str(word) for word in words)))
        assert "error" not in answer, answer
        return answer

    def take(self, held: dict | None = None, metadata_max: int = ALL) -> dict:
        """The messages that bring a follower from the result of an earlier take() to the newest cut."""
        after = (held["cut"], held["file_id"]) if held else (0, "-")
        return self._ask("take", *after, metadata_max)

    def stall(self, count: int, *, holds: bool) -> int:
        """Begins more calls that read nothing. Returns how many there are."""
        return self._ask("stall", count, ALL, int(holds))["stalled"]
