"""h5mirror-agent --publish into a directory that others can write: their entries are replaced and never followed."""

import filecmp

from harness.process import wait_until
from test_agent import Agent


def equal(published, local) -> bool:
    return published.is_file() and not published.is_symlink() and filecmp.cmp(published, local, shallow=False)


def test_links_that_others_have_put_there_are_replaced_or_refused(bare_site):
    site = bare_site
    live, victim, outside = (site.directory / name for name in ("live", "victim", "outside"))
    for each in (live, outside):
        each.mkdir()
    victim.write_bytes(b"not yours" * 1000)
    for name in (".run.h5.h5m-part", "run.h5"):
        (live / name).symlink_to(victim)
    (live / "sub").symlink_to(outside)
    (site.work / "sub").mkdir()
    site.py("for name in ('run.h5', 'sub/other.h5'): h5py.File(name, 'w')['x'] = np.arange(100_000)")
    agent = Agent(site, "--publish", live, "run.h5", "sub/other.h5").start()
    wait_until(lambda: equal(live / "run.h5", site.local("run.h5")), "it is published")
    wait_until(lambda: "sub is a symbolic link or no directory" in agent.process.out() + agent.process.err(),
               "the link is refused")
    assert victim.read_bytes() == b"not yours" * 1000 and victim.stat().st_mode & 0o777 != 0o600
    assert list(outside.iterdir()) == []
    (live / "sub").unlink()
    wait_until(lambda: equal(live / "sub" / "other.h5", site.work / "sub" / "other.h5"), "the other one is published, too")
    agent.stop()


def test_a_file_that_others_have_put_in_its_place_is_no_base_for_the_next_cut(bare_site):
    site = bare_site
    live = site.directory / "live"
    writer = site.start(site.script("""
        f = h5py.File("run.h5", "w", libver="latest")
        d = f.create_dataset("x", data=np.arange(1_000_000))
        for line in sys.stdin:
            d[0] = int(line)
            f.flush()
            print("done", flush=True)
        f.close()
    """), talks=True)
    assert writer.ask("1") == "done"
    agent = Agent(site, "--publish", live, "run.h5").start()
    published = live / "run.h5"
    wait_until(published.exists, "it is published")
    size = published.stat().st_size
    other = live / "other"
    other.write_bytes(b"x" * size)
    other.rename(published)
    assert writer.ask("2") == "done"
    wait_until(lambda: published.stat().st_ino != 0 and published.read_bytes()[:4] == b"\x89HDF", "the next cut is published")
    assert b"x" * 4096 not in published.read_bytes()
    writer.popen.stdin.close()
    writer.wait(60).ok()
    wait_until(lambda: equal(published, site.local("run.h5")), "the last cut is published")
    agent.stop()
