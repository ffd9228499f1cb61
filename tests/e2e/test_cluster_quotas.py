"""[[quota]] tables in a cluster: the server of a cell counts it, and the next one does after it."""

import json

import pytest

from harness.process import wait_until
from harness.site import Site

import test_cluster_operations

QUOTA = """
[[quota]]
directory = "x/${user}"
max_files = 2
"""
WRITE = """
    os.makedirs("x/anna", exist_ok=True)
    with h5py.File("x/anna/{name}.h5", "w") as f:
        f["d"] = np.arange(1000)
"""


class Trio(test_cluster_operations.Trio):
    def _table(self, node) -> str:
        return super()._table(node) + QUOTA

    def files_of(self, node: str) -> int | None:
        """The amounts that `node` has counted below x/anna; None: it has no such account."""
        result = self.cli("usage", "--all", "--json", at=node).ok()
        spaces = [each for usage in json.loads(result.out)["usages"] for each in usage.get("spaces", [])]
        amounts = [each for space in spaces if space["directory"] == "x/anna" for each in space["amounts"]]
        return next((each["used"] for each in amounts if each["what"] == "files"), None)

    def write(self, name: str) -> None:
        self.site.server = self.servers[self.owner("x")]
        self.site.run(self.site.script(WRITE.format(name=name))).ok()

    def names(self) -> list:
        return [each["name"] for each in json.loads(self.cli("ls", "--json").ok().out)["files"]]


@pytest.fixture
def trio(tmp_path):
    servers = Trio(tmp_path)
    yield servers
    servers.close()


def test_a_quota_goes_with_its_cell(trio):
    first = trio.owner("x")
    trio.write("one")
    trio.write("two")
    wait_until(lambda: trio.files_of(first) == 2, "its files are not counted", 60)
    to = trio.other_than(first)
    trio.cli("cluster", "move", "x", to).ok()
    wait_until(lambda: trio.files_of(to) == 2, "the next server does not count them", 60)
    wait_until(lambda: trio.files_of(first) is None, "the former one counts them still", 60)

    def is_refused() -> bool:
        """No limit holds until all is counted."""
        trio.write("three")
        if 'quota: "x/anna"' in trio.servers[to].log():
            return True
        trio.cli("rm", "x/anna/three.h5", at=to)
        return False

    wait_until(is_refused, "a third file is not refused", 60)
    assert trio.names() == ["x/anna/one.h5", "x/anna/two.h5"]
    # So it is after a loss.
    trio.servers[to].kill9()
    asked = trio.other_than(to)

    def servers() -> list:
        """The servers that serve x, without the lost one."""
        return [each["server"] for each in trio.status(at=asked)["cells"]
                if each["cell"] == "x" and each["state"] == "served" and each["server"] != to]

    wait_until(servers, "nobody takes over", 90)
    last, = servers()
    wait_until(lambda: trio.files_of(last) == 2, "its successor does not count them", 60)


def test_a_quota_that_spans_cells_is_refused_at_the_start(tmp_path):
    tables = (f'[cluster]\nregistry = "file:{tmp_path}"\nnode = "a"\ncells = ["x", "y"]\n'
              '[[quota]]\ndirectory = ""\nmax_files = 2\n')
    result = Site(tmp_path, tables=tables).server.launch().wait()
    assert result.code == 2 and 'has the cells "x" and "y"' in result.err, result.describe()
    assert "give each cell a table of its own" in result.err
