"""h5edit by example: the rows have the numbers of the specification's acceptance examples."""

import json
import re
import subprocess
from dataclasses import dataclass

import h5py
import numpy as np
import pytest

from harness import hdf5, paths
from harness.h5edit import D1, backup, changed, content, ddl, h5edit, make_fixture, nothing_beside, pipe

D2 = "/g1/g1.1/dset1.1.2"
I = "H5T_STD_I"


@dataclass
class Row:
    """One script over a fresh F. `touched` are the attributes that it changes, `gone` those of them that are not there any more,
    `holds` what h5dump then says; with exit 1 the file is as it was, and `says` is in the message."""
    number: str
    script: str
    touched: tuple = ()
    holds: tuple = ()
    says: str = ""
    gone: tuple = ()

    def __str__(self):
        return self.number


def attr(name, kind, space, data):
    return f'ATTRIBUTE "{name}" {{ DATATYPE {kind} DATASPACE {space} DATA {{ {data} }} }}'


def scalar(name, kind, value):
    return attr(name, kind, "SCALAR", f"(0): {value}")


def string(size, pad="NULLTERM", cset="ASCII"):
    return f"H5T_STRING {{ STRSIZE {size}; STRPAD H5T_STR_{pad}; CSET H5T_CSET_{cset}; CTYPE H5T_C_S1; }}"


def simple(*dims):
    text = ", ".join(str(d) for d in dims)
    return f"SIMPLE {{ ( {text} ) / ( {text} ) }}"


def numbers(name, kind, values):
    """Of one dimension; h5dump breaks the lines of long ones."""
    return f'ATTRIBUTE "{name}" {{ DATATYPE {kind} DATASPACE {simple(len(values))} DATA {{ {", ".join(map(str, values))} }} }}'


def octets(name, values):
    return numbers(name, "H5T_STD_I8BE", list(values))


BOTH = ((D1, "attr1"), (D1, "attr2"))
NEW = ((D1, "attr1_new"), (D1, "attr2_new"))
ROOT = (("/", "attr1"), ("/", "attr2"))
BYTES = "97, 98, 99, 100, 101, 102, 103, 104, 105, 0"
SIX = "(0,0,0): 11, 12, 21, (0,1,0): 22, 31, 32"
EIGHT = "(0,0,0): 1, 2, (0,1,0): -110, -120, (1,0,0): 0.0021, 0.0022, (1,1,0): -0.0031, -0.032"
S36 = f"CREATE {D1} a {{H5T_STD_I32BE SIMPLE ( 1, 2, 3) {{11, 12, 21, 22, 31,32}}}};"
S37 = (f"CREATE {D1} b {{H5T_IEEE_F64LE (2,2,2) {{0.1E1, 0.2E1, -1.1e2, -1.2e2, 2.1E-3, 2.2E-3, -3.1E-3, -3.2E-2}}}};")
S43 = f"CREATE {D1} s {{H5T_STRING {{ STRSIZE 15 }} SCALAR {{'scalar string'}}}};"
S44 = f"CREATE {D1} sa {{H5T_STRING {{ STRSIZE 10 }} ( 3 ) {{'a','string','array'}}}};"
OWNERS = ("GROUP /", "GROUP /g1", "GROUP /g1/g1.1", D1, D2, "GROUP /g1/g1.2", "GROUP /g1/g1.2/g1.2.1", "/g2/dset2.2")
SIGNED = [f"{I}{bits}{order}" for bits in (8, 16, 32, 64) for order in ("BE", "LE")]
UNSIGNED = [name.replace("_I", "_U", 1).replace("STD_I", "STD_U") for name in SIGNED]
UNSIGNED = [f"H5T_STD_U{bits}{order}" for bits in (8, 16, 32, 64) for order in ("BE", "LE")]
LARGEST = {"8": 200, "16": 65535, "32": 4294967295, "64": 18446744073709551615}


def eight(types, value):
    script = "".join(f"CREATE {owner} n {{{kind} SCALAR {{{value(kind)}}}}};" for owner, kind in zip(OWNERS, types))
    touched = tuple((owner.split()[-1], "n") for owner in OWNERS)
    return script, touched, tuple(scalar("n", kind, value(kind)) for kind in types)


def bits_of(kind):
    return "".join(c for c in kind[9:] if c.isdigit())


COPY1 = attr("attr1copy", "H5T_STD_I8BE", simple(10), f"(0): {BYTES}")
FLOATS = ("H5T_IEEE_F32BE", "H5T_IEEE_F32LE", "H5T_IEEE_F64BE", "H5T_IEEE_F64LE")
RISING, FALLING = (",".join(str(n) for n in values) for values in (range(1, 28), range(27, 0, -1)))
FIRST, SECOND = (text + b"\0" for text in (b"1st attribute of dset1.1.1", b"2nd attribute of dset1.1.1"))



