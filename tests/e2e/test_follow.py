"""h5mirror.follow(): a file of its own for every cut of a file that is being written."""

import json
import os
import re
import signal
import socket
import time

import pytest

from harness import paths
from harness.metrics import Metrics
from harness.package import Package, secured
from harness.process import wait_until

# Its step number is in data, shape, attribute, string and names. Goes on at each line that comes in; "run N" is N steps.
WRITER = """
    f = h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG + ";ack=applied")
    d = f.create_dataset("d", (0, 1000), maxshape=(None, 1000), chunks=(1, 1000), dtype="i4")
    s = f.create_dataset("s", (), dtype=h5py.string_dtype())
    def change(n):
        d.resize(n + 1, axis=0)
        d[:] = n
        s[()] = "step %d" % n
        f.attrs["n"] = n
        f.create_group("group %d" % n)
        if n: del f["group %d" % (n - 1)]
    def step(n):
        change(n)
        f.flush()
    step(0)
    print("ready", flush=True)
    n = 0
    for line in sys.stdin:
        if line.strip() == "close": break
        for _ in range(int(line.split()[1]) if line.startswith("run") else 1):
            n += 1
            step(n)
        print("done", flush=True)
    change(n + 1)
    f.close()
    print("closed", flush=True)
"""
# Says which step each file is of, after a look that all of it is.
STATE = """
    def state(f):
        n = int(f.attrs["n"])
        assert f["d"].shape == (n + 1, 1000) and (f["d"][:] == n).all(), f"data of {n}"
        assert f["s"][()].decode() == "step %d" % n, f"string of {n}"
        assert [k for k in f if k.startswith("group")] == ["group %d" % n], f"groups of {n}"
        return n
"""
FOLLOWER = STATE + """
    last = None
    for f in h5mirror.follow(URL, ARGUMENTS):
        assert not last, "the file before is not closed"
        last = f
        print(state(f), flush=True)
    assert not last
    print("end", flush=True)
"""
# The programs that a program runs.
CHILDREN = """
    from pathlib import Path
    def children():
        return [each for task in Path("/proc/self/task").iterdir() for each in (task / "children").read_text().split()]
"""
# Of a cut that a newer one has followed: the default in the long tests.
KEEP_S = 60 if paths.TEST_ALL else 1


class Followed:
    """A writer that goes on step by step, and followers of its file."""

    def __init__(self, package):
        self.package, self.site = package, package.site
        self.writer = package.start(WRITER, talks=True)
        assert self.writer.line() == "ready"

    def step(self, line: str = "step") -> None:
        assert self.writer.ask(line) == "done"

    def close(self) -> None:
        assert self.writer.ask("close") == "closed"

    def follower(self, arguments: str = ""):
        return self.package.start(FOLLOWER.replace("ARGUMENTS", arguments))


@pytest.fixture
def followed(package):
    return Followed(package)


@pytest.fixture
def durable(followed):
    """The same, with a file that survives a kill of the server."""
    wait_until(lambda: int(followed.site.status("run.h5")["durable_cut"]) > 0, "no cut becomes durable")
    return followed


def rest_of(process) -> list[str]:
    """All that it printed, after its end."""
    return process.wait().ok().out.split()


def test_each_cut_is_a_file_of_one_moment(followed):
    follower = followed.follower()
    assert follower.line() == "0"
    for n in range(1, 30):
        followed.step()
        assert follower.line() == str(n)


def test_of_a_writer_that_is_quicker_it_sees_the_newest_and_the_last(followed):
    follower = followed.follower("until_done=True")
    assert follower.line() == "0"
    followed.step("run 300")
    followed.close()
    *steps, end = rest_of(follower)
    steps = list(map(int, steps))
    assert end == "end" and steps == sorted(set(steps)) and steps[-1] == 301, steps
    assert len(steps) > 3


