"""The words of h5edit: commands, options, numbers with all their digits, messages."""

import json
import re
import subprocess

import h5py
import numpy as np
import pytest

from harness import hdf5, paths
from harness.h5edit import changed, command, content, h5edit, make_fixture, nothing_beside


def test_an_attribute_with_a_number_sign_is_not_its_namesake(f, original):
    h5edit(f.parent, "-c", "CREATE /'attr1#old' {{1}};", "f.h5").ok()
    before = content(f)
    result = h5edit(f.parent, "-c", "DELETE /attr1#old;\n;", "f.h5")
    assert result.code == 1 and "-c:1:14: a '#' in the middle of a word" in result.err, result.describe()
    assert content(f) == before
    h5edit(f.parent, "-c", "DELETE /'attr1#old'; #gone", "f.h5").ok()
    assert changed(before, content(f)) == {("/", "attr1#old")}


def test_a_quoted_component_is_part_of_its_path(f):
    script = """CREATE GROUP /g1'two words'; CREATE GROUP /g1'two words' a {{1}}; LINK SOFT /g1'two words' /soft; CREATE /soft/b {{2}};
        CREATE DATASET /g1/'two words'/d {H5T_STD_I8LE LAYOUT COMPACT};"""
    result = h5edit(f.parent, "-c", script, "f.h5")
    assert result.code == 1 and "a path ends with its quoted component" in result.err, result.describe()
    h5edit(f.parent, "-c", script.replace("/g1/'two words'/d", "'/g1/two words/d'"), "f.h5").ok()
    with h5py.File(f) as o:
        assert dict(o["/g1/two words"].attrs) == {"a": 1, "b": 2} and list(o["/g1/two words"]) == ["d"]
        assert "g1two words" not in o


@pytest.mark.parametrize("kind, values", [
    ("H5T_IEEE_F32LE", ["0.1", "0.33333334", "16777216", "3.4028235e+38", "1e-45", "nan", "-inf", "-0"]),
    ("H5T_IEEE_F64BE", ["0.1", "1.00000001", "0.30000000000000004", "5e-324", "1.7976931348623157e+308", "123456"]),
    ("H5T_IEEE_F16LE", ["0.0999756", "65504", "0.333008"]), ("H5T_FLOAT_BFLOAT16LE", ["0.100098", "3.38953e+38"]),
    ("H5T_NATIVE_LDOUBLE", ["0.1", "0.33333333333333333334", "1e+4000", "1e-4900", "-inf"]),
])
def test_a_number_is_shown_with_the_digits_that_tell_it(f, kind, values):
    if kind.startswith("H5T_IEEE_F16") and not hasattr(h5py.h5t, "IEEE_F16LE"):
        pytest.skip("this HDF5 has no such type")
    h5edit(f.parent, "-c", f"CREATE /a {{{kind} ({len(values)}) {{{', '.join(values)}}}}};", "f.h5").ok()
    shown = h5edit(f.parent, "-c", "SHOW /a;", "f.h5").ok().out
    read = re.sub(r"\(\d+\): ", "", shown.split("DATA {")[1].split("}")[0]).replace("\n", " ").split(",")
    read = [word.strip() for word in read]
    before = content(f)
    h5edit(f.parent, "-c", f"MODIFY /a {{{', '.join(read)}}};", "f.h5").ok()
    assert content(f) == before
    # The fewest digits that do, and six where they do.
    assert read == [{"5e-324": "4.94066e-324", "1e-45": "1.4013e-45"}.get(value, value) for value in values]


def test_a_small_change_is_seen(f):
    script = "CREATE /x {H5T_IEEE_F64LE {1}}; MODIFY /x {1.00000001};"
    diff = h5edit(f.parent, "--dryrun", "--diff", "-c", script, "f.h5").ok().out
    assert "-   (0): 1\n" in diff and "+   (0): 1.00000001\n" in diff
    second = json.loads(h5edit(f.parent, "--json", "-c", script, "f.h5").ok().out.splitlines()[1])
    assert "(0): 1\n" in second["old"] and "(0): 1.00000001\n" in second["new"]


