"""Live files in JupyterLab's viewer: the notebook look.ipynb, and the viewer's own server on files that an agent
publishes."""

import json
import re
import urllib.parse
import urllib.request

from harness import paths
from harness.package import PACKAGE, Package
from harness.process import Process, wait_until

TOOLS = paths.CACHE / "venv-notebook" / "bin"
EXAMPLES = PACKAGE / "examples"


def test_the_notebook_shows_a_live_file(bare_site):
    """With the environment of tests/python/requirements-notebook.txt."""
    assert TOOLS.exists(), f"{TOOLS.parent} is missing; ./dev setup makes it"
    place = bare_site.directory / "notebook"
    place.mkdir()
    for name in ("look.ipynb", "experiment.py"):
        (place / name).write_bytes((EXAMPLES / name).read_bytes())
    executed = place / "executed.ipynb"
    env = Package(bare_site).env(H5MIRROR_SERVER=bare_site.address, PATH=f"{paths.BIN}:/usr/bin:/bin")
    bare_site.run([TOOLS / "jupyter-execute", "--timeout=90", "--output", executed, place / "look.ipynb"], env=env,
                  timeout=200).ok()
    outputs = [cell["outputs"] for cell in json.loads(executed.read_text())["cells"] if cell["cell_type"] == "code"]
    [shown] = [each["data"]["application/x-hdf5"] for cell in outputs for each in cell
               if "application/x-hdf5" in each.get("data", {})]
    assert shown == str(place / "live" / "run.h5")
    printed = "".join("".join(each.get("text", "")) for cell in outputs for each in cell)
    values = [int(each) for each in re.findall(r"^step \d+ values (\d+)$", printed, re.MULTILINE)]
    assert len(values) >= 2 and values == sorted(values), printed
    assert printed.splitlines()[-1] == "complete 300", printed


class Viewer:
    """A Jupyter server with the viewer's extension, and no front end."""

    def __init__(self, site, root):
        self.directory = site.directory / "jupyter"
        self.directory.mkdir()
        self.process = Process(
            [TOOLS / "jupyter-server", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
             f"--ServerApp.root_dir={root}", "--IdentityProvider.token=secret",
             "--ServerApp.jpserver_extensions={'jupyterlab_h5web': True}"],
            self.directory, cwd=self.directory,
            env={**site.plain_env(), "PATH": f"{TOOLS}:/usr/bin:/bin", "JUPYTER_RUNTIME_DIR": str(self.directory),
                 "JUPYTER_CONFIG_DIR": str(self.directory), "JUPYTER_DATA_DIR": str(self.directory)})
        self.url = ""
        wait_until(self.serves, "the Jupyter server does not serve", 60)

    def serves(self) -> bool:
        """It writes where it serves into a file of its own."""
        assert self.process.running(), "the Jupyter server has ended"
        for path in self.directory.glob("jpserver-*.json"):
            try:
                self.url = json.loads(path.read_text())["url"]
            except json.JSONDecodeError:
                return False  # It is being written.
        return bool(self.url)

    def get(self, what: str, file: str, path: str):
        query = urllib.parse.urlencode({"file": file, "path": path, "format": "json"})
        request = urllib.request.Request(f"{self.url}h5web/{what}/?{query}", headers={"Authorization": "token secret"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())


def test_the_viewer_shows_each_cut_that_the_agent_publishes(bare_site):
    site, live = bare_site, bare_site.directory / "live"
    live.mkdir()
    writer = site.start(site.script("""
        with h5py.File("run.h5", "w", libver="latest") as f:
            x = f.create_dataset("x", (0,), maxshape=(None,), chunks=(100,), dtype="i8")
            for line in sys.stdin:
                count = int(line)
                x.resize((count,))
                x[:] = np.arange(count)
                f.flush()
                print("flushed", flush=True)
    """), talks=True)
    writer.ask("10")
    site.start([paths.BIN / "h5mirror-agent", "--server", site.address, "--publish", live, "run.h5"],
               env=site.plain_env())
    wait_until((live / "run.h5").exists, "nothing is published", 60)
    viewer = Viewer(site, live)
    try:
        for count in (10, 20, 1000):
            writer.ask(str(count))
            wait_until(lambda: viewer.get("meta", "run.h5", "/x")["shape"] == [count], f"no {count} values are shown", 60)
            assert viewer.get("data", "run.h5", "/x") == list(range(count))
    finally:
        viewer.process.kill()
    writer.kill()