def test_it_ends_with_the_writer_after_the_cut_of_the_close(followed):
    follower = followed.follower("until_done=True")
    assert follower.line() == "0"
    followed.step()
    assert follower.line() == "1"
    followed.close()
    assert rest_of(follower) == ["0", "1", "2", "end"]


def test_without_until_done_it_goes_on_to_the_next_writer(followed):
    follower = followed.follower()
    assert follower.line() == "0"
    followed.close()
    assert follower.line() == "1"
    again = Followed(followed.package)
    assert follower.line() == "0"
    again.step()
    assert follower.line() == "1"


def test_every_nth_cut_is_counted_from_the_one_before(followed):
    follower = followed.follower("until_done=True, nth=3")
    assert follower.line() == "0"
    for n in range(1, 8):
        followed.step()
        if n % 3 == 0:
            assert follower.line() == str(n)
    followed.close()  # 8 is no third one, but the last.
    assert rest_of(follower) == ["0", "3", "6", "8", "end"]


def test_at_most_one_in_so_many_seconds_and_then_the_newest(followed):
    follower = followed.package.start(STATE + """
    given = -1.0
    for f in h5mirror.follow(URL, until_done=True, every=0.5):
        assert time.monotonic() - given >= 0.5, "too soon"
        given = time.monotonic()
        print(state(f), flush=True)
    """)
    assert follower.line() == "0"
    followed.step("run 100")
    followed.close()
    steps = list(map(int, rest_of(follower)))
    assert steps == sorted(set(steps)) and steps[-1] == 101 and len(steps) < 100, steps


def test_it_begins_after_a_cut_that_is_named(followed):
    cut = int(followed.site.status("run.h5")["last_cut"])
    follower = followed.follower(f"after={cut}")
    newest = followed.follower()
    assert newest.line() == "0"
    followed.step()
    assert newest.line() == "1" and follower.line() == "1"


@pytest.mark.parametrize("how", ["killed", "stopped"])
@pytest.mark.site(options={"durable_every": "100ms"})
def test_a_server_that_starts_again_is_waited_for(durable, how):
    follower = durable.follower("until_done=True")
    assert follower.line() == "0"
    for n in range(1, 4):
        server = durable.site.server
        server.kill9() if how == "killed" else server.stop()
        time.sleep(1)  # A flush before the writer has noticed is brought with the next one.
        server.start()
        durable.step()
        seen = follower.line()
        while seen == str(n - 1):  # Once more: a stop makes a version of it, or the writer sends it again.
            seen = follower.line()
        assert seen == str(n)
    durable.close()
    assert rest_of(follower)[-2:] == ["4", "end"]


def test_a_server_that_is_away_is_looked_for_all_the_time(durable):
    """gRPC looks once in five seconds where nobody waits for a connection."""
    follower = durable.follower()
    assert follower.line() == "0"
    durable.writer.signal(signal.SIGSTOP)  # It would look, too.
    durable.site.server.kill9()
    host, _, port = durable.site.address.partition(":")
    looks = []
    with socket.create_server((host, int(port)), reuse_port=True) as in_its_place:
        in_its_place.settimeout(60)
        while len(looks) < 8:
            in_its_place.accept()[0].close()
            looks.append(time.monotonic())
    pauses = [after - before for before, after in zip(looks, looks[1:])]
    # The first two follow each other at once in any case. Load makes some of the others longer, not all.
    assert min(pauses[2:]) < 4, pauses


@pytest.mark.site(options={"durable_every": "100ms"})
def test_a_writer_that_comes_back_later_than_the_server_has_not_gone(durable):
    follower = durable.package.start(STATE + """
    import logging
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    for f in h5mirror.follow(URL, until_done=True):
        print(state(f), flush=True)
    """)
    assert follower.line() == "0"
    durable.writer.signal(signal.SIGSTOP)
    durable.site.server.kill9()
    wait_until(lambda: "waiting for it" in follower.err(), "it does not say that the server is away")
    assert follower.err().startswith("h5mirror h5mirror: "), follower.err()
    durable.site.server.start()
    # Until the writer comes back, the server knows of no writer.
    waited = durable.package.start("time.sleep(3); print('slept', flush=True)")
    assert waited.line() == "slept" and follower.running(), follower.out()
    durable.writer.signal(signal.SIGCONT)
    steps = 0

    def is_seen():
        # A flush before the writer has noticed that its server was away is brought with the next one.
        nonlocal steps
        durable.step()
        steps += 1
        time.sleep(0.5)
        return len(follower.out().split()) > 1

    wait_until(is_seen, "no further cut is seen")
    durable.close()
    assert rest_of(follower)[-1] == str(steps + 1)