DONE = [
    Row("18", f"DELETE {D1} attr1; DELETE DATASET {D1} attr2;", BOTH, gone=BOTH),
    Row("19", f"DELETE {D1}/attr1; DELETE DATASET {D1}/attr2;", BOTH, gone=BOTH),
    Row("20", "DELETE GROUP / attr1; DELETE GROUP / attr2;", ROOT, gone=ROOT),
    Row("21", "DELETE /attr1; DELETE /attr2;", ROOT, gone=ROOT),
    Row("26", f"RENAME {D1} attr1 attr1_new; RENAME DATASET {D1} attr2 attr2_new;", BOTH + NEW, (octets("attr1_new", FIRST), octets("attr2_new", SECOND)), gone=BOTH),
    Row("27", f"RENAME {D1}/attr1 attr1_new; RENAME DATASET {D1}/attr2 attr2_new;", BOTH + NEW, (octets("attr1_new", FIRST), octets("attr2_new", SECOND)), gone=BOTH),
    Row("28", "RENAME GROUP / attr1 attr1_new; RENAME GROUP /attr2 attr2_new;",
        ROOT + (("/", "attr1_new"), ("/", "attr2_new")), (attr("attr1_new", "H5T_STD_I8BE", simple(10), f"(0): {BYTES}"),
        attr("attr2_new", "H5T_STD_I32BE", simple(2, 2), "(0,0): 0, 1, (1,0): 2, 3")), gone=ROOT),
    Row("33", f"CREATE {D1} a {{DATATYPE H5T_STD_I32BE DATASPACE SCALAR DATA {{32}}}};", ((D1, "a"),),
        (scalar("a", "H5T_STD_I32BE", 32),)),
    Row("34", f"CREATE {D1}/a {{H5T_STD_I64BE SCALAR {{64}}}};", ((D1, "a"),), (scalar("a", "H5T_STD_I64BE", 64),)),
    Row("35", f"CREATE {D1} a {{H5T_IEEE_F32BE SCALAR {{32.32}}}}; CREATE {D1}/b {{H5T_IEEE_F32LE SCALAR {{64.64}}}};",
        ((D1, "a"), (D1, "b")), (scalar("a", "H5T_IEEE_F32BE", 32.32), scalar("b", "H5T_IEEE_F32LE", 64.64))),
    Row("36", S36, ((D1, "a"),), (attr("a", "H5T_STD_I32BE", simple(1, 2, 3), SIX),)),
    Row("37", S37, ((D1, "b"),), (attr("b", "H5T_IEEE_F64LE", simple(2, 2, 2), EIGHT),)),
    Row("39", *eight(SIGNED, lambda kind: -8)),
    Row("40", *eight(UNSIGNED, lambda kind: LARGEST[bits_of(kind)])),
    Row("41", f"CREATE {D1} a {{H5T_STD_I8BE (2,2,2) {{-2,0,2,4,8,16,32,64}}}};", ((D1, "a"),),
        (attr("a", "H5T_STD_I8BE", simple(2, 2, 2), "(0,0,0): -2, 0, (0,1,0): 2, 4, (1,0,0): 8, 16, (1,1,0): 32, 64"),)),
    Row("42", "".join(f"CREATE {D1} s{n} {{{kind} SCALAR {{1.5}}}}; CREATE {D1} m{n} {{{kind} (1,2,3) {{1.5,2.5,3.5,4.5,5.5,6.5}}}};"
                      for n, kind in enumerate(FLOATS)),
        tuple((D1, f"{form}{n}") for n in range(4) for form in "sm"),
        tuple(made for n, kind in enumerate(FLOATS) for made in (
            scalar(f"s{n}", kind, 1.5), attr(f"m{n}", kind, simple(1, 2, 3), "(0,0,0): 1.5, 2.5, 3.5, (0,1,0): 4.5, 5.5, 6.5")))),
    Row("43", S43, ((D1, "s"),), (scalar("s", string(15), '"scalar string"'),)),
    Row("44", S44, ((D1, "sa"),), (attr("sa", string(10), simple(3), '(0): "a", "string", "array"'),)),
    Row("45", f"CREATE {D1}/t {{{{-40.0}}}};", ((D1, "t"),), (scalar("t", "H5T_IEEE_F32LE", -40),)),
    Row("46", f"CREATE {D1}/t {{(3) {{1.0, 2.0, 3.0}}}};", ((D1, "t"),), (attr("t", "H5T_IEEE_F32LE", simple(3), "(0): 1, 2, 3"),)),
    Row("47", f"CREATE {D1}/t {{H5T_STD_I32LE {{5}}}};", ((D1, "t"),), (scalar("t", "H5T_STD_I32LE", 5),)),
    Row("48", "CREATE /my_attr {H5T_STD_I8LE SCALAR {1}};", (("/", "my_attr"),), (scalar("my_attr", "H5T_STD_I8LE", 1),)),
    Row("54", "CREATE /a {H5T_IEEE_F64LE SCALAR {3}};", (("/", "a"),), (scalar("a", "H5T_IEEE_F64LE", 3),)),
    Row("56", "CREATE /a {H5T_STD_I64LE SCALAR {-9223372036854775808}};", (("/", "a"),),
        (scalar("a", "H5T_STD_I64LE", -9223372036854775808),)),
    Row("58b", "CREATE /a {H5T_STRING { STRSIZE 1 } SCALAR {''}};", (("/", "a"),), (scalar("a", string(1), '""'),)),
    Row("59b", "CREATE /a {H5T_STRING { STRSIZE 4; STRPAD H5T_STR_NULLPAD } SCALAR {'four'}};", (("/", "a"),),
        (scalar("a", string(4, "NULLPAD"), '"four"'),)),
    Row("60", "CREATE /a {H5T_STRING { STRSIZE 9; STRPAD H5T_STR_SPACEPAD; CSET H5T_CSET_UTF8; CTYPE H5T_C_S1; } SCALAR {\"é\"}};",
        (("/", "a"),), (string(9, "SPACEPAD", "UTF8"),)),
    Row("61", "CREATE /'two words' {H5T_STD_I8LE SCALAR {1}};", (("/", "two words"),), (scalar("two words", "H5T_STD_I8LE", 1),)),
    Row("62", "CREATE /a {H5T_STD_I32LE NULL {}};", (("/", "a"),), (attr("a", "H5T_STD_I32LE", "NULL", "").replace("{  }", "{ }"),)),
    Row("63", f"CREATE /a {{H5T_STD_I32LE (600) {{{','.join(['7'] * 600)}}}}};", (("/", "a"),), (numbers("a", "H5T_STD_I32LE", [7] * 600),)),
    *(Row(f"66{n}", script, (("/", "attr1copy"),), (COPY1,)) for n, script in
      zip("abc", ("COPY / attr1 / attr1copy;", "COPY /attr1 /attr1copy;", "COPY /attr1 attr1copy;"))),
    *(Row(f"67{n}", script, (("/g2/dset2.1", "attr1copy"),), (COPY1,)) for n, script in
      zip("ab", ("COPY / attr1 /g2/dset2.1 attr1copy;", "COPY /attr1 /g2/dset2.1/attr1copy;"))),
    *(Row(f"68{n}", script, (("/g2/dset2.1", "attr1"),), (attr("attr1", "H5T_STD_I8BE", simple(10), f"(0): {BYTES}"),) * 2) for n, script in
      zip("ab", ("COPY / attr1 /g2/dset2.1 attr1;", "COPY /attr1 /g2/dset2.1/attr1;"))),
    *(Row(f"69{n}", script, (("/g2/dset2.1", "/attr1copy"),), (COPY1.replace("attr1copy", "/attr1copy"),)) for n, script in
      zip("ab", ("COPY /attr1 /g2/dset2.1//attr1copy;", "COPY /attr1 /g2/dset2.1'/attr1copy';"))),
    Row("75", "COPY /attr1 /c; MODIFY /c {0,0,0,0,0,0,0,0,0,0};", (("/", "c"),),
        (attr("c", "H5T_STD_I8BE", simple(10), "(0): 0, 0, 0, 0, 0, 0, 0, 0, 0, 0"),)),
    Row("76", f"MODIFY {D1} attr1 {{{RISING}}}; MODIFY /attr2 {{11,13,17,19}}; MODIFY {D1}/attr2 {{{FALLING}}};",
        BOTH + (("/", "attr2"),), (attr("attr2", "H5T_STD_I32BE", simple(2, 2), "(0,0): 11, 13, (1,0): 17, 19"),
                                   octets("attr1", range(1, 28)), octets("attr2", range(27, 0, -1)))),
    Row("77", f"{S43}{S44} MODIFY {D1} s {{'single string'}}; MODIFY {D1}/sa {{'array','of','strings'}};",
        ((D1, "s"), (D1, "sa")), (scalar("s", string(15), '"single string"'),
                                  attr("sa", string(10), simple(3), '(0): "array", "of", "strings"'))),
    *(Row(f"82{n}", f"MODIFY {group}/ attr2 {{9,8,7,6}};", (("/", "attr2"),),
          (attr("attr2", "H5T_STD_I32BE", simple(2, 2), "(0,0): 9, 8, (1,0): 7, 6"),)) for n, group in zip("ab", ("GROUP ", ""))),
    Row("93", ";;"),
    Row("93b", ""),
    Row("93c", "# nothing\n  # at all"),
]

