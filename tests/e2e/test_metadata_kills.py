"""metadata=memory: a writer is killed before, and in the middle of, each call that changes its local file. Checks the
file and the server after that.

Between two cuts, and in a put as long as it writes beyond the end that the file had at the last cut, the file's
metadata is that of the last cut. From the first byte that is overwritten on, the file lies between two cuts, and each
byte is of one of them. There is no journal: by itself the file is then as after a crash under sec2. The server has the
last cut whole, and the file becomes that by `h5mirror recover`, or `resync --from remote`."""

import itertools
import signal

import pytest

from harness import hdf5, paths
from harness.fixtures import H5PY_VERSIONS
from harness.site import Site

# Kills count from the first cut on: of a file that had none there is nothing to keep. Says where it is.
WRITER = """
    import shutil
    name, until = sys.argv[1], sys.argv[2]
    f = h5py.File(name, "w", libver="LIBVER")
    for cut in ("first", "second", "close"):
        for n in range(12):
            f.create_group(f"{cut}/g{n}").attrs["cut"] = cut
        f.attrs["cut"] = cut
        f[f"of {cut}"] = np.arange(9000)
        if cut != "first":
            for n in range(0, 12, 3):
                f[f"first/g{n}"].attrs["cut"] = cut
        if cut == "close":
            del f["second"]
        if sys.argv[3:]:  # More raw data than the chunk cache has, and is gathered then.
            d = f.create_dataset(f"chunks of {cut}", (800, 1024), "i4", chunks=(1, 1024))
            for n in range(800):
                d[n] = n
        print("put", flush=True)
        f.close() if cut == "close" else f.flush()
        print(cut, flush=True)
        if cut == until: break
        os.environ["KILL_FILE"] = "none"
        shutil.copy(name, f"{name}.{cut}")
        os.environ["KILL_FILE"] = name
"""
CUTS = ("first", "second", "close")
MEMORY = "mode=off;metadata=memory"
MOMENTS = ("before", "within")
# With --all all of them.
ALONE = [("3.12.1", "earliest", "before"), ("3.16.0", "v110", "within")]
if paths.TEST_ALL:
    ALONE = list(itertools.product(H5PY_VERSIONS, ("earliest", "v110"), MOMENTS))


class Killed:
    """The state after a killed writer."""

    def __init__(self, site, name, out):
        self.name, self.file = name, site.local(name)
        said = out.split()
        self.in_put = said[-1] == "put"
        self.cut = [each for each in said if each in CUTS][-1]  # The last one that was made.
        self.next_cut = CUTS[CUTS.index(self.cut) + 1]
        self.at_cut = site.local(f"{name}.{self.cut}")


def write(site, name, libver, env, until="close", more=()):
    """One run of the writer."""
    return site.run([*site.script(WRITER.replace("LIBVER", libver)), name, until, *more], env=env)


def kill_each(site, libver, env, moment="before", until="close", more=()):
    """For each call a writer of a file of its own, until one comes to its end."""
    for number in range(1, 1000):
        name = f"k{number}.h5"
        kill = {"LD_PRELOAD": str(paths.TEST_BIN / "libe2e_kill_at.so"), "KILL_FILE": "none", "KILL_AT": str(number),
                **({"KILL_HALF": "1"} if moment == "within" else {})}
        done = write(site, name, libver, {**env, **kill}, until, more)
        if done.code == 0:
            assert number > 5
            return
        assert done.code == -signal.SIGKILL, done.describe()
        yield Killed(site, name, done.out)
    raise AssertionError("no end")


def whole_cuts(site, libver):
    """The files at each cut, of a run without a kill."""
    write(site, "whole.h5", libver, site.env(MEMORY)).ok()
    return {"first": site.local("whole.h5.first"), "second": site.local("whole.h5.second"), "close": site.local("whole.h5")}


def metadata(file):
    return hdf5.dump(file, "-A")


