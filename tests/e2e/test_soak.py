"""Thousands of sessions: the server's memory, descriptors and threads do not grow with them."""

import os

import pytest

from harness import paths
from harness.process import memory_kb
from harness.site import count_open_files
from harness.wire import Wire

SESSIONS = 20_000 if paths.TEST_ALL else 2_000
CLIENTS = 4
FILES = 8


def take(site) -> dict:
    pid = site.server.pid
    return {"rss_kb": memory_kb(pid, "VmRSS"), "descriptors": count_open_files(pid),
            "threads": len(os.listdir(f"/proc/{pid}/task"))}


@pytest.mark.limit(1500)
def test_short_sessions(bare_site):
    """Programs that come and go, with some that die in mid-session and some that are refused."""
    site = bare_site
    batch = 200
    samples = []
    done = 0
    while done < SESSIONS:
        clients = [site.start([site.python, paths.PROGRAMS / "soak.py", batch // CLIENTS,
                               *(f"c{client}-{n}.h5" for n in range(FILES))],
                              config=site.config(ack="applied")) for client in range(CLIENTS)]
        with Wire(site) as lost, Wire(site) as refused:
            lost.open("lost.h5", "REPLACE")
            lost.read_until("opened")
            lost.write(0, b"x" * 100)
            refused.open("../outside.h5")
            assert refused.finish()["code"] == "INVALID_ARGUMENT"
        for client in clients:
            client.wait(300).ok()
            site.beside.remove(client)
        done += batch
        samples.append(take(site))
    for name in sorted(path.name for path in site.work.glob("*.h5")):
        site.assert_mirrored(name)
    # The first tenth fills caches and pools.
    early = samples[len(samples) // 10]
    late = take(site)  # Everything is applied: where the disk is slow, files wait for it open.
    print(f"{done} sessions: {early} became {late}")
    assert late["threads"] <= early["threads"] + 4, samples
    assert late["descriptors"] <= early["descriptors"] + 16, samples
    assert late["rss_kb"] < early["rss_kb"] * 1.1 + (8 << 10), samples