FAILED = [
    Row("22", f"DELETE {D1} bogusattr;", says="no attribute bogusattr"),
    Row("23", "DELETE GROUP /g1/g1.1000 attr1;", says="no such object /g1/g1.1000"),
    Row("24", "DELETE /g1/g1.1 x;", says="/g1/g1.1 is a group, not a dataset; write GROUP before it"),
    Row("25", "DELETE attr1;", says="cannot tell object from attribute"),
    Row("29", "RENAME GROUP /g1 attrbogus attr_new;", says="no attribute attrbogus"),
    Row("30", "RENAME /g1 attr2 attr2renamed;", says="is a group, not a dataset"),
    Row("31", "RENAME GROUP /g1 attr2 /g2;", says="a new name has no slash"),
    Row("32", "RENAME /attr1 attr2;", says="attribute attr2 of / exists already"),
    Row("49", "CREATE GROUP / attr1 {H5T_STD_I8BE (1,10) {9,8,7,6,5,4,3,2,1,0}};", says="exists already"),
    Row("50", "CREATE /g1/bogusdset1.1 attr1 {H5T_STD_I8BE (1,2) {9,8}};", says="no such object"),
    Row("51", "CREATE /g1 a {H5T_STD_I8BE {9}};", says="is a group, not a dataset"),
    Row("52", "CREATE /a {H5T_STD_I32LE (3) {1,2}};", says="too few values"),
    Row("52b", "CREATE /a {H5T_STD_I32LE (3) {1,2,3,4}};", says="too many values"),
    Row("53", "CREATE /a {H5T_STD_I32LE SCALAR {1.5}};", says="wrong kind of value"),
    Row("53b", "CREATE /a {H5T_STD_I32LE SCALAR {'x'}};", says="wrong kind of value"),
    Row("55", "CREATE /a {H5T_STD_I8LE SCALAR {128}};", says="out of range"),
    Row("55b", "CREATE /a {H5T_STD_U8LE SCALAR {-1}};", says="out of range"),
    Row("57", "CREATE /a {H5T_STD_I32LE (0) {1}};", says="at least 1"),
    Row("57b", "CREATE /a {H5T_STD_I32LE (-1) {1}};", says="at least 1"),
    Row("57c", f"CREATE /a {{H5T_STD_I32LE ({','.join('1' * 33)}) {{1}}}};", says="at most 32 dimensions"),
    Row("58", "CREATE /a {H5T_STRING { STRSIZE 0 } SCALAR {''}};", says="STRSIZE must be at least 1"),
    Row("59", "CREATE /a {H5T_STRING { STRSIZE 4 } SCALAR {'four'}};", says="string too long"),
    Row("64", f"CREATE /a {{H5T_STD_I8LE (70000) {{{','.join('1' * 70000)}}}}};", says="too large"),
    Row("65", "CREATE /a {H5T_BOGUS SCALAR {1}};", says="unknown type H5T_BOGUS"),
    Row("70", "COPY / attr1 / attr1;", says="exists already"),
    Row("70b", "COPY /attr1 attr1;", says="exists already"),
    Row("71", "COPY /attr1 / attr2;", says="expected the name of the new attribute"),
    Row("72", "COPY GROUP / ATTRIBUTE attr1 GROUP / ATTRIBUTE attr2;", says="found the keyword ATTRIBUTE"),
    Row("73", "COPY /nope /x;", says="no attribute nope"),
    Row("73b", "COPY /attr1 /nogroup/x;", says="no such object /nogroup"),
    Row("78", "MODIFY /attr2 {1,2,3};", says="too few values"),
    Row("78b", "MODIFY /attr2 {1,2,3,4,5};", says="too many values"),
    Row("79", "MODIFY /attr2 {1.0,2.0,3.0,4.0};", says="wrong kind of value"),
    Row("80", "MODIFY /nope {1};", says="no attribute nope"),
    Row("80b", "CREATE /n {H5T_STD_I8LE NULL {}}; MODIFY /n {1};", says="has the space NULL"),
    Row("83", "DELETE /attr1; DELETE /attr_no_such;", says="no attribute attr_no_such"),
    Row("91", "DELETE /attr1", says="expected ';', found the end of the script"),
    Row("92", "DELETE /attr1; DELEET /attr2;", says="expected a command"),
]


