"""Storms: the effect of a server or network that fails again and again on a paced writer, and the final state."""

import json
import random
import time

import pytest

from harness import paths, storm
from harness.process import wait_until
from harness.proxy import Proxy

MIB = 1024 if paths.TEST_ALL else 256
FAULTS = 50 if paths.TEST_ALL else 15


@pytest.fixture
def chance():
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    return random.Random(seed)


@pytest.fixture
def proxied(bare_site):
    """A site whose programs and tools come through a proxy."""
    with Proxy(bare_site.server.address) as proxy:
        bare_site.proxy = proxy
        yield bare_site


@pytest.mark.limit(600)
def test_server_killed_stopped_and_restarted(bare_site, chance):
    """With the defaults: the program sees no error and does not wait, and both sides end equal."""
    site = bare_site
    alone = storm.unmirrored(site, MIB)
    writer = storm.start_stream(site, "storm.h5", MIB, config=site.config(timeout=None))
    writer.wait_for_line("open")
    done = storm.rage(writer, storm.ServerFaults(site, chance).all(), FAULTS, 0.9 * MIB / storm.RATE_MIB_PER_S, chance)
    result = writer.wait(300)
    print(len(done), "faults:", *done)
    storm.assert_felt_nothing(storm.Felt.of(result), alone)
    assert len(done) > FAULTS / 2, "the writer ended before most of it"
    print("afterwards:", storm.bring_level(site, "storm.h5"))
    storm.assert_all_identical(site, "storm.h5")


@pytest.mark.limit(600)
def test_writer_at_full_speed(bare_site, chance):
    """The same for one that writes as fast as it can, beside its own mirrored run that nothing disturbs."""
    site = bare_site
    mib = 2 * MIB
    calm = storm.Felt.of(storm.start_stream(site, "calm.h5", mib, storm.UNPACED, config=site.config(timeout=None)).wait(300))
    site.local("calm.h5").unlink()
    writer = storm.start_stream(site, "storm.h5", mib, storm.UNPACED, config=site.config(timeout=None))
    writer.wait_for_line("open")
    done = storm.rage(writer, storm.ServerFaults(site, chance).all(), FAULTS, 0.9 * calm.took, chance)
    result = writer.wait(300)
    print(len(done), "faults:", *done)
    storm.assert_felt_nothing(storm.Felt.of(result), calm, beside="undisturbed")
    assert done
    print("afterwards:", storm.bring_level(site, "storm.h5"))
    storm.assert_all_identical(site, "storm.h5")


class NetworkFaults:
    """Faults of a network; after each, new connections work as before."""

    def __init__(self, proxy, chance):
        self._tell, self._chance = proxy.tell, chance

    def _for_a_while(self, fault: str) -> None:
        self._tell(fault)
        time.sleep(self._chance.uniform(0.1, 1.2))
        self._tell("pass")

    def held(self) -> None:
        self._for_a_while("hold")

    def dropped(self) -> None:
        self._for_a_while("drop")

    def refused(self) -> None:
        self._tell("reset")
        self._for_a_while("refuse")

    def reset(self) -> None:
        self._tell("reset")

    def half_open_here(self) -> None:
        self._tell("half-open server")

    def half_open_there(self) -> None:
        self._tell("half-open client")

    def far(self) -> None:
        self._tell("delay 50000")
        time.sleep(self._chance.uniform(0.1, 1.2))
        self._tell("delay 0")

    def all(self) -> list:
        return [self.held, self.dropped, self.refused, self.reset, self.half_open_here, self.half_open_there, self.far]


@pytest.mark.limit(600)
def test_network_that_drops_holds_resets_and_half_closes(proxied, chance):
    site = proxied
    alone = storm.unmirrored(site, MIB)
    writer = storm.start_stream(site, "storm.h5", MIB, config=site.config(timeout=None))
    writer.wait_for_line("open")
    done = storm.rage(writer, NetworkFaults(site.proxy, chance).all(), FAULTS, 0.9 * MIB / storm.RATE_MIB_PER_S, chance)
    result = writer.wait(300)
    print(len(done), "faults:", *done)
    storm.assert_felt_nothing(storm.Felt.of(result), alone)
    assert site.server.starts == 1
    print("afterwards:", storm.bring_level(site, "storm.h5"))
    storm.assert_all_identical(site, "storm.h5")


@pytest.mark.limit(300)
def test_link_slower_than_the_writer(proxied):
    """It stays resyncing, and both ends say so; the close leaves the rest to the next open."""
    site = proxied
    mib = 128
    alone = storm.unmirrored(site, mib)
    site.server.kill9()
    log = site.directory / "client.log"
    config = site.config(timeout=None, log=log)
    writer = storm.start_stream(site, "slow.h5", mib, config=config)
    writer.wait_for_line("cut 31")
    site.proxy.tell(f"throttle {2 << 20}")
    site.server.start()
    states = set()

    def seen() -> bool:
        # Without a cut it is there only as long as its writer's stream.
        shown = site.cli("status", "slow.h5", "--json")
        if shown.code == 0:
            states.add((json.loads(shown.out)["mirror"] or {"state": None})["state"])
        return not writer.running()

    wait_until(seen, "the writer never ended", 120, 0.2)
    felt = storm.Felt.of(writer.wait())
    print("the server said:", *states)
    storm.assert_felt_nothing(felt, alone)
    assert "resyncing" in log.read_text() and states <= {"resyncing", "connected", None}, (states, log.read_text())
    assert site.record("slow.h5")["state"] == "behind" and "dirty_map" in site.record("slow.h5")
    site.proxy.tell("throttle 0")
    assert storm.bring_level(site, "slow.h5") == "reopened"
    storm.assert_all_identical(site, "slow.h5")
