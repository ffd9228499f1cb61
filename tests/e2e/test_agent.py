"""h5mirror-agent: readers of one host share what they read, do without it when it is gone, and programs that know
nothing of us read the newest cut as a plain file."""

import contextlib
import filecmp
import json
import os
import re
import shutil
import socket
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from harness import hdf5, mounts, paths
from harness.metrics import free_port
from harness.process import Process, run, wait_until
from harness.proxy import Proxy
from harness.site import Site
from test_live_reader import FOLLOW, LINKED, READER, Live, open_while_targets_go_on, start

AGENT = paths.BIN / "h5mirror-agent"
CUT_BYTES = 4 * (64 << 10)  # of the blocks that a step of Live changes, at most


class Agent:
    """One on this host. A reader goes through it with `agent=PATH` in its configuration."""

    def __init__(self, site, *arguments, server=None, env=None):
        self.site, self.socket = site, site.directory / "agent.sock"
        self.command = [AGENT, "--server", server or site.server.address, "--socket", self.socket, *arguments]
        self.env = env
        self.process = None

    def start(self):
        self.process = Process(self.command, self.site.logs, env=self.env or self.site.plain_env(), name="h5mirror-agent")
        self.site.beside.append(self.process)
        wait_until(lambda: "serves" in self.process.err() + self.process.out(), "the agent listens")
        return self

    def stop(self):
        """SIGTERM. Returns its totals: files, and cuts that came. It waits 1 s for connected readers."""
        self.process.signal(15)
        self.process.wait(20).ok()
        assert not self.socket.exists()
        done = re.findall(r"follows (\d+) files, (\d+) cuts came", self.process.err() + self.process.out())[-1]
        return [int(each) for each in done]


class Counted:
    """A site whose server counts the calls of each kind."""

    def __init__(self, site):
        self.port = free_port()
        site.server.stop()
        site.server.options["metrics_listen"] = f"127.0.0.1:{self.port}"
        site.server.start()

    def calls(self, method):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        return int(sum(float(line.split()[-1]) for line in lines
                       if "request_seconds_count" in line and f'method="{method}"' in line))

    def reads(self):
        return self.calls("ReadSnapshot") + self.calls("ReadVersion")


def look(site, agent, *options):
    """One reader, a process of its own."""
    return site.start([paths.hdf5_tool("h5dump"), *options, "run.h5"],
                      config=site.config(mode="reader", agent=agent.socket))