def test_a_long_double_is_the_nearest_to_what_is_written(f):
    script = """CREATE /a {H5T_NATIVE_LDOUBLE (3) {0.1, 1e4000, 1e-4900}}; CREATE /b {H5T_NATIVE_LDOUBLE (2) {7, 8}}; MODIFY /b [1] {0.3};
        CREATE /c {H5T_COMPOUND {H5T_NATIVE_LDOUBLE 'x'; H5T_ARRAY {[2] H5T_NATIVE_LDOUBLE} 'y';} {{0.1, [0.3, -1e4000]}}};
        CREATE DATASET /d {H5T_NATIVE_LDOUBLE (2) LAYOUT COMPACT FILLVALUE 0.1};"""
    h5edit(f.parent, "-c", script, "f.h5").ok()
    wide = np.longdouble
    with h5py.File(f) as o:
        assert o.attrs["a"].tolist() == [wide("0.1"), wide("1e4000"), wide("1e-4900")] and wide("0.1") != 0.1
        assert o.attrs["b"].tolist() == [7, wide("0.3")] and o["d"][()].tolist() == [wide("0.1")] * 2
        assert o.attrs["c"]["x"] == wide("0.1") and o.attrs["c"]["y"].tolist() == [wide("0.3"), wide("-1e4000")]
    result = h5edit(f.parent, "-c", "CREATE /e {H5T_NATIVE_LDOUBLE {1e5000}};", "f.h5")
    assert result.code == 1 and "out of range" in result.err, result.describe()


@pytest.mark.parametrize("script, says", [("LINK SOFT '/g1\\0x' /l;", "-c:1:11: a NUL byte"), ("LINK SOFT '' /l;", "-c:1:11: the path"),
                                          ("LINK EXTERNAL 'x\\0y' /a /l;", "-c:1:15: a NUL byte")])
def test_a_link_that_hdf5_would_cut_off_is_refused(f, original, script, says):
    result = h5edit(f.parent, "-c", script, "f.h5")
    assert result.code == 1 and says in result.err and f.read_bytes() == original, result.describe()


def test_a_message_is_one_line(f):
    result = h5edit(f.parent, "-c", "DELETE GROUP / 'a\\nb\\x1b[2J';", "f.h5")
    assert result.code == 1 and result.err.splitlines()[0] == "h5edit: -c:1:16: no attribute a\\x0ab\\x1b[2J in /", result.describe()


def test_verbose_shows_what_hdf5_says(f):
    words = ["-c", "DELETE /nope/x;", "f.h5"]
    quiet, loud = h5edit(f.parent, *words), h5edit(f.parent, "-v", *words)
    assert quiet.code == loud.code == 1 and quiet.err in loud.err
    assert "HDF5-DIAG" not in quiet.err and "HDF5-DIAG" in loud.err and "H5Oopen" in loud.err


def test_help_and_version_come_first(f, original):
    for words in (["-c", "DELETE /attr1;", "--help", "f.h5"], ["--atomic", "bad", "-h"]):
        result = h5edit(f.parent, *words).ok()
        assert "usage: h5edit" in result.out and result.err == ""
    assert re.fullmatch(r"h5edit \d+\.\d+\.\d+, .*\d{4}-\d\d-\d\d\n", h5edit(f.parent, "--version").ok().out)
    assert f.read_bytes() == original and nothing_beside(f)


def test_a_dataset_may_have_room_for_more_than_anyone_has(f):
    script = """CREATE DATASET /big {H5T_STD_I8LE (2000000, 2000000) LAYOUT CHUNKED (100, 100)};
        MODIFY DATASET /big [1999999, 1999998:2] {3, 4};"""
    h5edit(f.parent, "-c", script, "f.h5").ok()
    with h5py.File(f) as o:
        assert o["big"][1999999, 1999997:].tolist() == [0, 3, 4]
    assert f.stat().st_size < 2**20


@pytest.fixture(params=["earliest", "latest"])
def large(tmp_path, request):
    """Attributes that nearly fill a message of the object's header, and a group with more of them than a header holds."""
    file = make_fixture(tmp_path / "f.h5", libver=request.param)
    with h5py.File(file, "r+", libver=request.param) as f:
        f.attrs["big"] = np.arange(65400).astype("i1")
        group = f.create_group("dense")
        for number in range(20):
            group.attrs[f"n{number}"] = number
    return file


LONG = "a" * 65_000
MEMBERS, ONES = "".join(f'H5T_STD_I8LE "member_{n}";' for n in range(3000)), ",".join(["1"] * 3000)