ENDS = {
    "break": "for f in h5mirror.follow(URL): break",
    "close": "files = h5mirror.follow(URL); f = next(files); files.close()",
    "no_reference": "f = next(h5mirror.follow(URL))",
    "exception": """
try:
    for f in h5mirror.follow(URL):
        1 / 0
except ZeroDivisionError:
    pass""",
    "interrupt": """
import signal
def interrupt(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
try:
    for f in h5mirror.follow(URL, keep_open=True):
        print(len(children()))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
except KeyboardInterrupt:
    print("interrupted")""",
    "idle": """
try:
    # The first cut comes when the program that it runs has begun.
    for f in h5mirror.follow(URL, idle_timeout=1.5, keep_open=True):
        pass
except TimeoutError as error:
    print(error)""",
}


@pytest.mark.parametrize("how", ENDS)
def test_leaving_the_loop_ends_the_program_that_it_runs_and_keeps_the_last_file_open(followed, how):
    out = followed.package.py(STATE + CHILDREN + re.sub(r"(?m)^", "    ", ENDS[how]) + """
    print(children(), os.listdir(os.environ["TMPDIR"]), state(f))
    """, TMPDIR=str(followed.site.home))
    *before, last = out.splitlines()
    assert last == "[] [] 0"
    assert before == {"interrupt": ["1", "interrupted"], "idle": [f"no new cut of {followed.package.url} came in time"]}.get(how, [])


def test_a_program_that_ends_in_the_loop_leaves_none_behind(followed):
    for end in ("sys.exit(0)", "os.kill(os.getpid(), 9)", "os._exit(0)"):
        program = followed.package.start(CHILDREN + f"""
    files = h5mirror.follow(URL)
    f = next(files)
    print(*children(), flush=True)
    sys.stdin.readline()
    {end}
    """, talks=True)
        child, = program.line().split()
        assert "h5mirror\0" in open(f"/proc/{child}/cmdline").read()
        program.popen.stdin.close()
        program.popen.wait(20)
        followed.step()  # At the latest when it has something to say.
        wait_until(lambda: not is_alive(child), f"it runs after {end}")