def assert_between(now, before, after):
    """Each byte is of one of two cuts, and no byte is overwritten before all bytes beyond the old end were put."""
    for at, (byte, new) in enumerate(zip(now, after)):
        assert byte == new or byte == (before[at] if at < len(before) else 0), f"at {at}"
    assert now[:len(before)] == before or now[len(before):len(after)] == after[len(before):]


def place_of(left, after):
    """Where in its put the writer was killed."""
    now, before = left.file.read_bytes(), left.at_cut.read_bytes()
    if now == after:
        return "put"
    return "beyond the end" if now[:len(before)] == before else "overwriting"


@pytest.mark.parametrize("h5py, libver, moment", ALONE)
def test_alone_the_file_is_the_last_cut_until_that_is_overwritten(tmp_path, h5py, libver, moment):
    local = Site(tmp_path, h5py=h5py)
    whole, met = whole_cuts(local, libver), set()
    for left in kill_each(local, libver, local.env(MEMORY), moment):
        place = place_of(left, whole[left.next_cut].read_bytes()) if left.in_put else "between cuts"
        met.add((left.next_cut, place))
        if place in ("between cuts", "beyond the end"):
            assert metadata(left.file) == metadata(left.at_cut), place
        if left.in_put and libver == "earliest":  # The newer ones note the times of its objects.
            assert_between(left.file.read_bytes(), left.at_cut.read_bytes(), whole[left.next_cut].read_bytes())
    for cut in ("second", "close"):
        assert {(cut, "between cuts"), (cut, "beyond the end"), (cut, "overwriting")} <= met, met


@pytest.mark.parametrize("moment", MOMENTS if paths.TEST_ALL else ["within"])
def test_alone_small_raw_data_that_is_put_between_two_cuts_leaves_the_last_one_whole(tmp_path, moment):
    """It is put with metadata beside it, some of it more than once."""
    local, grown = Site(tmp_path), 0
    for left in kill_each(local, "v110", local.env(MEMORY), moment, more=["chunks"]):
        if left.in_put:
            continue
        grown += left.file.stat().st_size > left.at_cut.stat().st_size + 2**19
        assert hdf5.dump(left.file) == hdf5.dump(left.at_cut)
    assert grown > 0


def test_alone_there_are_fewer_moments_between_two_cuts_than_with_sec2(tmp_path):
    """In H5Fflush alone: between two of them sec2 gives no cut."""
    site = Site(tmp_path)
    whole, torn = whole_cuts(site, "earliest"), {}
    for name, env in (("sec2", site.plain_env()), ("memory", site.env(MEMORY))):
        places = [place_of(left, whole["second"].read_bytes())
                  for left in kill_each(site, "earliest", env, until="second") if left.in_put]
        torn[name] = places.count("overwriting")
        print(f"{name}: {len(places)} calls, before {torn[name]} of them the file is between two cuts")
    assert 0 < torn["memory"] < torn["sec2"]


@pytest.mark.limit(600)
@pytest.mark.parametrize("moment", MOMENTS if paths.TEST_ALL else ["within"])
def test_the_server_has_the_last_cut_and_the_file_becomes_it(site, moment):
    """At odd calls by recover, at even ones by resync."""
    whole, torn = whole_cuts(site, "earliest"), 0
    cuts = {cut: hdf5.dump(file) for cut, file in whole.items()}
    memory = site.config(metadata="memory", ack="applied")
    for number, left in enumerate(kill_each(site, "earliest", site.env(memory), moment), 1):
        if not left.in_put:
            continue
        torn += place_of(left, whole[left.next_cut].read_bytes()) == "overwriting"
        site.wait_for_no_lease(left.name)
        site.settle(left.name)
        assert hdf5.dump(site.head(left.name)) == cuts[left.cut]
        site.cli(*(["recover"] if number % 2 else ["resync", "--from", "remote"]), left.file).ok()
        assert left.file.read_bytes() == site.head(left.name).read_bytes()
    site.py(f"""
        with h5py.File("{left.name}", "r+") as f:
            f["again"] = f["of first"][:]
    """, config=memory)
    site.assert_mirrored(left.name)
    assert torn > 2