def stop_late(site, seconds, processes):
    """Goes on for so long, or until one reader has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and all(each.running() for each in processes):
        time.sleep(0.05)


def say(processes, word):
    for each in processes:
        each.popen.stdin.write(word.encode() + b"\n")
        each.popen.stdin.flush()


@pytest.mark.limit(240)
@pytest.mark.site(options={"snapshot_keep": "10m"})
def test_a_hundred_readers_cost_one_subscription_and_one_set(bare_site):
    """C programs, all of which have the file open at the same time, while its writer goes on."""
    site = bare_site
    counted = Counted(site)
    live = Live(site)
    with Proxy(site.server.address) as proxy:  # Carries what the server is asked by the agent, or by readers without it.
        def carried():
            return proxy.tell("totals")["to_client_bytes"]

        agent = Agent(site, server=proxy.address).start()
        config = site.config(mode="reader", agent=agent.socket, server=proxy.address)
        readers, held = [], []
        for n in range(10):
            ten = [site.start([paths.TEST_BIN / "e2e_holds", "run.h5"], config=config, talks=True) for _ in range(10)]
            assert [reader.line() for reader in ten] == [str(n)] * 10
            readers += ten
            held += [str(n)] * 10
            live.step()
        say(readers, "read")
        live.step(5)
        assert [reader.line() for reader in readers] == held
        say(readers, "again")
        live.step(5)
        seen = {reader.line() for reader in readers}
        assert seen <= set(map(str, range(15, 21)))
        say(readers, "again")
        assert [reader.line() for reader in readers] == ["20"] * 100
        size = site.local("run.h5").stat().st_size
        print(f"{carried()} bytes of {size}, {counted.reads()} reads")
        # Each cut that one of them met while the writer went on brings the blocks that it changed, once. A reader that
        # waited for the agent in vain, as one may where the machine stands still, went to the server: it has a set of
        # its own of each open, and of the read.
        alone = proxy.tell("totals")["connections"] - 1  # The agent has one.
        print(f"{alone} readers went to the server")
        shared = 2 * size + len(seen) * CUT_BYTES
        assert size < carried() < shared + alone * 4 * size, "what one has read the others got from the agent"
        before = carried()
        assert live.reader(agent="off", server=proxy.address)[1] == "20"
        assert carried() - before > 400_000 * 8, "a reader without it costs a set of its own"
        assert counted.calls("FollowFile") == 0
        for reader in readers:
            reader.popen.stdin.close()
            reader.wait().ok()
        assert agent.stop()[0] == 1
        wait_until(lambda: counted.calls("FollowFile") == 1, "one subscription")


def mapped(process):
    """The lines of the process's map that are of an agent's memory."""
    with open(f"/proc/{process.pid}/maps") as maps:
        return [line for line in maps if "memfd:h5mirror-cut" in line]


def named_memory(process):
    """Shared memory with a name, which any program could open, that the process has mapped or open."""
    directory = Path(f"/proc/{process.pid}")
    names = (directory / "maps").read_text().splitlines()
    for descriptor in (directory / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(descriptor))
    return [name for name in names if "/dev/shm" in name]


def test_readers_map_one_copy_of_the_metadata_that_outlives_the_agent(wheel):
    counted = Counted(wheel)
    live = Live(wheel)
    live.step(3)
    agent = Agent(wheel).start()
    look(wheel, agent).wait().ok()
    readers = [live.reader(agent=agent.socket, cache="1MiB") for _ in range(4)]
    assert [seen for _, seen in readers] == ["3"] * 4
    shares = [mapped(reader) for reader, _ in readers]
    assert all(shares), "each has it mapped"
    assert all(line.split()[1].startswith("r--s") for share in shares for line in share), "and may only read it"
    assert len({tuple(sorted(line.split()[4] for line in share)) for share in shares}) == 1, "all the same"
    assert not mapped(live.writer)
    for process in (agent.process, *(reader for reader, _ in readers)):
        assert not named_memory(process)
    agent.process.kill()
    live.step(2)
    assert all(reader.ask("read") == "3" for reader, _ in readers)
    agent.start()
    assert all(reader.ask("read") == "3" for reader, _ in readers)
    assert all(reader.ask("again") == "5" for reader, _ in readers)
    agent.stop()
    assert all(reader.ask("read") == "5" for reader, _ in readers)
    assert not list(agent.socket.parent.glob("*.maps*")) and not list(agent.socket.parent.glob(".h5mirror-agent*"))
    assert counted.calls("FollowFile") >= 1


def has_grpc(process):
    """Whether gRPC has begun in the process."""
    return any(name.read_text().startswith("grpc_") for name in Path(f"/proc/{process.pid}/task").glob("*/comm"))


def test_an_open_and_its_map_cost_no_call_of_grpc(bare_site):
    live = Live(bare_site)
    live.step(3)
    agent = Agent(bare_site).start()
    readers = [live.reader(agent=agent.socket) for _ in range(3)]
    assert [seen for _, seen in readers] == ["3"] * 3 and all(mapped(reader) for reader, _ in readers)
    assert not any(has_grpc(reader) for reader, _ in readers)
    plain, _ = live.reader(agent="off")
    assert has_grpc(plain)
    live.step()
    assert all(reader.ask("again") == "4" for reader, _ in readers), "the newest cut of that moment"
    agent.stop()


def answer_nonsense(listener):
    """To each question, once it is there, until `listener` is shut down: an end before it would be no answer."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(4096)
            connection.sendall(b"nonsense" * 10)