@pytest.mark.parametrize("row", DONE, ids=str)
def test_done(f, row, original):
    before = content(f)
    (f.parent / "script").write_text(row.script)
    result = h5edit(f.parent, "--command-file", "script", "f.h5").ok()
    assert result.said == ""
    assert changed(before, content(f)) == set(row.touched)
    assert not set(row.gone) & content(f).keys()
    assert row.touched or f.read_bytes() == original
    text = ddl(f)
    unbroken = re.sub(r"(\d, )\(\d+\): ", r"\1", text).replace("DATA { (0): ", "DATA { ")   # Without the indices of one dimension.
    for expected in row.holds:
        assert expected in text or expected in unbroken
        assert max(text.count(expected), unbroken.count(expected)) >= row.holds.count(expected)
    assert nothing_beside(f)


# Rows whose error the script alone shows, and rows with a command that succeeds before one that fails.
IN_SCRIPT = ("52", "53", "55", "57", "58", "59", "65", "71", "72", "91", "92")
KEPT = ("80b", "83")


@pytest.mark.parametrize("row", FAILED, ids=str)
def test_failed(f, row, original):
    (f.parent / "script").write_text(row.script)
    before = content(f)
    for level in ("yes", "inc", "no"):
        result = h5edit(f.parent, "--atomic", level, "--command-file", "script", "f.h5")
        assert result.code == 1, result.describe()
        assert row.says in result.err and result.err.startswith("h5edit: script:"), result.describe()
        if level == "yes" or row.number.startswith(IN_SCRIPT):
            assert f.read_bytes() == original
        elif row.number not in KEPT:
            assert content(f) == before
        assert nothing_beside(f)
        f.write_bytes(original)


@pytest.mark.parametrize("number, words, says", [
    ("3", [""], "no commands"), ("3b", ["foo"], "no commands"), ("4", ["-c"], "-c wants a word"),
    ("4b", ["--command"], "--command wants a word"), ("5", ["--command-file"], "--command-file wants a word"),
    ("6", ["--command-file", "./nofile", "f.h5"], "cannot read ./nofile"), ("7", ["--dryrun"], "no commands"),
    ("8", ["-help"], "unknown option -help"), ("8b", ["-x"], "unknown option -x"), ("8c", ["--bogus"], "unknown option --bogus"),
    ("9", ["--atomic"], "--atomic wants a word"), ("9b", ["--atomic", "bad"], "--atomic is yes, inc or no, not bad"),
    ("9c", ["--atomic==yes"], "is written --atomic LEVEL"),
    ("10", ["-atomic", "no", "-c", "DELETE /attr1;", "f.h5"], "unknown option -atomic"),
    ("11", ["-c", "DELETE /attr1;"], "no data file"),
    ("14", ["-c", "DELETE /attr1;", "--command-file", "s", "f.h5"], "were given already"),
    ("17", ["-c", "DELETE /attr1;", "f.h5", "g.h5"], "one data file, and then: g.h5"),
])
def test_usage(f, original, number, words, says):
    result = h5edit(f.parent, *words)
    assert result.code == 1 and says in result.err and "usage: h5edit" in result.err, result.describe()
    assert f.read_bytes() == original and nothing_beside(f)


def test_1_2_help_and_version(f):
    for word in ("-h", "--help"):
        assert "usage: h5edit" in h5edit(f.parent, "--bogus", word).ok().out
    assert h5edit(f.parent, "--version").ok().out.count("\n") == 1


def test_12_13_data_files_that_cannot_be_edited(f, original):
    (f.parent / "notes.txt").write_text("no HDF5\n")
    for name in ("nofile.h5", "notes.txt"):
        result = h5edit(f.parent, "-c", "DELETE /attr1;", name)
        assert result.code == 1 and f"cannot open" in result.err and name in result.err, result.describe()
    assert sorted(p.name for p in f.parent.iterdir() if not p.name.startswith("h5edit-")) == ["f.h5", "notes.txt"]
    assert (f.parent / "notes.txt").read_text() == "no HDF5\n" and f.read_bytes() == original


