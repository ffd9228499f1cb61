"""The adapter of the Python package for tiled, with tiled as it is on PyPI."""

from harness.fits import fits, installed  # noqa: F401

SERVE = """
    import threading, uvicorn
    from h5mirror.tiled import tree
    from tiled.client import from_uri
    from tiled.config import Authentication
    from tiled.server.app import build_app

    def serve(tree):
        app = build_app(tree, Authentication(allow_anonymous_access=True))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.01)
        return from_uri(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
"""


def test_tiled_serves_a_file_and_its_versions(fits):
    out = fits.py(SERVE + """
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["g/d"] = np.arange(12.0).reshape(3, 4)
        f["g/d"].attrs["units"] = "K"
        f.attrs["list"], f.attrs["bytes"] = [1, 2], np.bytes_(b"b")
        f["scalar"], f["text"] = 5, "of any length"
        f["table"] = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
        f.create_dataset("chunks", data=np.arange(1000), chunks=(100,))
        # Nothing of the machine where it runs.
        f["elsewhere"] = h5py.ExternalLink("/etc/other.h5", "/d")
        f.create_dataset("raw", (4,), "i1", external=[(os.path.abspath("secret"), 0, 4)])
        layout = h5py.VirtualLayout((1000,), "i8")
        layout[:] = h5py.VirtualSource("local.h5", "d", (1000,))
        f.create_virtual_dataset("virtual", layout)
    with h5py.File("run.h5", "a", driver="h5mirror", config=CONFIG) as f:
        f["g/d"][:] = 7
    old, new = serve(tree(H + "/run.h5@1")), serve(tree("h5mirror:///run.h5", server=SERVER))
    print(list(old), dict(old.metadata), dict(old["g", "d"].metadata))
    print(old["g/d"][1:, 2], new["g/d"].read().max(), old["scalar"].read(), old["table"].read()["b"], old["chunks"][95:105].sum())
    try:
        old["raw"]
    except KeyError:
        print("no key")
    """)
    assert out.splitlines()[-3:] == [
        "['chunks', 'g', 'scalar', 'table'] {'bytes': 'b', 'list': [1, 2]} {'units': 'K'}", "[ 6. 10.] 7.0 5 [2.5] 995", "no key"]


def test_tiled_streams_the_cuts_of_a_live_file(fits):
    out = fits.py(SERVE + """
    import queue
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG + ";ack_tick=applied") as f:
        f["g/d"] = np.zeros(5)
        f.flush()
        client = serve(tree(H + "/run.h5"))
        told = queue.Queue()
        arrays = [client["g/d"].subscribe() for _ in range(2)]
        members = client.subscribe()
        on_data, on_child = (lambda each: told.put(each.data().tolist())), (lambda each: told.put(each.key))
        for each in arrays:
            each.new_data.add_callback(on_data)
            each.start_in_thread(0)
            print(told.get(timeout=60))
        members.child_created.add_callback(on_child)
        members.start_in_thread(0)
        f["g/d"][:] = 1
        f["new"] = 1
        f.flush()
        print(sorted((told.get(timeout=60) for _ in range(3)), key=str))
        print(list(client), client["g/d"].read().max())
        for each in (*arrays, members):
            each.disconnect()
    """)
    assert out.splitlines()[-4:] == [str([0.0] * 5)] * 2 + [f"{[[1.0] * 5, [1.0] * 5, 'new']}", "['g', 'new'] 1.0"], out