def open_until_asked(listener, again):
    """The first question's connection. A reader that waited in vain just before asks nobody for 10 s."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        again()
        with contextlib.suppress(BlockingIOError):
            return listener.accept()[0]
    raise AssertionError("the reader never asked again")


def test_readers_do_without_the_map(bare_site):
    live = Live(bare_site)
    agent = Agent(bare_site).start()
    maps = agent.socket.with_name("agent.sock.maps")
    assert maps.stat().st_mode & 0o777 == 0o600
    maps.unlink()
    reader, seen = live.reader(agent=agent.socket)
    assert seen == "0" and not mapped(reader)
    with socket.socket(socket.AF_UNIX) as rude:
        rude.bind(str(maps))
        rude.listen()
        live.step()
        answering = threading.Thread(target=answer_nonsense, args=(rude,))
        answering.start()
        assert reader.ask("again") == "1" and not mapped(reader)
        rude.shutdown(socket.SHUT_RDWR)
        answering.join()
    with socket.socket(socket.AF_UNIX) as mute:  # One that listens and never answers: it is let alone for a while.
        maps.unlink()
        mute.bind(str(maps))
        mute.listen()
        mute.setblocking(False)
        steps = iter(range(2, 10_000))

        def again():
            n = next(steps)
            live.step()
            assert reader.ask("again") == str(n) and not mapped(reader)

        asked = open_until_asked(mute, again)
        begin = time.monotonic()
        again()
        if time.monotonic() - begin < 5:  # The reader waits for 1 s, and asks nothing for 10 s from its question on.
            with pytest.raises(BlockingIOError):
                mute.accept()
        asked.close()
    assert agent.stop()[0] == 1


def test_each_open_sees_the_newest_cut_and_stays_there(wheel):
    live = Live(wheel)
    agent = Agent(wheel).start()
    pinned, first = live.reader(agent=agent.socket, cache="1MiB")
    assert first == "0"
    reader, _ = live.reader(agent=agent.socket)
    for n in range(1, 16):
        live.step()
        assert reader.ask("again") == str(n)
        assert pinned.ask("read") == "0"
    pinned.kill()
    reader.kill()
    files, cuts = agent.stop()
    assert files == 1 and cuts > 3


def test_at_rest_it_reads_the_version_also_after_a_server_restart(wheel):
    live = Live(wheel)
    agent = Agent(wheel).start()
    early, _ = live.reader(agent=agent.socket)
    assert live.writer.ask("close") == "closed"
    wheel.settle("run.h5")
    log = wheel.directory / "reader.log"
    reader, _ = live.reader(agent=agent.socket, log=log, cache="1MiB")
    assert "version 1 of run.h5" in log.read_text()
    wheel.server.kill9()
    wheel.server.start()
    assert reader.ask("read") == "0" and reader.ask("again") == "0"
    wheel.py("with h5py.File('run.h5', 'a') as f: f.attrs['n'] = 0; f.attrs['more'] = 1")
    assert reader.ask("again") == "0"
    early.kill()
    reader.kill()
    agent.stop()


@pytest.mark.limit(150)
@pytest.mark.site(options={"snapshot_keep": "4s"})
def test_killing_it_under_eight_readers_is_no_error(bare_site):
    stops = [bare_site.directory / name for name in ("stop-readers", "stop-writer")]
    writer = bare_site.start([bare_site.python, paths.PROGRAMS / "stamp.py", "run.h5", "latest", 0.1, stops[1]])
    bare_site.wait_for_cut("run.h5")
    agent = Agent(bare_site).start()
    readers = [bare_site.start([bare_site.python, paths.PROGRAMS / "stamp_reader.py", "run.h5", 3, seed, stops[0]],
                               config=bare_site.config(mode="reader", agent=agent.socket, cache="1MiB"))
               for seed in range(8)]
    for _ in range(2):
        stop_late(bare_site, 7, readers)
        agent.process.kill()
        stop_late(bare_site, 3, readers)
        agent.start()  # Over the socket that the former one left.
    stop_late(bare_site, 12, readers)
    stops[0].touch()
    results = [json.loads(reader.wait(90).ok().out) for reader in readers]
    assert all(each["cuts"] > 3 for each in results), results
    files, cuts = agent.stop()
    assert files == 1 and cuts > 3, "the readers came back to it"
    stops[1].touch()
    writer.wait(60).ok()
    bare_site.assert_mirrored("run.h5")


def test_one_that_stands_still_costs_time_and_no_error(bare_site):
    live = Live(bare_site)
    agent = Agent(bare_site).start()
    reader, _ = live.reader(agent=agent.socket, cache="1MiB")
    agent.process.signal(19)
    live.step(2)
    assert reader.ask("read") == "0"
    assert reader.ask("again") == "2"
    agent.process.signal(18)


def test_readers_find_it_when_it_comes_and_are_refused_for_other_servers(bare_site):
    live = Live(bare_site)
    directory = bare_site.directory / "run"
    (directory / "h5mirror").mkdir(parents=True)
    agent = Agent(bare_site)
    agent.socket = directory / "h5mirror" / "agent.sock"
    env = {**bare_site.plain_env(), "XDG_RUNTIME_DIR": str(directory)}
    command = bare_site.script("""
        for line in sys.stdin:
            with h5py.File("run.h5", "r") as f: print(int(f.attrs["n"]), flush=True)
    """)
    reader = bare_site.start(command, talks=True, config=bare_site.config(mode="reader"), XDG_RUNTIME_DIR=str(directory))
    assert reader.ask("open") == "0"
    agent.command = [AGENT, "--server", "127.0.0.1:1"]
    agent.env = env
    agent.start()
    live.step()
    assert reader.ask("open") == "1"
    assert agent.stop()[0] == 0, "it is not set up for that server"
    agent.command = [AGENT, "--server", bare_site.server.address]
    agent.start()
    live.step()
    assert reader.ask("open") == "2"
    time.sleep(11)  # Readers leave a refusing one alone for some seconds.
    assert reader.ask("open") == "2"
    assert agent.stop()[0] == 1


@pytest.mark.limit(150)
def test_a_published_file_is_one_cut_at_any_moment(bare_site):
    stops = [bare_site.directory / name for name in ("stop-readers", "stop-writer")]
    live = bare_site.directory / "live"
    live.mkdir()
    agent = Agent(bare_site, "--publish", live, "run.h5", "sub/other.h5").start()
    writer = bare_site.start([bare_site.python, paths.PROGRAMS / "stamp.py", "run.h5", "latest", 0.05, stops[1]])
    published = live / "run.h5"
    wait_until(published.exists, "it is published", 30)
    readers = [bare_site.start([bare_site.python, paths.PROGRAMS / "stamp_reader.py", published, 1, seed, stops[0]],
                               env=bare_site.plain_env()) for seed in range(2)]
    for _ in range(4):
        stop_late(bare_site, 3, readers)
        hdf5.assert_opens(published)
    stops[0].touch()
    results = [json.loads(reader.wait(60).ok().out) for reader in readers]
    assert all(each["cuts"] > 3 for each in results), results
    stops[1].touch()
    writer.wait(60).ok()
    wait_until(lambda: filecmp.cmp(published, bare_site.local("run.h5"), shallow=False), "the last cut is published")
    assert published.stat().st_mode & 0o777 == 0o644
    # A file that comes late, in a directory.
    (bare_site.work / "sub").mkdir()
    bare_site.py("with h5py.File('sub/other.h5', 'w') as f: f['x'] = np.arange(100_000)")
    other = live / "sub" / "other.h5"
    wait_until(lambda: other.exists() and filecmp.cmp(other, bare_site.work / "sub" / "other.h5", shallow=False),
               "the second file is published")
    agent.stop()
    assert [each.name for each in live.rglob(".*")] == [], "nothing is left beside them"


def test_it_goes_on_when_the_server_was_restarted(wheel):
    live = Live(wheel, flush="sync")
    agent = Agent(wheel).start()
    reader, _ = live.reader(agent=agent.socket)
    live.step(2)
    assert reader.ask("again") == "2"
    wheel.settle("run.h5")  # Else the server may no longer know the file.
    wheel.server.kill9()
    wheel.server.start()
    live.step()
    wait_until(lambda: reader.ask("again") == "3", "the writer's cut arrives")
    for n in range(4, 9):
        live.step()
        wait_until(lambda: reader.ask("again") == str(n), "the writer's cut arrives")
    reader.kill()
    assert agent.stop()[0] == 1


def test_who_may_connect_reads_with_its_token(tmp_path):
    secrets = tmp_path / "secrets"
    run([paths.BIN / "h5mirrord", "init", "--dir", secrets, "--host", "127.0.0.1"], tmp_path).ok()
    site = Site(tmp_path, options={"tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key",
                                   "tokens_file": secrets / "tokens"})
    try:
        site.server.start()
        keys = {"ca": secrets / "ca.pem", "token": f"@{secrets / 'token'}"}
        live = Live(site, **keys)
        agent = Agent(site, "--ca", keys["ca"], "--token", keys["token"]).start()
        assert agent.socket.stat().st_mode & 0o777 == 0o600
        _, seen = live.reader(agent=agent.socket, ca=keys["ca"])
        assert seen == "0", "it has no token of its own"
        refused = site.run([paths.hdf5_tool("h5dump"), "run.h5"],
                           config=site.config(mode="reader", agent="off", ca=keys["ca"]))
        assert refused.code != 0
        agent.stop()
    finally:
        site.close()


def test_what_a_root_leads_to_is_of_the_moment_of_its_open(wheel):
    """Links and virtual datasets, as in test_live_reader.py: never of a later cut than the file that leads to them."""
    writer = start(wheel, LINKED, reading=False)
    writer.ask("0")
    wheel.settle("rest.h5")
    agent = Agent(wheel).start()
    reader = start(wheel, FOLLOW, agent=agent.socket)
    names = ("link", "vraw", "rest", "vrest")
    assert [reader.ask(f"seen('{name}')") for name in names] == ["1", "1", "7", "7"]
    for now in open_while_targets_go_on(writer, reader):
        assert [reader.ask(f"seen('{name}')") for name in names] == [now] * 2 + ["7", "7"]
    assert mapped(reader), "it reads through the agent"
    reader.kill()
    assert agent.stop()[0] >= 1


def test_systemd_is_told_ready_alive_and_stopping(bare_site, notify):
    live = Live(bare_site)
    agent = Agent(bare_site, env={**bare_site.plain_env(), "NOTIFY_SOCKET": f"@{notify.name}"})
    agent.start()
    wait_until(lambda: notify.read(), "it tells nothing")
    assert notify.lines[0] == "READY=1" and agent.socket.exists()
    reader, _ = live.reader(agent=agent.socket)
    wait_until(lambda: notify.read().count("WATCHDOG=1") >= 2, "no watchdog pings")
    wait_until(lambda: any(line.startswith("STATUS=follows 1 files, ") for line in notify.read()), "no status")
    reader.kill()
    assert "STOPPING=1" not in notify.lines
    agent.stop()
    assert notify.read()[-1] == "STOPPING=1"


def test_readers_find_the_one_for_all_users_after_their_own(bare_site):
    """At the socket of its unit, in a /run of the test's own."""
    Live(bare_site)
    host = Agent(bare_site)
    host.command = [*mounts.private_run(), AGENT, "--server", bare_site.server.address,
                    "--socket", "/run/h5mirror-agent/agent.sock"]
    host.start()
    host.socket = Path(f"/proc/{host.process.pid}/root/run/h5mirror-agent/agent.sock")
    assert host.socket.exists()
    inside = mounts.beside(host.process.pid, bare_site.work)

    def read(*prefix, **env):
        reader = bare_site.start([*prefix, *bare_site.script(READER)], config=bare_site.config(mode="reader"), talks=True,
                                 **env)
        assert reader.line() == "0"
        found = mapped(reader)
        reader.kill()
        return found

    assert not read(), "there is none outside"
    read(*inside)  # With the first one it learns what there is to map.
    assert read(*inside)
    directory = bare_site.directory / "run"
    directory.mkdir()
    own = Agent(bare_site, env={**bare_site.plain_env(), "XDG_RUNTIME_DIR": str(directory)})
    own.socket = directory / "h5mirror" / "agent.sock"
    own.command = [AGENT, "--server", bare_site.server.address]
    own.start()
    read(*inside, XDG_RUNTIME_DIR=str(directory))
    assert own.stop()[0] == 1
    # Without XDG_RUNTIME_DIR, as after `su`, in the home: a directory that is made for the user alone.
    own.env = {key: value for key, value in bare_site.plain_env().items() if key != "XDG_RUNTIME_DIR"}
    own.socket = bare_site.home / ".local" / "state" / "h5mirror" / "agent.sock"
    own.start()
    assert own.socket.parent.stat().st_mode & 0o777 == 0o700
    read(*inside, XDG_RUNTIME_DIR="")
    assert own.stop()[0] == 1
    assert host.stop()[0] == 1


