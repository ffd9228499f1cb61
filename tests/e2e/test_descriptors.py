"""Programs that were started with closed standard streams, or whose output is not read: our messages never land in a
file, and never end a program."""

import os
import shutil
import subprocess

import pytest

from harness import hdf5, paths
from harness.process import run
from harness.site import Site

AWAY = "127.0.0.1:1"  # No server listens there, so each program gets a message.
WRITE = """
    with h5py.File("r.h5", "w") as f:
        f["x"] = np.arange(1000)
"""


@pytest.fixture
def site(bare_site):
    """These tests need no history."""
    return bare_site


def without(streams: str, command: list) -> list:
    """The command, as a shell starts it without some streams."""
    return ["sh", "-c", f'exec "$@" {streams}', "sh", *command]


def test_what_people_are_told_does_not_land_in_a_file(site):
    command, log = without("2>&-", site.script(WRITE)), site.work / "told.log"
    site.run(command, config=site.config(server=AWAY, timeout="2s", log=log)).ok()
    assert "r.h5" in log.read_text()
    mirrored = site.local("r.h5").read_bytes()
    site.run(command, env=site.plain_env()).ok()
    assert mirrored == site.local("r.h5").read_bytes()
    assert hdf5.dump(site.local("r.h5"))


@pytest.mark.parametrize("streams, closes", [("2>&-", ""), ("", "os.close(2)")])
def test_nor_in_a_file_that_is_opened_later(site, streams, closes):
    """A daemon closes standard error at some time. The next file gets its number."""
    site.run(site.script(WRITE), env=site.plain_env()).ok()
    log = site.work / "told.log"
    site.run(without(streams, site.script(f"""
        h5py.File("r.h5").close()
        {closes}
        with open("results.csv", "w") as results:
            assert results.fileno() == 2
            with h5py.File("later.h5", "w") as f:
                f["x"] = np.arange(1000)
            print("1,2", file=results)
    """)), config=site.config(server=AWAY, timeout="2s", log=log)).ok()
    assert "goes on locally" in log.read_text()
    assert (site.work / "results.csv").read_text() == "1,2\n"


@pytest.mark.parametrize("keys", [{"server": "embedded"}, {"mode": "remote"}])
def test_nor_with_other_modes(site, keys):
    command = without("2>&-", site.script(WRITE))
    site.run(command, config=site.config(**keys)).ok()
    if keys == {"mode": "remote"}:
        site.settle("r.h5")
    assert hdf5.dump(site.head("r.h5") if keys == {"mode": "remote"} else site.local("r.h5"))


def test_a_line_that_nobody_reads_ends_no_program(site):
    """Python ignores SIGPIPE. Most programs do not."""
    done = site.py("""
        import signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        reader, writer = os.pipe()
        os.dup2(writer, 2)
        os.close(reader)
        with h5py.File("r.h5", "w") as f:
            f["x"] = np.arange(1000)
        print("done")
    """, config=site.config(token="@/none", log=site.work / "told.log"))
    assert done.out == "done\n" and "/none" in (site.work / "told.log").read_text()


def test_a_log_at_the_limit_of_a_file_ends_no_program(site):
    """`ulimit -f`; Python ignores SIGXFSZ."""
    log = site.work / "told.log"
    log.write_text("x" * 100_000)
    done = site.py("""
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        with h5py.File("r.h5", "w") as f:
            f["x"] = np.arange(1000)
        print("done")
    """, config=site.config(server=AWAY, timeout="2s", log=log))
    assert done.out == "done\n"


def test_tools_print_into_no_file_that_they_open(site):
    site.py(WRITE)
    site.settle("r.h5")
    whole = site.export("r.h5", 1)
    env = site.env(H5MIRROR_SERVER=site.address)

    def tool(name: str, *arguments) -> None:
        run(without("<&- >&- 2>&-", [paths.BIN / name, *arguments]), site.logs, env=env, cwd=site.work, timeout=60)

    tool("h5mirror", "export", "r.h5@1", "out.h5")
    assert (site.work / "out.h5").read_bytes() == whole.read_bytes()
    shutil.copy(whole, site.work / "edited.h5")
    tool("h5edit", "-c", "CREATE /x note {{2.5}}; SHOW /x note;", "edited.h5")
    assert b'ATTRIBUTE "note"' in hdf5.dump(site.work / "edited.h5")
    site.local("r.h5").unlink()
    tool("h5mirror", "recover", "r.h5")
    assert site.local("r.h5").read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("words", [["h5mirror", "ls"], ["h5mirror", "--help"], ["h5mirror", "export", "r.h5@1", "-"],
                                   ["h5mirrord", "--help"], ["h5mirror-agent", "--help"]], ids=" ".join)
