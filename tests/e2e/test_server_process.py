"""h5mirrord as a process: exit codes, signals, systemd's notifications, and starting again on the same root."""

import os
import signal
import time

import pytest

from harness import hdf5, paths
from harness.mounts import private_mount
from harness.process import memory_kb, run, wait_until
from harness.server import Server

BIG_MIB = 256
STOP_TIMEOUT_S = 20


def watched(site, notify, watchdog_us: int) -> Server:
    """A second server beside the site's, on a root of its own, started as systemd would."""
    directory = site.directory / "watched"
    (directory / "root").mkdir(parents=True)
    return Server(directory / "root", directory,
                  prefix=("env", f"NOTIFY_SOCKET=@{notify.name}", f"WATCHDOG_USEC={watchdog_us}"))


def test_systemd_is_told_ready_alive_and_stopping(bare_site, notify):
    server = watched(bare_site, notify, watchdog_us=1_600_000)
    try:
        server.start()
        wait_until(lambda: "READY=1" in notify.read(), "no READY=1")
        assert "STOPPING=1" not in notify.lines
        before = notify.read().count("WATCHDOG=1")
        started = time.monotonic()
        wait_until(lambda: notify.read().count("WATCHDOG=1") >= before + 3, "no watchdog pings")
        # 3 pings at half of the period; a watchdog would have fired after 1.6 s without one.
        assert time.monotonic() - started < 3 * 1.6
        assert any(line.startswith("STATUS=0 sessions, ") for line in notify.lines), notify.lines
        server.stop()
        assert "STOPPING=1" in notify.read()
    finally:
        server.close()


def test_the_watchdog_is_fed_while_the_work_in_hand_is_finished(bare_site, notify):
    """A stop may take longer than WatchdogSec=."""
    bare_site.server.stop()
    server = Server(bare_site.root, bare_site.logs, options={"stop_timeout": f"{STOP_TIMEOUT_S}s"},
                    listen=bare_site.server.listen,
                    prefix=("env", f"NOTIFY_SOCKET=@{notify.name}", "WATCHDOG_USEC=400000"))
    bare_site.server = server.start()
    reader = start_stuck_reader(bare_site)
    server.process.signal(signal.SIGTERM)
    wait_until(lambda: "STOPPING=1" in notify.read(), "no STOPPING=1")
    before = notify.read().count("WATCHDOG=1")
    wait_until(lambda: notify.read().count("WATCHDOG=1") >= before + 5, "no watchdog pings while it stops", 5)
    assert server.running()
    reader.kill()
    assert server.process.wait(10).code == 0


def test_port_in_use_is_code_6_and_named(site):
    second_root = site.directory / "second"
    second_root.mkdir()
    second = Server(second_root, site.directory, listen=site.server.address)
    result = second.launch().wait(20)
    assert result.code == 6, result.describe()
    assert site.server.address in result.said and "in use" in result.said, result.describe()
    assert not second.port_file.exists()


def test_root_in_use_is_code_5_and_named(site):
    second = Server(site.root, site.directory)
    result = second.launch().wait(20)
    assert result.code == 5, result.describe()
    assert str(site.root) in result.said, result.describe()


def start_stuck_reader(site):
    """A process that reads a big version and has stopped in the middle of it: a call that does not end by itself.

    The file was created anew since: a tool on the server's machine copies a version of the head's own creation without a
    call.
    """
    for count in (BIG_MIB << 17, 1):
        site.py(f"""
            with h5py.File("big.h5", "w") as f:
                f["x"] = np.arange({count}, dtype="u8")
        """)
        site.settle("big.h5")
    out = site.directory / "stuck"
    out.mkdir()
    reader = site.start([paths.BIN / "h5mirror", "--server", site.server.address, "export", "big.h5@1",
                         out / "big.h5"], env=hdf5.plain_env(HOME=str(site.home)))
    wait_until(lambda: any(path.stat().st_size > 0 for path in out.iterdir()), "the export does not begin", every=0.001)
    reader.signal(signal.SIGSTOP)
    assert reader.running()
    return reader