def test_15_a_file_in_another_directory(f, original):
    (f.parent / "more").mkdir()
    file = f.rename(f.parent / "more/f.h5")
    h5edit(f.parent, "-c", "DELETE /attr1;", "more/f.h5").ok()
    assert nothing_beside(file) and ("/", "attr1") not in content(file)
    file.write_bytes(original)
    h5edit(f.parent, "--backup=copy", "-c", "DELETE /attr1; DELETE /nope;", "more/f.h5")
    assert backup(file).read_bytes() == original and not backup(f).exists()


def test_38_a_script_file_broken_into_lines(f):
    script = (S36 + S37).replace(" ", "\n").replace(",", "\n,\n").replace("{", "\n{\r\n\t")
    (f.parent / "script").write_text(script)
    h5edit(f.parent, "--command-file", "script", "f.h5").ok()
    text = ddl(f)
    assert attr("a", "H5T_STD_I32BE", simple(1, 2, 3), SIX) in text
    assert attr("b", "H5T_IEEE_F64LE", simple(2, 2, 2), EIGHT) in text


def test_58_59_60_strings_are_padded_as_their_type_says(f):
    script = "".join(f"CREATE /{pad.lower()} {{H5T_STRING {{STRSIZE 4; STRPAD H5T_STR_{pad}; CSET H5T_CSET_UTF8;}} (3) {{'é', '', 'abc'}}}};"
                     for pad in ("NULLTERM", "NULLPAD", "SPACEPAD"))
    h5edit(f.parent, "-c", script, "f.h5").ok()
    padded = {}
    with h5py.File(f) as opened:
        for name in ("nullterm", "nullpad", "spacepad"):
            raw, attribute = np.empty(3, "S4"), opened.attrs.get_id(name)
            attribute.read(raw, mtype=attribute.get_type())
            padded[name] = raw.tobytes()
    zeros = "é\0\0\0\0\0\0abc\0".encode()
    assert padded == {"nullterm": zeros, "nullpad": zeros, "spacepad": "é      abc ".encode()}


def test_64_latest_format_takes_70000_bytes(tmp_path):
    file = make_fixture(tmp_path / "f.h5", libver="latest")
    (tmp_path / "script").write_text(f"CREATE /a {{H5T_STD_I8LE (70000) {{{','.join('1' * 70000)}}}}};")
    h5edit(tmp_path, "--command-file", "script", "f.h5").ok()
    with h5py.File(file) as opened:
        assert (opened.attrs["a"] == 1).all() and opened.attrs["a"].shape == (70000,)


def test_74_copies_of_every_type(f):
    values = {"vlen": "variable", "compound": np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]),
              "list": np.array([1, 2, 3])}
    with h5py.File(f, "r+") as opened:
        for name, value in values.items():
            opened.attrs[name] = value
        opened.attrs["reference"] = opened[D1].ref
        opened.attrs["lists"] = np.array([np.arange(3), np.arange(5)], dtype=object).astype(h5py.vlen_dtype("i4"))
        opened.attrs["null"] = h5py.Empty("f8")
    names = [*values, "reference", "lists", "null"]
    old = content(f)
    script = "".join(f"COPY /{name} /g2/dset2.1/{name}; DELETE /{name};" for name in names)
    h5edit(f.parent, "-c", script, "f.h5").ok()
    new = content(f)
    for name in names:
        assert ("/", name) not in new
        assert str(new["/g2/dset2.1", name]) == str(old["/", name])
    with h5py.File(f) as opened:
        copies = opened["/g2/dset2.1"].attrs
        assert opened[copies["reference"]].name == D1
        assert copies["vlen"] == "variable" and list(copies["lists"][1]) == [0, 1, 2, 3, 4]


def test_81_a_granule_is_changed_in_place(f):
    text = "CREATE /date {H5T_STRING { STRSIZE 9 } (1,1) {'20120101'}};"
    h5edit(f.parent, "-c", text, "f.h5").ok()
    size = f.stat().st_size
    h5edit(f.parent, "-c", "MODIFY /date {'20130727'};", "f.h5").ok()
    assert f.stat().st_size == size and '"20130727"' in ddl(f)


def test_the_largest_float_is_not_infinity(f):
    script = "CREATE /a {H5T_IEEE_F32BE (2) {3.4028235e38, -3.4028235e38}}; CREATE /n {{3.4028235e38}};"
    h5edit(f.parent, "-c", script, "f.h5").ok()
    largest = float(np.finfo("f4").max)
    with h5py.File(f) as opened:
        assert opened.attrs["a"].tolist() == [largest, -largest] and opened.attrs["n"] == largest
    result = h5edit(f.parent, "-c", "CREATE /b {{3.4028236e38}};", "f.h5")
    assert result.code == 1 and "out of range" in result.err, result.describe()


def test_elements_that_are_not_named_stay_bit_by_bit(f):
    wide = np.array([1, 2, 3], np.longdouble) / 3
    payload = np.array([0x7FF4000000000001, 0x3FF0000000000000], ">u8").view(">f8")   # a signalling NaN, and 1
    with h5py.File(f, "r+") as opened:
        opened.attrs["wide"] = wide
        opened.attrs["payload"] = payload
    h5edit(f.parent, "-c", "MODIFY /wide [1] {2.5}; MODIFY /payload [1] {2}; MODIFY /attr2 [1,0:2] {-7, 8};", "f.h5").ok()
    with h5py.File(f) as opened:
        new = opened.attrs["wide"]
        assert new[0] == wide[0] and new[1] == 2.5 and new[2] == wide[2] and float(wide[0]) != wide[0]
        raw = np.empty(2, ">f8")
        opened.attrs.get_id("payload").read(raw)
        assert raw.view(">u8").tolist() == [0x7FF4000000000001, 0x4000000000000000]
        assert opened.attrs["attr2"].tolist() == [[0, 1], [-7, 8]]