def test_output_that_a_full_disk_loses_is_an_error(site, words):
    """The reason is that of the last write: nobody knows it where an earlier one has failed, as of a long help."""
    if "export" in words:
        site.py(WRITE)
        site.settle("r.h5")
    done = run(without(">/dev/full", [paths.BIN / words[0], *words[1:]]), site.logs,
               env=site.env(H5MIRROR_SERVER=site.address), cwd=site.work)
    reason = "" if "--help" in words else "No space left on device"
    assert done.code == 1 and "standard output" in done.err and reason in done.err, done.describe()


@pytest.mark.parametrize("kind, is_plain", [("dumb", True), ("xterm", False)])
def test_a_terminal_without_codes_gets_plain_lines(site, kind, is_plain):
    site.py(WRITE)
    ours, its = os.openpty()
    with open(ours, "rb", buffering=0) as terminal:
        subprocess.run([paths.BIN / "h5mirror", "ls"], stdout=its, check=True, timeout=60,
                       env=site.env(H5MIRROR_SERVER=site.address, TERM=kind))
        os.close(its)
        shown = b""
        while b"r.h5" not in shown:
            shown += terminal.read(4096)
    assert b"r.h5" in shown and (b"\x1b" not in shown) == is_plain, shown


def test_a_token_that_could_not_be_shown_is_told(site):
    done = run(without(">/dev/full", [paths.BIN / "h5mirrord", "token", "add", "anna", "--tokens-file", site.work / "tokens"]),
               site.logs)
    assert done.code == 1 and "No space left on device. The token is lost" in done.err, done.describe()
    assert "h5mirrord token rotate anna" in done.err and "only time that the token is shown" not in done.err


def test_a_server_without_streams_logs_into_no_file_of_its_root(tmp_path):
    site = Site(tmp_path, options={"log_level": "debug"}, prefix=tuple(without("<&- >&- 2>&-", [])))
    try:
        site.server.start()
        site.py(WRITE)
        site.assert_mirrored("r.h5")
        site.server.stop()
    finally:
        site.close()
    for each in site.root.rglob("*"):
        assert each.is_dir() or b" info: " not in each.read_bytes(), each


TAKES_ALL = """
    os.closerange(3, 4096)
    own = [open(f"own-{n}", "w") for n in range(40)]  # With the numbers that were closed.
"""
KEEPS_ALL = """
    for n, each in enumerate(own):
        print(n, file=each)
        each.close()  # An error where another one has closed it.
    print("end", flush=True)
"""


def check_own(site, done) -> None:
    """The program has ended well, and each of its files has only the bytes that it wrote."""
    assert done.out == "end\n", done.describe()
    for n in range(40):
        assert (site.work / f"own-{n}").read_text() == f"{n}\n"


@pytest.mark.parametrize("fork", ["", "if os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))"],
                         ids=["in the program", "in a daemon"])
def test_a_program_that_closes_what_it_did_not_open_goes_on(site, fork):
    log = site.work / "told.log"
    done = site.py(WRITE + f"    {fork}" + TAKES_ALL + WRITE.replace("r.h5", "after.h5") + KEEPS_ALL,
                   config=site.config(log=log))
    check_own(site, done)
    assert "closed descriptors that it did not open" in log.read_text()
    site.settle("r.h5")
    site.assert_mirrored("r.h5")
    assert hdf5.dump(site.local("after.h5"))
    assert [file["name"] for file in site.json("ls")["files"]] == ["r.h5"]