@pytest.mark.parametrize("level", ["yes", "inc", "no"])
@pytest.mark.parametrize("script, says", [
    (f"CREATE GROUP /dense {LONG}{LONG} {{{{1}}}};", "at most 65534 bytes"), (f"RENAME GROUP /dense n1 {LONG}{'a' * 535};", "at most 65534 bytes"),
    (f"COPY /attr1 /dense/{LONG}{'a' * 536};", "at most 65534 bytes"),
    (f"LINK SOFT /{LONG}{'a' * 535} /x;", "a link keeps at most 32000 bytes"), (f"LINK EXTERNAL {LONG}{'a' * 534} /a /x;", "a link keeps at most"),
    (f"LINK EXTERNAL a /a /{LONG}{'a' * 519};", "a name in a group has at most 32000 bytes"), (f"MOVE /g1 /g2/{LONG};", "a name in a group has"),
    (f"CREATE GROUP /dense c {{H5T_COMPOUND {{{MEMBERS}}} {{{{{ONES}}}}}}};", "create attribute c: its type is too large"),
    ("CREATE DATASET /d {H5T_STD_I8LE (65525) LAYOUT COMPACT};", "a compact dataset has at most 65524 bytes"),
    ("CREATE DATASET /d {H5T_STD_I64LE (8191) LAYOUT COMPACT};", "a compact dataset has at most 65524 bytes"),
    ("CREATE DATASET /d {H5T_STRING {STRSIZE 65521} LAYOUT CONTIGUOUS FILLVALUE 'x'};", "a fill value has at most 65520 bytes"),
], ids=lambda value: value[:30])
def test_what_hdf5_writes_and_cannot_read_is_refused(large, script, says, level):
    before = content(large)
    (large.parent / "script").write_text(script)
    result = h5edit(large.parent, "--atomic", level, "--command-file", "script", "f.h5")
    assert result.code == 1 and says in result.err, result.describe()
    assert content(large) == before
    assert level == "no" or nothing_beside(large)


@pytest.mark.parametrize("level", ["yes", "inc", "no"])
@pytest.mark.parametrize("old, new", [("big", "b" * 200), ("attr1", LONG + "a" * 530)], ids=["big", "attr1"])
def test_a_rename_that_does_not_fit_takes_nothing_away(large, old, new, level):
    """HDF5 takes the old attribute away before it sees that the header has no room for the new one. The latest format has."""
    before = content(large)
    (large.parent / "script").write_text(f"RENAME /{old} {new};")
    result = h5edit(large.parent, "--atomic", level, "--command-file", "script", "f.h5")
    if large.read_bytes()[8] > 0:   # The version of the superblock.
        result.ok()
        assert changed(before, content(large)) == {("/", old), ("/", new)} and content(large)["/", new] == before["/", old]
    else:
        assert result.code == 1 and "object header message is too large" in result.err, result.describe()
        assert content(large) == before


# Old headers hold messages of whole words, and 65535 is none.
@pytest.mark.parametrize("script", [
    f"CREATE GROUP / a {{H5T_STD_I8LE (65475) {{{','.join(['1'] * 65475)}}}}};",
    f"CREATE GROUP / a {{H5T_ENUM {{H5T_STD_I16LE; '{'m' * 35465}' 1; '{'k' * 30000}' 2;}} {{1}}}};",
    f"CREATE OR REPLACE /attr1 {{H5T_STRING {{STRSIZE 65499}} {{''}}}};", f"APPEND /big {{{','.join(['1'] * 75)}}};",
    f"COPY /big {'c' * 75};", f"RENAME /big {'c' * 75};", f"CREATE /a {{H5T_STRING {{STRSIZE H5T_VARIABLE}} (4092) {{{','.join(['NULL'] * 4092)}}}}};",
], ids=lambda script: script[:30])
def test_a_message_of_nearly_64_kib_is_refused_or_read(large, script):
    before = content(large)
    (large.parent / "script").write_text(script)
    result = h5edit(large.parent, "--command-file", "script", "f.h5")
    after = content(large)
    if large.read_bytes()[8] > 0:
        assert result.code == 0 and after != before, result.describe()
    else:
        assert result.code == 1 and "too large" in result.err and after == before, result.describe()


