"""The Python package's adapter for tiled, with tiled as it is on PyPI.

Only with --all: the environment of tiled takes 1.3 GB, and its import alone several seconds.
"""

import pytest

from harness import paths
from harness.fits import Fits, installed  # noqa: F401

pytestmark = pytest.mark.skipif(not paths.TEST_ALL, reason="only with ./dev test --all")
TILED = paths.CACHE / "venv-tiled"

# Where a program hangs, its stacks tell where, before the harness kills it.
SERVE = """
    import atexit, faulthandler, queue, threading, uvicorn
    faulthandler.dump_traceback_later(250, exit=True)
    from h5mirror.tiled import tree
    from tiled.client import Context, from_context, from_uri
    from tiled.config import Authentication
    from tiled.server.app import build_app

    def app(tree):
        return build_app(tree, Authentication(allow_anonymous_access=True))

    def serve(tree):
        server = uvicorn.Server(uvicorn.Config(app(tree), port=0, log_level="warning"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        atexit.register(thread.join)  # After the next line's: no thread is in a call of h5py when the interpreter ends.
        atexit.register(setattr, server, "should_exit", True)
        while not server.started:
            time.sleep(0.01)
        return from_uri(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")

    def no_key(look):
        try:
            return look()
        except KeyError:
            return "no key"
"""


class Tiled(Fits):
    """Programs with the time that the import of tiled takes on a loaded machine: a minute has been seen."""

    def run(self, text, first=None, config=None, **env):
        return self.site.run(self.script(text, first, config), env=self.env(**env), timeout=280)


@pytest.fixture
def tiled(bare_site, installed):  # noqa: F811
    """Programs in the environment with tiled, beside a server of the test's own."""
    assert (TILED / "requirements.txt").exists(), f"{TILED} is missing; ./dev test --all makes it"
    fits = Tiled(bare_site, installed)
    fits.site.python = TILED / "bin" / "python"
    return fits


def test_a_file_is_a_tree_of_its_versions(tiled):
    assert tiled.py(SERVE + """
    for n in (1, 2, 3):
        with h5py.File("run.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f.require_dataset("g/d", (3, 4), "f8")[:] = n
            f.attrs["n"] = n
    file, two = serve(tree(H + "/run.h5")), serve(tree("h5mirror:///run.h5@2", server=SERVER))
    print(list(file), [file[key, "g", "d"][0, 0].item() for key in ("1", "2", "latest", "live", "latest-1")])
    print(list(two), two["g/d"].read().max(), two.metadata["n"], two.metadata["h5mirror"]["version"])
    print([no_key(lambda: file[key]) for key in ("9", "run", "tag:none")])
    print(list(serve(tree(H + "/other.h5"))))
    """).splitlines() == [
        "['live', 'latest', '1', '2', '3'] [1.0, 2.0, 3.0, 3.0, 2.0]", "['g'] 2.0 2 2", "['no key', 'no key', 'no key']", "[]"]


def test_groups_datasets_and_attributes_are_served_and_nothing_of_other_files(tiled):
    assert tiled.py(SERVE + """
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["g/d"] = np.arange(12.0).reshape(3, 4)
        f["g/d"].attrs["units"] = "K"
        f.attrs["list"], f.attrs["bytes"], f.attrs["empty"] = [1, 2], np.bytes_(b"b"), h5py.Empty("f4")
        f["scalar"], f["text"] = 5, ["of any", "length"]
        f["table"] = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
        f["flags"] = np.array([True, False])
        f.create_dataset("chunks", data=np.arange(1000), chunks=(100,), maxshape=(None,))
        f.create_dataset("none", (0,), "i4", chunks=(10,), maxshape=(None,))
        f["soft"], f["broken"], f["g/up"] = h5py.SoftLink("/g/../g/d"), h5py.SoftLink("/away"), f["/"]
        f["same"] = h5py.SoftLink("g/d")
        f["reference"] = f["g"].ref
        # Nothing of the machine where it runs.
        f["elsewhere"], f["through"] = h5py.ExternalLink("/etc/other.h5", "/d"), h5py.SoftLink("/elsewhere")
        f.create_dataset("raw", (4,), "i1", external=[(os.path.abspath("secret"), 0, 4)])
        layout = h5py.VirtualLayout((1000,), "i8")
        layout[:] = h5py.VirtualSource("local.h5", "d", (1000,))
        f.create_virtual_dataset("virtual", layout)
    root = serve(tree(H + "/run.h5"))["1"]
    print(sorted(root), list(root["g"]))
    print({key: root.metadata[key] for key in root.metadata if key != "h5mirror"}, dict(root["g", "d"].metadata))
    print(root["g/d"][1:, 2], root["g/d"][::-2, -1], root["same"][..., 0], root["scalar"].read(), root["table"].read()["b"])
    print(root["text"].read().tolist(), root["flags"].read(), root["none"].read().shape, root["chunks"][95:105].sum())
    print([no_key(lambda: root[key]) for key in ("raw", "elsewhere", "through", "broken", "g/up/g")])
    """).splitlines() == [
        "['chunks', 'flags', 'g', 'none', 'same', 'scalar', 'table', 'text'] ['d']",
        "{'bytes': 'b', 'list': [1, 2]} {'units': 'K'}",
        "[ 6. 10.] [11.  3.] [0. 4. 8.] 5 [2.5]",
        "[b'of any', b'length'] [ True False] (0,) 995",
        "['no key', 'no key', 'no key', 'no key', 'no key']"]


