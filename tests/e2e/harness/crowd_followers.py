"""Followers beside the writers of a crowd."""

from . import paths
from .crowd import Crowd, Lines
from .package import Package
from .process import wait_until


class Followers:
    """`count` programs that follow the first files of `crowd`, each with the list of all servers."""

    def __init__(self, crowd: Crowd, count: int):
        self.crowd, site = crowd, crowd.cluster.site
        servers = "|".join(server.address for server in crowd.cluster.servers)
        self.seen: dict[str, int] = {}
        self.all = {name: Lines(site.start([site.python, paths.PROGRAMS / "cluster_follower.py", f"h5mirror://{servers}/{name}"],
                                           env=Package(site).env())) for name in crowd.names[:count]}

    def look(self) -> None:
        """Takes in their output. Fails if one has ended: a follower ends at a mixed cut."""
        for name, lines in self.all.items():
            for line in lines.next():
                word, *n = line.split()
                if word == "seen":
                    self.seen[name] = max(self.seen.get(name, -1), int(n[0]))
            code = lines.process.popen.poll()
            assert code in (None, 0), f"the follower of {name} ended with {code}:\n{lines.process.err()[-3000:]}"

    def await_cuts(self, timeout: float = 120) -> None:
        """Waits until each has seen the newest acked state of its file, or a later one."""
        wanted = {name: self.crowd.acked[name][0] for name in self.all}

        def all_seen() -> bool:
            self.crowd.look()
            self.look()
            return all(self.seen.get(name, -1) >= n for name, n in wanted.items())

        wait_until(all_seen, f"followers do not see {wanted}, but {self.seen}", timeout)

    def finish(self) -> None:
        """Call it after Crowd.finish(): each follower ends with its writer."""
        for lines in self.all.values():
            lines.process.wait(120).ok()
