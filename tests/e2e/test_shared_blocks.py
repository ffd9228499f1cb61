"""Readers of one host that share one copy of raw data in memory, which h5mirror-agent fills."""

import os
import re
from pathlib import Path

import pytest

from harness.proxy import Proxy
from test_agent import Agent

ROWS = 320  # of 64 KiB
MAKE = f"""
    with h5py.File('run.h5', 'w') as f:
        f['x'] = np.random.default_rng(7).integers(0, 1 << 60, ({ROWS}, 8192))
"""
# Reads the rows that it is told, in any order, and says their sum.
READER = """
    with h5py.File('run.h5', 'r') as f:
        x = f['x']
        print('open', flush=True)
        for line in sys.stdin:
            begin, end, seed = map(int, line.split())
            rows = np.random.default_rng(seed).permutation(np.arange(begin, end))
            print(sum(int(x[row].sum(dtype='u8')) for row in rows) % (1 << 64), flush=True)
"""


def reader(site, **keys):
    process = site.start(site.script(READER), talks=True, config=site.config(mode="reader", cache="1MiB", **keys))
    assert process.line() == "open"
    return process


def ask(readers, begin, end):
    """The answers of all readers about these rows, asked at once, each in an order of its own."""
    for seed, each in enumerate(readers):
        each.popen.stdin.write(f"{begin} {end} {seed}\n".encode())
        each.popen.stdin.flush()
    return [each.line() for each in readers]


def finish(readers):
    for each in readers:
        each.popen.stdin.close()
        each.wait().ok()


def has_blocks(process):
    with open(f"/proc/{process.pid}/maps") as maps:
        return [line.split()[1] for line in maps if "memfd:h5mirror-blocks" in line]


@pytest.fixture
def made(bare_site):
    bare_site.py(MAKE)
    bare_site.settle("run.h5")
    return bare_site


def test_many_readers_cost_one_copy_and_the_server_sends_each_byte_once(made):
    size = made.local("run.h5").stat().st_size
    with Proxy(made.server.address) as proxy:
        def carried():
            return proxy.tell("totals")["to_client_bytes"]

        agent = Agent(made, "--cache", "128MiB", server=proxy.address).start()
        readers = [reader(made, agent=agent.socket, server=proxy.address) for _ in range(6)]
        before = carried()
        assert len(set(ask(readers, 0, ROWS))) == 1
        print(f"{carried() - before} bytes of {size}")
        assert size * 0.9 < carried() - before < size * 1.2
        assert all(has_blocks(each) == ["r--s"] for each in readers), "each has it, and may only read it"
        before = carried()
        late = reader(made, agent=agent.socket, server=proxy.address)
        assert ask([late], 0, ROWS) == ask(readers[:1], 0, ROWS)
        assert carried() - before < size / 4, "one that comes later finds what the others have read"
        finish([*readers, late])
        agent.stop()


def test_what_is_shared_stays_within_half_of_the_cache(made):
    agent = Agent(made, "--cache", "16MiB").start()
    readers = [reader(made, agent=agent.socket) for _ in range(3)]
    assert len(set(ask(readers, 0, ROWS))) == 1, "it does not fit, and is read all the same"
    fds = Path(f"/proc/{agent.process.pid}/fd")
    held = sum(fd.stat().st_blocks * 512 for fd in fds.iterdir() if "memfd:h5mirror-blocks" in os.readlink(fd))
    assert 4 << 20 < held <= 8 << 20
    assert all(has_blocks(each) for each in readers)
    finish(readers)
    agent.stop()
    said = re.findall(r"and ([\d.]+) MiB to map", agent.process.err() + agent.process.out())
    assert all(float(each) <= 8 for each in said)


def test_a_reader_that_is_alone_with_a_large_file_reads_at_the_server(made):
    """Where it cannot, it reads through the agent as before."""
    with Proxy(made.server.address) as proxy:
        def connections():
            return proxy.tell("totals")["connections"]

        agent = Agent(made, "--cache", "16MiB", server=proxy.address).start()
        readers = [reader(made, agent=agent.socket, server=proxy.address)]
        before = connections()
        said = ask(readers, 0, ROWS)
        assert connections() > before, "one of its own"
        readers.append(reader(made, agent=agent.socket, server=proxy.address))
        assert ask(readers, 0, ROWS) == 2 * said, "they are two now"
        finish(readers)
        proxy.cut_after = 1  # Of connections to come: the agent has its own.
        cut_off = reader(made, agent=agent.socket, server=proxy.address)
        for _ in range(2):
            assert ask([cut_off], 0, ROWS) == said
        assert proxy.cuts > 0, "it tried"
        finish([cut_off])
        agent.stop()


def test_readers_go_on_when_the_agent_is_killed_and_read_the_same_bytes(made):
    agent = Agent(made, "--cache", "128MiB").start()
    plain = reader(made, agent="off")
    readers = [reader(made, agent=agent.socket) for _ in range(4)]
    first, whole = ask([plain], 0, 100)[0], ask([plain], 0, ROWS)[0]
    assert set(ask(readers, 0, 100)) == {first}
    agent.process.kill()
    assert set(ask(readers, 0, 100)) == {first}
    assert set(ask(readers, 0, ROWS)) == {whole}
    agent.start()
    again = [reader(made, agent=agent.socket) for _ in range(2)]
    assert set(ask(again, 0, ROWS)) == {whole} and all(has_blocks(each) for each in again)
    agent.process.signal(19)  # An agent that stands still costs time, but no error.
    assert set(ask(readers + again, 50, 150)) == {ask([plain], 50, 150)[0]}
    agent.process.signal(18)
    finish([plain, *readers, *again])
    agent.stop()


def test_each_open_reads_its_own_cut_while_the_file_changes_under_it(bare_site):
    site = bare_site
    writer = site.start(site.script(f"""
        f = h5py.File('run.h5', 'w', libver='latest')
        x = f.create_dataset('x', ({ROWS}, 8192), 'i8', chunks=(1, 8192))
        for line in sys.stdin:
            n = int(line)
            if n == 1: x[...] = 1
            else: x[n % 10::10] = n   # A tenth of the blocks.
            f.flush()
            print('flushed', flush=True)
    """), talks=True)
    assert writer.ask("1") == "flushed"
    site.wait_for_cut("run.h5")
    agent = Agent(site, "--cache", "128MiB").start()
    readers, expected, now = [], [], [1] * ROWS
    for n in range(2, 8):
        each = reader(site, agent=agent.socket)
        readers.append(each)
        expected.append(str(sum(now) * 8192))
        assert ask([each], 0, ROWS) == expected[-1:]
        assert writer.ask(str(n)) == "flushed"
        now[n % 10::10] = [n] * len(now[n % 10::10])
        assert ask(readers, 0, ROWS) == expected
    finish(readers)
    writer.popen.stdin.close()
    writer.wait().ok()
    agent.stop()