def test_a_slice_reads_its_chunks_alone(tiled):
    assert tiled.py(SERVE + """
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        images = f.create_dataset("d", (64, 512, 512), "f4", chunks=(1, 512, 512))
        for n in range(64):
            images[n] = np.full((512, 512), n, "f4")
    from h5mirror._reader import Reader
    read, fetched = Reader.read_into, []

    def counted(self, offset, out, raw=None):
        fetched.append(len(out))
        return read(self, offset, out, raw)

    Reader.read_into = counted
    array = serve(tree(H + "/run.h5"))["1", "d"]
    print(sum(fetched) < 1 << 18, array.chunks[0], array[7, 0, 0], (1 << 20) <= sum(fetched) < 2 << 20)
    """) == "True (16, 16, 16, 16) 7.0 True\n"


STREAM = SERVE + """
    def subscribed(node, registry, value, start=None):
        told, subscription = queue.Queue(), node.subscribe()
        callback = lambda each: told.put(value(each))
        getattr(subscription, registry).add_callback(callback)
        subscription.start_in_thread(start)
        return told, subscription, callback  # tiled keeps no callback.
"""


def test_the_cuts_of_a_live_file_are_updates(tiled):
    out = tiled.py(STREAM + """
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG + ";ack_tick=applied") as f:
        f["g/d"] = np.zeros(5)
        f.flush()
        file = serve(tree(H + "/run.h5"))
        live = file["live"]
        values = [subscribed(live["g/d"], "new_data", lambda each: each.data().tolist(), 0) for _ in range(8)]
        print([each[0].get(timeout=60) for each in values] == [[0.0] * 5] * 8)
        members = subscribed(live, "child_created", lambda each: each.key)
        cuts = subscribed(file, "child_metadata_updated", lambda each: (each.key, each.metadata["h5mirror"]["cut"]))
        versions = subscribed(file, "child_created", lambda each: each.key)
        before = live.metadata["h5mirror"]["cut"]
        f["g/d"][:] = 1
        f["new"] = 1
        f.flush()
        print([each[0].get(timeout=60) for each in values] == [[1.0] * 5] * 8, members[0].get(timeout=60))
        key, cut = cuts[0].get(timeout=60)
        print(key, cut > before, file["live"].metadata["h5mirror"]["cut"] == cut, live.refresh().metadata["h5mirror"]["cut"] == cut)
        print(sorted(file["live"]), live["g/d"].read().max(), list(file))
    print(versions[0].get(timeout=60))
    for each in (*values, members, cuts, versions):
        each[1].disconnect()
    print("done")
    """)
    assert out.splitlines() == ["True", "True new", "live True True True", "['g', 'new'] 1.0 ['live']", "1", "done"], out


def test_the_client_in_the_server_s_process_gets_updates_and_comes_to_an_end(tiled):
    assert tiled.py(STREAM + """
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG + ";ack_tick=applied") as f:
        f["d"] = np.zeros(3)
        f.flush()
        with Context.from_app(app(tree(H + "/run.h5"))) as context:
            node = from_context(context)["live", "d"]
            told, subscription, _ = subscribed(node, "new_data", lambda each: each.data().tolist())
            f["d"][:] = 1
            f.flush()
            print(told.get(timeout=60))
            subscription.disconnect()
    print("done")
    """) == "[1.0, 1.0, 1.0]\ndone\n"


def test_a_version_ends_its_stream_at_once(tiled):
    assert tiled.py(STREAM + """
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["d"] = np.zeros(3)
    ended = subscribed(serve(tree(H + "/run.h5"))["1", "d"], "stream_closed", lambda each: "ended")
    print(ended[0].get(timeout=60))
    """) == "ended\n"


def test_a_subscriber_waits_for_a_server_that_is_away_instead_of_hanging(tiled):
    program = tiled.start(STREAM + """
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["d"] = np.zeros(3)
    file = serve(tree(H + "/run.h5", timeout=1))
    print("served", flush=True)
    sys.stdin.readline()
    told = subscribed(file, "child_created", lambda each: each.key)
    print("connected", flush=True)
    sys.stdin.readline()
    # It comes again once a second: until it has, nobody would tell it of a version.
    for n in range(60):
        with h5py.File("run.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f["d"][:] = n
        try:
            print(told[0].get(timeout=1) >= "2", flush=True)
            break
        except queue.Empty:
            pass
    told[1].disconnect()
    """, talks=True)
    assert program.line(280) == "served"
    tiled.site.server.stop()
    assert program.ask("subscribe") == "connected"
    tiled.site.server.start()
    assert program.ask("write") == "True"
    program.popen.stdin.close()
    program.wait(60).ok()


def test_tiled_s_own_server_takes_it_from_its_configuration(tiled):
    assert tiled.py(STREAM + """
    import pathlib, re, subprocess
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["d"] = np.arange(3)
    pathlib.Path("tiled.yml").write_text(f'''
    trees:
      - path: /run.h5
        tree: h5mirror.tiled:tree
        args: {{url: "{H}/run.h5"}}
    ''')
    command = [os.path.join(os.path.dirname(sys.executable), "tiled"), "serve", "config", "tiled.yml", "--public", "--port", "0"]
    with open("tiled.log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        while not (found := re.search(r"running on \\S*?(http://[0-9.:]+)", pathlib.Path("tiled.log").read_text())):
            assert server.poll() is None, pathlib.Path("tiled.log").read_text()
            time.sleep(0.05)
        client = from_uri(found[1])
        print(list(client), client["run.h5", "1", "d"].read())
        # Of a server that was told to end while a client is subscribed.
        told = subscribed(client["run.h5", "live", "d"], "new_data", lambda each: each.data().tolist(), 0)
        print(told[0].get(timeout=60))
    finally:
        server.terminate()
        print(server.wait(60))
    os._exit(0)  # Its client would look for the server for minutes.
    """).splitlines()[:2] == ["['run.h5'] [0 1 2]", "[0, 1, 2]"]