def test_stdin_json_and_diff(f):
    done = pipe(f.parent, "MODIFY /attr2 {4,5,6,7};\nDELETE /nope;\n", "--atomic=inc", "--json", "--command-file", "-", "f.h5")
    assert done.returncode == 1 and done.stderr.startswith("h5edit: stdin:2:8: no attribute nope"), done
    lines = done.stdout.splitlines()
    first, second, summary = map(json.loads, lines)
    assert first["status"] == "ok" and "(0,0): 0, 1" in first["old"] and "(0,0): 4, 5" in first["new"]
    assert (first["line"], first["command"], first["target"]) == (1, "MODIFY", "/ attr2")
    assert second["status"] == "error" and second["message"] == "no attribute nope in /"
    assert summary == {"file": "f.h5", "statements": 2, "done": 1, "dryrun": False, "exit": 1}
    diff = h5edit(f.parent, "--dryrun", "--diff", "-c", "DELETE /attr1; CREATE /a {{1}};", "f.h5").ok().out
    assert '-ATTRIBUTE "attr1" {' in diff and '+ATTRIBUTE "a" {' in diff


def test_json_is_utf_8_whatever_the_file_holds(f):
    with h5py.File(f, "r+") as opened:
        opened.attrs.create("latin", np.bytes_(b"caf\xe9"))
    out = subprocess.run([str(paths.BIN / "h5edit"), "--json", "-c", "SHOW /latin; DELETE /latin;", "f.h5"], cwd=f.parent,
                         capture_output=True, timeout=60, env=hdf5.plain_env()).stdout
    assert [json.loads(line)["status"] for line in out.decode("utf-8").splitlines()[:2]] == ["ok", "ok"]


def test_show_is_as_h5dump_writes(f):
    shown = h5edit(f.parent, "-c", f"SHOW /attr2; SHOW {D1} attr1; LIST /g1/g1.2;", "f.h5").ok().out
    dumped = hdf5.dump(f, "-a", "/attr2").decode()
    assert " ".join(shown.split("}\nATTRIBUTE")[0].split()) in " ".join(dumped.split())
    assert 'EXTERNAL_LINK "extlink" -> "somefile" "somepath"' in shown and 'GROUP "g1.2.1"' in shown


def test_extensions(f):
    (f.parent / "x.csv").write_text("1, 2, 3\n4 5 6\n")
    script = """
        DELETE IF EXISTS /nope; DELETE IF EXISTS /attr1; DELETE IF EXISTS /no/where/a;
        CREATE OR REPLACE /attr2 {H5T_STD_I8LE {5}}; CREATE OR REPLACE /fresh {H5T_STD_I8LE {6}};
        CREATE GROUP /new;
        CREATE DATASET /new/d {H5T_STD_I32LE (2,3) LAYOUT CHUNKED (1,3) FILTER SHUFFLE FILTER DEFLATE 6 DATA FROM 'x.csv'};
        MODIFY DATASET /new/d [1:1, 0:2] {40, 50};
        CREATE /new/d/a {H5T_STD_I32LE (2,2) {1,2,3,4}}; MODIFY /new/d/a[1,0:2] {30,40};
        CREATE /v {H5T_STRING {STRSIZE H5T_VARIABLE; CSET H5T_CSET_UTF8} (2) {'\\u00e9', 'b'}}; MODIFY /v {'longer than before', ''};
        CREATE /e {H5T_ENUM {H5T_STD_I8LE; "RED" 0; "BLUE" -3;} (2) {RED, -3}}; MODIFY /e[0] {'BLUE'};
        LINK HARD /new/d /hard; LINK SOFT /new/d /soft; LINK EXTERNAL 'other.h5' /x /external;
        MOVE /g2/dset2.1 /new/moved; DELETE OBJECT /g2/dset2.2; DELETE IF EXISTS OBJECT /g2/dset2.2;
        CREATE /soft/through {{1}};
    """
    for words in (["--dryrun"], []):
        h5edit(f.parent, *words, "-c", script, "f.h5").ok()
    with h5py.File(f) as o:
        assert o["/new/d"][()].tolist() == [[1, 2, 3], [40, 50, 6]] and o["/new/d"].compression == "gzip"
        assert o["/new/d"].attrs["a"].tolist() == [[1, 2], [30, 40]] and o["/hard"].attrs["through"] == 1
        assert list(o.attrs["v"]) == ["longer than before", ""] and list(o.attrs["e"]) == [-3, -3]
        assert o.attrs["attr2"] == 5 and o.attrs["fresh"] == 6 and "attr1" not in o.attrs
        assert "dset2.2" not in o["g2"] and o["/new/moved"].shape == (10,)
        assert o.get("external", getlink=True).filename == "other.h5"


def test_append(f):
    wide = np.array([1, 2], np.longdouble) / 3
    with h5py.File(f, "r+") as opened:
        opened.attrs["wide"] = wide
        opened.attrs["words"] = ["one", "two"]
        opened.create_dataset("grows", data=np.arange(4).reshape(2, 2), maxshape=(None, 2), dtype=">i2")
        opened.create_dataset("new", shape=(0,), maxshape=(3,), dtype="f4", chunks=(2,))
    before = content(f)
    script = """
        APPEND /wide {2.5}; APPEND / words {'three', ''}; APPEND GROUP / attr2 {4, 5, 6, 7};
        APPEND DATASET /grows [] {4, 5}; APPEND DATASET /grows [] {6, 7, 8, -9}; APPEND DATASET new [] {0.5, 1.5, 2.5};
    """
    h5edit(f.parent, "--dryrun", "-c", script, "f.h5").ok()
    h5edit(f.parent, "-c", script, "f.h5").ok()
    assert changed(before, content(f)) == {("/", "wide"), ("/", "words"), ("/", "attr2"), ("/grows", ""), ("/new", "")}
    with h5py.File(f) as o:
        assert o.attrs["wide"].tolist() == [*wide.tolist(), 2.5] and o.attrs["wide"][0] == wide[0] != float(wide[0])
        assert list(o.attrs["words"]) == ["one", "two", "three", ""] and o.attrs["attr2"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
        assert o.attrs.get_id("attr2").get_type() == h5py.h5t.STD_I32BE
        assert o["grows"][()].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, -9]] and o["new"][()].tolist() == [0.5, 1.5, 2.5]