HIDDEN = ["chown 1 /etc/h5mirror/h5mirrord.toml; chmod 0600 /etc/h5mirror/h5mirrord.toml",
          "chown 1 /etc/h5mirror; chmod 0700 /etc/h5mirror"]


@pytest.mark.parametrize("hide", HIDDEN, ids=["the file", "its directory"])
def test_it_does_not_run_without_a_configuration_that_it_may_not_read(tmp_path, hide):
    """An operator wrote the file under a umask of 077: a server without its tables would be open to all users."""
    make = """mkdir /etc/h5mirror; echo 'tokens_file = "/etc/h5mirror/tokens"' > /etc/h5mirror/h5mirrord.toml"""
    rights = "--bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search"
    (tmp_path / "root").mkdir()

    def check(*arguments):
        return run([*private_mount("-t tmpfs tmpfs /etc"), "sh", "-ec", f'{make}; {hide}; exec setpriv {rights} "$@"', "sh",
                    paths.BIN / "h5mirrord", "--root", tmp_path / "root", "--check-config", *arguments],
                   tmp_path, timeout=60, name="h5mirrord")

    refused = check()
    assert refused.code == 2, refused.describe()
    assert "/etc/h5mirror/h5mirrord.toml: Permission denied" in refused.err and "--config" in refused.err, refused.describe()
    check("--config", "/dev/null").ok()


@pytest.mark.site(options={"stop_timeout": f"{STOP_TIMEOUT_S}s"})
def test_second_sigterm_stops_at_once_and_loses_nothing(bare_site):
    site = bare_site
    reader = start_stuck_reader(site)
    site.keep("big.h5")
    started = time.monotonic()
    site.server.process.signal(signal.SIGTERM)
    wait_until(lambda: "finishing the work in hand" in site.server.log(), "no word of the stop")
    time.sleep(1)
    assert site.server.running(), "it did not wait for the reader"
    site.server.process.signal(signal.SIGTERM)
    result = site.server.process.wait(5)
    assert result.code == 7 and time.monotonic() - started < STOP_TIMEOUT_S, result.describe()
    assert "second signal" in result.said, result.describe()
    reader.kill()
    site.server.start()
    site.check_kept()


@pytest.mark.site(options={"stop_timeout": "2s"})
def test_a_reader_that_hangs_holds_up_a_stop_no_longer_than_stop_timeout(bare_site):
    site = bare_site
    reader = start_stuck_reader(site)
    started = time.monotonic()
    site.server.process.signal(signal.SIGTERM)
    result = site.server.process.wait(15)
    assert result.code == 0, result.describe()
    assert 1.5 < time.monotonic() - started < 10
    reader.kill()
    site.server.start()
    site.assert_mirrored("big.h5")


@pytest.mark.site(options={"stop_timeout": "2s"})
def test_a_tool_whose_call_the_stop_has_ended_names_the_server(bare_site):
    """The tool asks again, and no server listens there any more."""
    site = bare_site
    reader = start_stuck_reader(site)
    site.server.stop()
    reader.signal(signal.SIGCONT)
    result = reader.wait(30)
    assert result.code == 4, result.describe()
    assert f"h5mirror: {site.server.address}: " in result.err and "CANCELLED" not in result.err, result.describe()


@pytest.mark.site(options={"stop_timeout": "2s"})
def test_a_reader_whose_call_the_stop_has_ended_reads_on_after_the_restart(bare_site):
    """It stands still in the middle of a read, so the server can end the call only without a word of its own."""
    site = bare_site
    site.py(f"""
        with h5py.File("big.h5", "w") as f:
            f["x"] = np.arange({BIG_MIB << 17}, dtype="u8")
    """)
    site.settle("big.h5")
    reader = site.start(site.script("""
        with h5py.File("big.h5", "r") as f:
            print("open", flush=True)
            x = f["x"][:]
            print("sum", int(x.sum()), flush=True)
    """), config=site.config(mode="reader", ack=None, timeout="60s"))
    reader.wait_for_line("open")
    began_with = memory_kb(reader.pid, "VmRSS")
    wait_until(lambda: memory_kb(reader.pid, "VmRSS") > began_with + (32 << 10), "it does not read", every=0.001)
    reader.signal(signal.SIGSTOP)
    site.server.stop()
    site.server.start()
    assert "sum" not in reader.out(), "it was done before the stop"
    reader.signal(signal.SIGCONT)
    count = BIG_MIB << 17
    assert f"sum {count * (count - 1) // 2}" in reader.wait(120).ok().out