def test_it_says_what_is_wrong_and_ends(tmp_path, bare_site):
    def ends_with(code, text, *arguments):
        result = run([AGENT, *arguments], tmp_path, env=bare_site.plain_env())
        assert result.code == code and text in result.said, result.describe()

    ends_with(0, "h5mirror-agent", "--version")
    ends_with(0, "--publish", "--help")
    ends_with(2, "--cash", "--cash", "1")
    ends_with(2, "16 MiB", "--cache", "1", "--socket", "/tmp/x")
    ends_with(2, "open /nonexistent: No such file", "--config", "/nonexistent")
    ends_with(0, "OK", "--check-config", "--socket", "/tmp/x")
    agent = Agent(bare_site).start()
    ends_with(6, "another agent is there", "--socket", agent.socket)
    agent.stop()


def test_what_is_published_may_be_read_by_all_whatever_the_umask(bare_site):
    live = bare_site.directory / "live"
    (bare_site.work / "a" / "b").mkdir(parents=True)
    bare_site.py("with h5py.File('a/b/run.h5', 'w') as f: f['x'] = np.arange(10)")
    agent = Agent(bare_site, "--publish", live, "a/b/run.h5")
    before = os.umask(0o077)  # As in its unit.
    try:
        agent.start()
    finally:
        os.umask(before)
    published = live / "a" / "b" / "run.h5"
    wait_until(published.exists, "it is published", 30)
    assert [path.stat().st_mode & 0o777 for path in (live, live / "a", live / "a" / "b")] == [0o755] * 3
    assert published.stat().st_mode & 0o777 == 0o644
    assert agent.socket.stat().st_mode & 0o777 == 0o600
    agent.stop()


@pytest.mark.parametrize("through", ["agent", "server"])
def test_another_file_that_takes_the_name_is_not_mixed_up(wheel, through):
    def write(content):
        wheel.py(f"with h5py.File('run.h5', 'w') as f: f.attrs['n'] = {content}; f['x'] = np.full(100_000, {content})")
        wheel.wait_for_no_lease("run.h5")
        return wheel.status("run.h5")

    agent = Agent(wheel).start()
    first = write(1)
    reader = wheel.start(wheel.script("""
        opened = []
        for line in sys.stdin:
            opened.append(h5py.File("run.h5", "r"))
            f = opened[-1]
            print(int(f.attrs["n"]), int(f["x"][0]), int(f["x"][99_999]), flush=True)
    """), talks=True, config=wheel.config(mode="reader", agent=agent.socket if through == "agent" else "off"))
    assert reader.ask("open") == "1 1 1"
    wheel.cli("rm", "run.h5").ok()
    for path in wheel.work.glob("run.h5*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    second = write(2)
    assert second["last_cut"] == first["last_cut"], "the numbers say that it is the same"
    assert reader.ask("open") == "2 2 2"
    reader.kill()
    agent.stop()