# Two groups lead to each other by hard links, and one link leads nowhere.
PATTERNS = """CREATE /tmp_a {{1}}; CREATE /xtmp_a {{1}}; CREATE GROUP /g1 tmp_a {{1}}; CREATE /g1/tmp_b {{1}};
    CREATE /g1/g1.1/dset1.1.1/tmp_a {{1}}; CREATE /g2/dset2.1/tmp_ {{1}}; CREATE /g2/dset2.1/'tmp_*' {{1}};
    LINK HARD /g2 /g1/other; LINK HARD /g1 /g2/other; LINK SOFT /g1/g1.1 /soft; LINK SOFT /nowhere /g2/tmp_nowhere;
    CREATE GROUP /g1/tmp_g; CREATE GROUP /g1/tmp_g/tmp_h; CREATE GROUP /g2/tmp_k;"""


def names_like_tmp(f):
    """Attributes, with a blank before their name, and links."""
    with h5py.File(f) as opened:
        attributes = {f"{path} {name}" for path in ("/", "/g1", D1, "/g2/dset2.1") for name in opened[path].attrs}
        links = {f"{path}/{name}" for path in ("/g1", "/g2", "/g1/tmp_g") if path in opened for name in opened[path]}
    return {name for name in attributes | links if "tmp_" in name}


@pytest.mark.parametrize("script, gone", [
    ("DELETE /**/tmp_*;", {"/ tmp_a", "/g1 tmp_a", "/g1 tmp_b", f"{D1} tmp_a", "/g2/dset2.1 tmp_", "/g2/dset2.1 tmp_*"}),
    ("DELETE /tmp_?;", {"/ tmp_a"}), ("DELETE /*/tmp_?;", {"/g1 tmp_a", "/g1 tmp_b"}),
    ("DELETE DATASET /**/tmp_a;", {f"{D1} tmp_a"}), ("DELETE GROUP /**/tmp_a;", {"/ tmp_a", "/g1 tmp_a"}),
    ("DELETE /**/'tmp_*';", {"/g2/dset2.1 tmp_*"}), ("DELETE /g?/**/tmp_;", {"/g2/dset2.1 tmp_"}),
    ("DELETE /soft/dset*/tmp_*;", {f"{D1} tmp_a"}), ("DELETE *tmp_a;", None), ("DELETE /*tmp_a;", {"/ tmp_a", "/ xtmp_a"}),
    ("DELETE IF EXISTS /**/nope*; DELETE IF EXISTS OBJECT /no/**;", set()), ("DELETE /**/nope*;", None),
    ("DELETE OBJECT /g1/tmp_*;", {"/g1/tmp_g", "/g1/tmp_g/tmp_h"}), ("DELETE OBJECT g1//tmp_g/**;", {"/g1/tmp_g/tmp_h"}),
    ("DELETE OBJECT /**/tmp_*;", {"/g1/tmp_g", "/g1/tmp_g/tmp_h", "/g2/tmp_k", "/g2/tmp_nowhere"}),
    ("DELETE OBJECT /**/'tmp_*';", None), ("SHOW /**/tmp_a;", None), ("RENAME /tmp_* x;", None),
    ("CREATE /tmp_* {{1}};", None), ("DELETE /**/dset?.1 tmp_;", None),
], ids=str)
def test_names_with_wildcards(f, script, gone):
    h5edit(f.parent, "-c", PATTERNS, "f.h5").ok()
    image, before = f.read_bytes(), names_like_tmp(f)
    h5edit(f.parent, "--dryrun", "-c", script, "f.h5")
    assert f.read_bytes() == image
    result = h5edit(f.parent, "-c", script, "f.h5")
    if gone is None:
        assert result.code == 1 and f.read_bytes() == image, result.describe()
        return
    assert result.ok().said == "" and before - names_like_tmp(f) == gone


def test_what_a_pattern_takes_away_is_shown(f):
    diff = h5edit(f.parent, "--dryrun", "--diff", "-c", "DELETE /g1/**/attr?;", "f.h5").ok().out
    assert f"-{D1}:\n-ATTRIBUTE \"attr1\" {{" in diff and '-ATTRIBUTE "attr2" {' in diff and "/:" not in diff
    result = h5edit(f.parent, "-c", "DELETE /g1/*/nope?;", "f.h5")
    assert result.code == 1 and "no attribute matches /g1/*/nope?" in result.err, result.describe()
    result = h5edit(f.parent, "-c", "MODIFY /attr? {1};", "f.h5")
    assert result.code == 1 and "found the pattern /attr?; as a name it is written in quotes" in result.err, result.describe()