def test_what_it_can_is_not(large):
    script = (f"RENAME GROUP /dense n1 {'b' * 60_500}; CREATE DATASET /d {{H5T_STD_I8LE (65524) LAYOUT COMPACT}}; LINK SOFT /{'c' * 31_000} /x;"
              f"CREATE OR REPLACE /big {{H5T_STD_I8LE (65408) {{{','.join(['1'] * 65408)}}}}}; RENAME /big long; APPEND /long {{1, 2}};"
              f"CREATE GROUP / h5edit-new {{{{1}}}}; CREATE OR REPLACE GROUP / h5edit-new {{{{2}}}}; CREATE GROUP /g1/{'d' * 31_000};")
    (large.parent / "script").write_text(script)
    h5edit(large.parent, "--atomic=no", "--command-file", "script", "f.h5").ok()
    with h5py.File(large) as f:
        assert f["dense"].attrs["b" * 60_500] == 1 and "n1" not in f["dense"].attrs and len(f["dense"].attrs) == 20
        assert f["d"].shape == (65524,) and f.get("x", getlink=True).path == "/" + "c" * 31_000 and "d" * 31_000 in f["g1"]
        assert f.attrs["long"].tolist() == [1] * 65409 + [2] and set(f.attrs) == {"attr1", "attr2", "long", "h5edit-new"}
        assert f.attrs["h5edit-new"] == 2


def test_values_of_a_file_that_h5dump_wrote(f):
    (f.parent / "x.txt").write_text("    (0,0): 1, 2, 3,\n    (1,0): 4, 5, 6\n\n")
    h5edit(f.parent, "-c", "CREATE /a {H5T_STD_I8LE (2, 3) FROM 'x.txt'};", "f.h5").ok()
    with h5py.File(f) as o:
        assert o.attrs["a"].tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("level", ["yes", "inc", "no"])
def test_a_reader_that_goes_away_breaks_nothing_off(f, level):
    lines = [f"CREATE GROUP / n{n} {{H5T_STD_I32LE {{{n}}}}};" for n in range(2000)]
    (f.parent / "script").write_text("\n".join(lines))
    process = subprocess.Popen([str(w) for w in command("--atomic", level, "--diff", "--command-file", "script", "f.h5")], cwd=f.parent,
                               env=hdf5.plain_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "@@ / n0\n"
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(100) == 1 and "standard output could not be written" in err, err
    with h5py.File(f) as o:
        assert len(o.attrs) == 2002 and o.attrs["n1999"] == 1999
    assert nothing_beside(f)


def test_attributes_of_32_dimensions(f):
    dims, last = ",".join(["1"] * 31 + ["2"]), ",".join(["0"] * 31 + ["1"])
    script = (f"CREATE /a {{H5T_STD_I8LE ({dims}) {{3,4}}}}; MODIFY /a [{last}] {{7}}; COPY /a /b; APPEND /b {{8, 9}}; SHOW /b;"
              f"CREATE /s {{H5T_STRING {{STRSIZE H5T_VARIABLE}} ({dims}) {{'x','y'}}}}; MODIFY /s [{last}] {{'z'}}; COPY /s /t; SHOW /t;"
              f"CREATE DATASET /d {{H5T_STD_I8LE ({dims}) LAYOUT CONTIGUOUS {{3,4}}}}; MODIFY DATASET /d [{last}] {{7}};")
    shown = h5edit(f.parent, "--diff", "--atomic=no", "-c", script, "f.h5").ok().out
    assert "0,1): 9\n" in shown and '0,1): "z"\n' in shown
    with h5py.File(f) as o:
        assert o.attrs["a"].flatten().tolist() == [3, 7] and o.attrs["b"].flatten().tolist() == [3, 7, 8, 9]
        assert o.attrs["t"].flatten().tolist() == ["x", "z"] and o["d"][()].flatten().tolist() == [3, 7]


def test_their_versions_are_compared(f):
    dims = ",".join(["1"] * 31 + ["2"])
    for script in (f"CREATE /s {{H5T_STRING {{STRSIZE H5T_VARIABLE}} ({dims}) {{'x','y'}}}};", "MODIFY /s {'x','z'};"):
        h5edit(f.parent, "--keep-history", "-c", script, "f.h5").ok()
    told = subprocess.run([paths.BIN / "h5mirror", "diff", "f.h5@2", "f.h5@3"], cwd=f.parent, env=hdf5.plain_env(), capture_output=True,
                          text=True, timeout=60)
    assert told.returncode == 1 and '"z"' in told.stdout, told