def test_a_reader_that_asks_nothing_holds_up_no_stop(bare_site):
    """It stands still, so it never hears of the end; gRPC would wait 20 s for it. A writer beside it has its last cut."""
    site = bare_site
    site.py("""
        with h5py.File("r.h5", "w") as f:
            f["x"] = np.arange(1000)
    """)
    reader = site.start(site.script("""
        f = h5py.File("r.h5", "r")
        f["x"][:]
        print("open", flush=True)
        time.sleep(600)
    """), config=site.config(mode="reader", ack=None))
    reader.wait_for_line("open")
    writer = site.start(site.script("""
        f = h5py.File("w.h5", "w")
        d = f.create_dataset("d", (1000,), dtype="i8")
        n = 0
        while not os.path.exists("enough"):
            n += 1
            d[:] = n
            f.flush()
            print("cut", n, flush=True)
        f.close()
    """), config=site.config(ack="durable", timeout="60s", on_outage="wait=60s"))
    writer.wait_for_line("cut 5")
    reader.signal(signal.SIGSTOP)
    site.server.stop(timeout=15)
    acked = writer.out().count("cut ")
    read = f"import h5py; print(h5py.File({str(site.head('w.h5'))!r})['d'][0])"
    assert int(run([site.python, "-c", read], site.directory, env=site.plain_env()).ok().out) >= acked
    site.server.start()
    writer.wait_for_line(f"cut {acked + 3}")
    site.local("enough").touch()
    writer.wait().ok()
    site.assert_mirrored("w.h5")


def test_killed_in_mid_session_it_starts_again_with_all_that_was_durable(site):
    """SIGKILL while a session has a durable version, a later cut and uncut bytes; no client comes back to help."""
    writer = site.start(site.script("""
        with h5py.File("s.h5", "w") as f:
            f["x"] = np.arange(100_000)
        f = h5py.File("s.h5", "r+")
        for n in range(1000):
            f["x"][:] = n
            f.flush()
            print("cut", n, flush=True)
            time.sleep(0.01)
    """))
    writer.wait_for_line("cut 20")
    noted = site.export("s.h5", 1)
    digest = hdf5.digest(noted)
    site.server.kill9()
    writer.kill()
    site.server.start()
    site.settle("s.h5")
    assert site.versions("s.h5")[0] == 1
    assert hdf5.digest(site.export("s.h5", 1)) == digest
    hdf5.assert_opens(site.head("s.h5"))
    assert not site.status("s.h5")["lease"]


@pytest.mark.limit(240)
@pytest.mark.site(options={"stop_timeout": "30s"})
def test_stop_with_much_left_to_apply_is_clean_and_the_next_start_goes_on(bare_site):
    """Durable cuts need not be in the head yet: a stop does not wait for that."""
    site = bare_site
    site.py(f"""
        for value in range(3):
            with h5py.File("big.h5", "a") as f:
                d = f.require_dataset("x", ({BIG_MIB << 17},), "u8")
                d[...] = value
    """, timeout=120, config=site.config(ack="durable", timeout="100s"))
    started = time.monotonic()
    site.server.stop(timeout=35)
    print(f"stopped after {time.monotonic() - started:.1f} s")
    site.server.start()
    site.assert_mirrored("big.h5")
    assert site.versions("big.h5") == [1, 2, 3]


def test_the_allocator_has_our_settings(tmp_path):
    """It finds them by a symbol's name, and says nothing where that is hidden."""
    said = run([paths.BIN / "h5mirrord", "--version"], tmp_path, env={**os.environ, "MALLOC_CONF": "stats_print:true"}).ok().err
    for setting in ("background_thread: true", "narenas: 1", "dirty_decay_ms: 100"):
        assert f"opt.{setting}" in said, said[:2000]