def is_alive(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_who_waits_holds_no_lock(followed):
    """The first thread waits for a cut that does not come, while another one uses h5py and the server."""
    follower = followed.package.start("""
    import threading
    def other():
        for n in range(200):
            with h5py.File("other.h5", "w") as o:
                o["d"] = n
            with h5mirror.open(URL) as o:
                assert o.attrs["n"] == 0
        print("worked", flush=True)
    for f in h5mirror.follow(URL):
        n = int(f.attrs["n"])
        print(n, flush=True)
        if n: break
        thread = threading.Thread(target=other)
        thread.start()
    thread.join()
    """)
    assert follower.line() == "0" and follower.line() == "worked"
    followed.step()
    assert follower.wait().ok().out.split() == ["0", "worked", "1"]


def test_while_no_cut_is_made_the_server_is_asked_nothing(package):
    metrics = Metrics(package.site)
    followed = Followed(package)
    followers = [followed.follower(), followed.follower("every=0.1")]
    assert [each.line() for each in followers] == ["0", "0"]
    # Each has asked for a cut and read it. The server counts a call when it is over for the server too, and that the cut is
    # no longer needed is told after the file is given out.
    for method in ("WaitForCut", "ReadSnapshot", "CloseSnapshot"):
        wait_until(lambda: metrics.calls(method) == 2, f"two calls of {method}")
    asked = metrics.calls()
    time.sleep(3)
    assert metrics.calls() == asked
    followed.step()
    assert [each.line() for each in followers] == ["1", "1"]
    wait_until(lambda: metrics.calls() > asked, "a call for the next cut")


# Looks at each file a second time after a line that comes in.
LOOKS_TWICE = STATE + """
    for f in h5mirror.follow(URL, until_done=True):
        print(state(f), flush=True)
        sys.stdin.readline()
        try:
            print(state(f), flush=True)
        except (OSError, RuntimeError, KeyError) as error:
            assert "snapshot expired, reopen" in str(error), error
            print("expired", flush=True)
"""


@pytest.mark.limit(240)
@pytest.mark.parametrize("where", ["in_the_body", "between_two_files"])
@pytest.mark.site(options={"snapshot_keep": f"{KEEP_S}s"})
def test_a_program_that_was_stopped_goes_on_with_a_newer_cut(followed, where):
    follower = followed.package.start(LOOKS_TWICE, talks=True)
    assert follower.line() == "0"
    if where == "between_two_files":
        assert follower.ask("go on") == "0"
    with open(f"/proc/{follower.pid}/task/{follower.pid}/children") as children:
        child = int(children.read())
    follower.signal(signal.SIGSTOP)
    if where == "between_two_files":  # The program that it runs too, which is in a group of its own.
        os.kill(child, signal.SIGSTOP)
    followed.step("run 200")
    time.sleep(KEEP_S + 1.5)
    followed.step()
    follower.signal(signal.SIGCONT)
    os.kill(child, signal.SIGCONT)
    if where == "in_the_body":
        assert follower.ask("go on") in ("0", "expired")
    assert follower.line() == "201"
    followed.close()
    follower.ask("go on")
    assert follower.line() == "202"
    follower.popen.stdin.close()
    assert rest_of(follower)[-2:] == ["202", "202"]


def test_files_that_are_kept_open_differ(followed):
    followed.step()
    program = followed.package.start(STATE + """
    files = []
    for f in h5mirror.follow(URL, until_done=True, keep_open=True):
        files.append(f)
        print(state(f), flush=True)
    print(*[state(f) for f in files], flush=True)
    """)
    assert program.line() == "1"
    followed.step()
    assert program.line() == "2"
    followed.close()
    assert program.wait().ok().out.splitlines()[-1] == "1 2 3"


def test_at_rest_it_gives_the_newest_version_once(followed):
    followed.close()
    assert rest_of(followed.follower("until_done=True")) == ["1", "end"]
    assert rest_of(followed.follower("until_done=True, nth=5, every=60")) == ["1", "end"]


def test_a_file_that_does_not_exist_is_an_error_or_waited_for(package):
    assert package.raised("next(h5mirror.follow(URL))").startswith("FileNotFoundError [Errno 2]")
    assert package.raised("next(h5mirror.follow(URL, wait=True, idle_timeout=0.1))").startswith("TimeoutError")
    follower = package.start(FOLLOWER.replace("ARGUMENTS", "wait=True"))
    again = package.start(FOLLOWER.replace("ARGUMENTS", ""))
    assert again.wait().code == 1 and "FileNotFoundError" in again.err()
    followed = Followed(package)
    assert follower.line() == "0"
    followed.step()
    assert follower.line() == "1"


def test_a_file_that_is_removed_ends_it_or_is_waited_for(followed):
    once, waits = followed.follower(), followed.follower("wait=True")
    followed.step("run 20")
    followed.close()
    for follower in (once, waits):
        wait_until(lambda: follower.out().split()[-1:] == ["21"], "the last cut is not seen")
    followed.site.wait_for_no_lease("run.h5")
    followed.site.cli("rm", "run.h5").ok()
    removed = once.wait(90)
    assert removed.code == 1 and "FileNotFoundError: [Errno 2]" in removed.err, removed.err
    (followed.site.work / "run.h5").unlink()
    Followed(followed.package)
    wait_until(lambda: waits.out().split()[-1] == "0", "the new file is not seen")


def test_wrong_arguments_are_refused_at_once(package):
    for arguments, words in (
            ("URL + '@2'", "leave '@2' out"),
            ("URL + '@latest'", "leave '@latest' out"),
            ("'run.h5'", "it begins with none of these: h5mirror://HOST[:PORT]/NAME"),
            ("URL, server='node8'", "give one of them"),
            ("URL, nth=0", "nth=0: must be at least 1"),
            ("URL, every=-1", "every=-1: must be at least 0"),
            ("URL, after=-1", "after=-1: must be at least 0"),
            ("URL, every=float('nan')", "every=nan: must be at least 0"),
            ("URL, version=3", "version=3: what is followed is the newest cut")):
        said = package.raised(f"h5mirror.follow({arguments})")
        assert said.startswith("ValueError") and words in said, said
    nowhere = package.raised("h5mirror.follow(URL, wait=True)", PATH="/nowhere")
    assert nowhere.startswith("FileNotFoundError the program h5mirror is neither in this package nor in PATH"), nowhere


def test_a_server_that_was_never_there_is_an_error_that_names_it(package):
    said = package.raised("next(h5mirror.follow('h5mirror://127.0.0.1:1/run.h5', wait=True))")
    assert said.startswith("ConnectionError [Errno 113]") and "127.0.0.1:1" in said, said


def test_a_token_and_driver_keys_are_arguments(tmp_path, h5py_version):
    with secured(tmp_path, h5py_version) as (package, keys):
        assert package.py(f"""
    with h5py.File("run.h5", "w", driver="h5mirror", server=SERVER, root=os.getcwd(), {keys}) as f:
        f["d"] = 5
    for f in h5mirror.follow("h5mirror:///run.h5", server=SERVER, until_done=True, cache="8MiB", rdcc_nbytes=1 << 20, {keys}):
        print(f["d"][()])
    """) == "5\n"
        ca = keys.partition(",")[0]
        assert package.raised(f"next(h5mirror.follow(URL, {ca}, token='wrong'))").startswith("PermissionError [Errno 13]")


NOTEBOOK = paths.SOURCE / "client_vfd" / "python" / "examples" / "follow.ipynb"


def test_the_notebook_plots_what_its_writer_writes(bare_site):
    """With the environment of tests/python/requirements-notebook.txt: a kernel, matplotlib, and what executes notebooks."""
    tools = paths.CACHE / "venv-notebook" / "bin"
    assert tools.exists(), f"{tools.parent} is missing; ./dev setup makes it"
    executed = bare_site.directory / "executed.ipynb"
    env = Package(bare_site).env(H5MIRROR_SERVER=bare_site.address, PATH=f"{paths.BIN}:/usr/bin:/bin")
    bare_site.run([tools / "jupyter-execute", "--timeout=90", "--output", executed, NOTEBOOK], env=env, timeout=200).ok()
    cells = [cell for cell in json.loads(executed.read_text())["cells"] if cell["cell_type"] == "code"]
    *_, follows, rests = (cell["outputs"] for cell in cells)
    # A kernel sends what is printed by a clock of its own, so an output may begin or end within a line.
    printed = "".join("".join(each.get("text", "")) for each in follows)
    rows = [line.split()[1::2] for line in printed.splitlines()]
    assert len(rows) >= 2 and rows[-1][1] == "300", rows
    assert [int(cut) for cut, _ in rows] == sorted(int(cut) for cut, _ in rows), rows
    pictures = [each["data"]["image/png"] for each in follows if "image/png" in each.get("data", {})]
    assert len(pictures) == 1 and len(pictures[0]) > 10_000, "the last cut is plotted"
    assert "".join(rests[0]["text"]).split() == ["complete", "30"], rests