@pytest.mark.parametrize("script, says", [
    ("APPEND /attr2 {1, 2, 3};", "whole rows, which have 2 values"), ("APPEND /attr1 {};", "at least 1"),
    ("APPEND /attr1 {128};", "out of range"), ("APPEND /nope {1};", "no attribute nope in /"),
    (f"APPEND {D1} attr1 [] {{1}};", "expected '{'"), (f"APPEND DATASET {D1} [] {{{','.join('1' * 10)}}};", "has 10 rows and can have 10"),
    ("APPEND DATASET /grows [] {1, 99999};", "out of range"), ("APPEND DATASET /grows [] {1};", "whole rows"),
    ("APPEND DATASET /grows [0] {1, 2};", "expected ']'"), ("APPEND DATASET /scalar [] {1};", "its space is SCALAR"),
    ("APPEND /grows/scalar {1};", "its space is SCALAR"),
])
@pytest.mark.parametrize("level", ["yes", "inc"])
def test_append_refused(f, script, says, level):
    with h5py.File(f, "r+") as opened:
        opened.create_dataset("grows", data=np.arange(4).reshape(2, 2), maxshape=(None, 2), dtype=">i2")
        opened["grows"].attrs["scalar"] = 1
        opened["scalar"] = 1
    before, image = content(f), f.read_bytes()
    result = h5edit(f.parent, "--atomic", level, "-c", script, "f.h5")
    assert result.code == 1 and says in result.err, result.describe()
    assert f.read_bytes() == image
    result = h5edit(f.parent, "--atomic=no", "-c", script, "f.h5")
    assert result.code == 1 and content(f) == before


@pytest.mark.parametrize("script, says", [
    ("CREATE GROUP /g1;", "/g1 exists already"), ("CREATE GROUP /no/g;", "no such object /no"),
    ("DELETE OBJECT /;", "the root group"), ("MOVE /g1 /g1/g1.1/g;", "cannot be moved into itself"),
    ("DELETE OBJECT /nope;", "no such object /nope"), (f"MODIFY DATASET {D1} [9:2,0] {{1,2}};", "beyond"),
    (f"MODIFY DATASET {D1} [1] {{1}};", "has 2 dimensions"), ("DELETE DATASET /attr1;", "/ is a group, not a dataset"),
    (f"MODIFY {D1}/attr1[27] {{1}};", "beyond the attribute"),
])
def test_extensions_refused(f, original, script, says):
    result = h5edit(f.parent, "-c", script, "f.h5")
    assert result.code == 1 and says in result.err, result.describe()
    assert f.read_bytes() == original


@pytest.mark.parametrize("to", ["/g1/x", "/g1//x", "/g1/./x", "//g1/g1.1/x", "/soft/x", "/alias/x", "/alias/g1.1/x"])
def test_a_group_is_not_moved_into_itself(f, to):
    h5edit(f.parent, "-c", "LINK SOFT /g1 /soft; LINK HARD /g1 /alias;", "f.h5").ok()
    before = f.read_bytes()
    result = h5edit(f.parent, "-c", f"MOVE /g1 {to};", "f.h5")
    assert result.code == 1 and "/g1 cannot be moved into itself" in result.err, result.describe()
    assert f.read_bytes() == before


def test_what_only_looks_like_a_move_into_itself_is_done(f):
    h5edit(f.parent, "-c", "LINK SOFT /g1 /soft; MOVE /soft /g1/back; CREATE GROUP /g1x; MOVE /g1 /g1x/g1;", "f.h5").ok()
    with h5py.File(f) as opened:
        assert opened["/g1x/g1/g1.1/dset1.1.1"].shape == (10, 10)
        assert opened.get("/g1x/g1/back", getlink=True).path == "/g1" and "g1" not in opened


@pytest.mark.parametrize("words", [[], ["--dryrun"], ["--atomic=inc"], ["--atomic=no"]], ids=str)
def test_values_in_other_files_are_not_changed(f, words):
    raw = f.parent / "raw.bin"
    raw.write_bytes(bytes(range(8)))
    with h5py.File(f.parent / "source.h5", "w") as source:
        source.create_dataset("d", data=np.arange(4, dtype="i1"), maxshape=(None,), chunks=(4,))
    with h5py.File(f, "r+") as opened:
        opened.create_dataset("external", shape=(8,), dtype="i1", external=[(str(raw), 0, 8)])
        for name, most, end in (("virtual", 4, 4), ("growing", None, h5py.h5s.UNLIMITED)):
            layout = h5py.VirtualLayout(shape=(4,), maxshape=(most,), dtype="i1")
            source = h5py.VirtualSource(str(f.parent / "source.h5"), "d", shape=(4,), maxshape=(most,))
            layout[:end] = source[:end]
            opened.create_virtual_dataset(name, layout)
        opened["linked"] = h5py.ExternalLink(str(f.parent / "source.h5"), "/d")
    others = {p: p.read_bytes() for p in (raw, f.parent / "source.h5")}
    before = f.read_bytes()
    for name, says in (("external", "has its values in other files"), ("virtual", "has its values in other datasets"),
                       ("growing", "has its values in other datasets"), ("linked", "lies in another file")):
        result = h5edit(f.parent, *words, "-c", f"MODIFY DATASET /{name} [0] {{77}};", "f.h5")
        assert result.code == 1 and says in result.err, result.describe()
        assert "--atomic=no" in words or f.read_bytes() == before
        assert {p: p.read_bytes() for p in others} == others
    h5edit(f.parent, *words, "-c", "CREATE /growing/a {H5T_STD_I8LE {1}}; CREATE /external/a {H5T_STD_I8LE {1}};", "f.h5").ok()
    assert {p: p.read_bytes() for p in others} == others
    with h5py.File(f) as opened:
        assert opened["growing"].shape == (4,) and opened["growing"][()].tolist() == [0, 1, 2, 3]


def test_no_grpc_is_loaded():
    linked = subprocess.run(["ldd", paths.BIN / "h5edit"], capture_output=True, text=True, check=True).stdout
    assert "hdf5" in linked and "grpc" not in linked and "protobuf" not in linked