# Each kind takes 40 descriptors, with numbers that were gRPC's, and says later whether nobody else has used them.
KINDS = {
    "files": """
    def take():
        return [open(f"own-{n}", "w") for n in range(40)]

    def check(own):
        for n, each in enumerate(own):
            print(n, file=each)
            each.close()
            assert open(f"own-{n}").read() == f"{n}\\n", n
    """,
    "sockets": """
    def take():
        return [each for _ in range(20) for each in socket.socketpair()]

    def check(own):
        for each in own:
            each.setblocking(False)
            try:
                sys.exit(f"{each} got {each.recv(100)}")
            except BlockingIOError:
                pass
    """,
    "epoll": """
    ready = os.eventfd(1)

    def take():
        own = [select.epoll() for _ in range(40)]
        for each in own:
            each.register(ready, select.EPOLLIN)
        return own

    def check(own):
        for each in own:
            assert each.poll(0) == [(ready, select.EPOLLIN)]
    """,
}
LIVES_ON = """
    def opened():
        for each in os.listdir("/proc/self/fd"):
            try:
                yield int(each), os.readlink(f"/proc/self/fd/{each}")
            except OSError:
                pass  # That of the directory.

    with h5py.File(NAME, "w") as f:
        f["x"] = np.arange(1000)
        f.flush()
        os.closerange(min(fd for fd, name in opened() if "memfd:h5mirror" in name), 4096)
        own = take()
        time.sleep(20)  # For gRPC's timers, which nobody can ask.
        check(own)
        f["y"] = np.arange(1000)
    print("end", flush=True)
"""


@pytest.mark.skipif(not paths.TEST_ALL, reason="gRPC's timers take 15 s: a keepalive, and its end without an answer")
def test_and_grpc_uses_none_of_its_numbers_later(site):
    log = site.work / "told.log"
    programs = {kind: site.start(site.script(f"\n    import select, socket\n    NAME = '{kind}.h5'" + functions + LIVES_ON),
                                 config=site.config(log=log)) for kind, functions in KINDS.items()}
    for kind, program in programs.items():
        done = program.wait().ok()
        assert done.out == "end\n", done.describe()
        assert hdf5.dump(site.local(f"{kind}.h5"))
    assert log.read_text().count("closed descriptors that it did not open") >= len(KINDS)


ENDS_GRPC = """
    def sends():
        return any(open(f"/proc/self/task/{each}/comm").read() == "h5m-sender\\n" for each in os.listdir("/proc/self/task"))

    while sends():  # A fork ends it; it begins again for sessions that it has still to let go.
        os.fork() or os._exit(0)
        time.sleep(0.2)
"""


@pytest.mark.parametrize("kind", ["sockets", "epoll"])
@pytest.mark.parametrize("before", ["", ENDS_GRPC], ids=["with gRPC", "after its end"])
def test_a_fork_uses_none_of_them(site, kind, before):
    """gRPC keeps its epoll set past its end, and a child would make that anew."""
    done = site.py("\n    import select, socket" + KINDS[kind] + WRITE + before + f"""
    os.closerange({"ready + 1" if kind == "epoll" else 3}, 4096)
    own = take()
    child = os.fork()
    if child:
        assert os.waitpid(child, 0) == (child, 0)
    check(own)
    print("end", flush=True)
    """, config=site.config(log=site.work / "told.log"))
    assert done.out == "end\nend\n", done.describe()


def test_so_does_one_that_reads(site):
    site.py(WRITE)
    site.settle("r.h5")
    read = 'assert h5py.File("r.h5")["x"][7] == 7'
    check_own(site, site.py(f"""
    {read}
    {TAKES_ALL}
    try:
        {read}
    except OSError:
        pass
    else:
        sys.exit("it read by gRPC")
    {KEEPS_ALL}
    """, config=site.config(mode="reader")))


def test_a_program_without_descriptors_goes_on(site):
    """gRPC aborts the program that has none for it. Once there are some, files are mirrored."""
    done = site.py("""
        import resource
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        taken = []
        for left in range(34):  # After each file there is one more.
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            lowest = os.dup(0)
            os.close(lowest)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + left, most))
            try:
                with h5py.File(f"few-{left}.h5", "w") as f:
                    f["x"] = left
            except OSError as error:
                assert "Too many open files" in str(error), error
                continue
            with h5py.File(f"few-{left}.h5") as f:
                assert f["x"][()] == left
            taken.append(left)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
        with h5py.File("many.h5", "w") as f:
            f["x"] = 1
        print(len(taken) > 20)
    """, config=site.config(log=site.work / "told.log"))
    assert done.out == "True\n"
    assert "raise `ulimit -n`" in (site.work / "told.log").read_text()
    site.assert_mirrored("many.h5")
