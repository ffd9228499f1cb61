"""h5edit and types that are made of others: each is made, as h5dump and h5py see it, changed, and refused what it cannot hold."""

import json
import math
import os
import re
import subprocess
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from random import Random

import h5py
import numpy as np
import pytest

from harness import hdf5
from harness.h5edit import command, content, ddl, h5edit, nothing_beside


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("t") / "t.h5"
    with h5py.File(path, "w") as f:
        f["/g/d"] = np.arange(12, dtype="i1").reshape(3, 4)
        f["/g/t"] = np.dtype([("a", ">i4"), ("b", "f8")])
        f["/g/e"] = h5py.enum_dtype({"RED": 0, "BLUE": -3}, "i1")
        f["soft"] = h5py.SoftLink("/g/d")
        f["far"] = h5py.ExternalLink("other.h5", "/x")
    return path.read_bytes()


@pytest.fixture
def t(tmp_path, original):
    path = tmp_path / "t.h5"
    path.write_bytes(original)
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"] = 1
    return path


PAIR = 'H5T_COMPOUND { H5T_STD_I32BE "a"; H5T_IEEE_F64LE "b"; }'
OBJECT = "H5T_REFERENCE { H5T_STD_REF_OBJECT }"
REGION = "H5T_REFERENCE { H5T_STD_REF_DSETREG }"
TEXT = "H5T_STRING { STRSIZE H5T_VARIABLE; STRPAD H5T_STR_NULLTERM; CSET H5T_CSET_UTF8; CTYPE H5T_C_S1; }"
DEEP = ('H5T_COMPOUND { H5T_STD_I32BE "n"; H5T_STRING { STRSIZE 5; STRPAD H5T_STR_NULLPAD; CSET H5T_CSET_ASCII; CTYPE H5T_C_S1; } "s"; '
        'H5T_COMPOUND { H5T_STD_I16LE "x"; H5T_STD_U8LE "y"; } "in"; H5T_ARRAY { [2][3] H5T_STD_I32LE } "grid"; '
        f'H5T_VLEN {{ H5T_IEEE_F32LE }} "list"; {TEXT} "text"; {OBJECT} "to"; H5T_STD_B16LE "bits"; '
        'H5T_OPAQUE { OPAQUE_TAG "t"; } "raw"; }')


@dataclass
class Row:
    """CREATE /a of a type and its values. h5dump prints type and values; `made` and `dumped` if they differ from the
    script's; h5py reads the values. `changed`: the values after MODIFY."""
    number: str
    kind: str
    count: int
    values: str
    dumped: str = ""
    reads: object = None
    made: str = ""
    changed: str = ""
    modified: str = ""

    def __str__(self):
        return self.number


DONE = [
    Row("compound", PAIR, 2, "{1, 2.5}, {-2, inf}", "{ 1, 2.5 }, { -2, inf }", [(1, 2.5), (-2, float("inf"))],
        changed="{3, nan}, {4, 5}", modified="{ 3, nan }, { 4, 5 }"),
    Row("array", "H5T_ARRAY { [2][3] H5T_STD_I16BE }", 2, "[1,2,3,4,5,6], [-1,-2,-3,-4,-5,-6]",
        "[ 1, 2, 3, 4, 5, 6 ], [ -1, -2, -3, -4, -5, -6 ]", [[[1, 2, 3], [4, 5, 6]], [[-1, -2, -3], [-4, -5, -6]]],
        changed="[0,0,0,0,0,0], [9,9,9,9,9,9]", modified="[ 0, 0, 0, 0, 0, 0 ], [ 9, 9, 9, 9, 9, 9 ]"),
    Row("list", "H5T_VLEN { H5T_STD_I32LE }", 3, "(1, 2, 3), (), (-4)", "(1, 2, 3), (), (-4)",
        changed="(), (7, 8), ()", modified="(), (7, 8), ()"),
    Row("list_be", "H5T_VLEN { H5T_STD_I32BE }", 1, "(1, 2, 3)", "(1, 2, 3)", changed="(4)", modified="(4)"),
    Row("texts", f"H5T_VLEN {{ {TEXT} }}", 2, "('a', 'é', NULL), ()", '("a", "\\37777777703\\37777777651", NULL), ()',
        changed="(''), ('b')", modified='(""), ("b")'),
    Row("opaque", 'H5T_OPAQUE { OPAQUE_TAG "a tag"; }', 2, "01:02:ff:00, 0x61626364", "01:02:ff:00, 61:62:63:64",
        changed="00:00:00:00, 0xFFFFFFFF", modified="00:00:00:00, ff:ff:ff:ff"),
    Row("opaque_size", "H5T_OPAQUE { OPQ_SIZE 1; OPQ_TAG \"x\"; }", 2, "0x01, 0xFF", "0x01, 0xff",
        made='H5T_OPAQUE { OPAQUE_TAG "x"; }', changed="0x02, 0x03", modified="0x02, 0x03"),
    *(Row(f"bits{kind}", f"H5T_STD_B{kind}", 3, "1, 0x80, 255", dumped, [1, 128, 255], changed="2, 3, 0x7f", modified=modified)
      for kind, dumped, modified in (("8LE", "0x01, 0x80, 0xff", "0x02, 0x03, 0x7f"),
                                     ("16BE", "01:00, 80:00, ff:00", "02:00, 03:00, 7f:00"),
                                     ("32LE", "01:00:00:00, 80:00:00:00, ff:00:00:00",
                                      "02:00:00:00, 03:00:00:00, 7f:00:00:00"))),
    Row("bits_dumped", "H5T_STD_B16BE", 2, "02:01, 0x0102", "02:01, 02:01", [258, 258], changed="00:ff, 0", modified="00:ff, 00:00"),
    Row("reference", OBJECT, 4, "/g/d, \"/g\", GROUP '/', NULL", changed="NULL, soft, DATASET 't.h5/g/d', DATATYPE /g/t"
        .replace("soft", "'soft'")),
    Row("region", REGION, 3, "DATASET '/g/d' {REGION_TYPE BLOCK (0,1)-(1,2), (2,3)-(2,3)}, "
        "DATASET '/g/d' {REGION_TYPE POINT (0,1), (2,2)}, NULL", changed="NULL, NULL, DATASET /soft {REGION_TYPE BLOCK (0,0)-(2,3)}"),
    Row("enum", 'H5T_ENUM { H5T_STD_I8LE; "RED" 0; "BLUE" -3; }', 3, "RED, 'BLUE', 0", "RED, BLUE, RED", [0, -3, 0],
        changed="0, 0, BLUE", modified="RED, RED, BLUE"),
    Row("committed", '"/g/t"', 2, "{1, 2.5}, {3, 4}", "{ 1, 2.5 }, { 3, 4 }", [(1, 2.5), (3, 4)],
        changed="{5, 6}, {7, 8}", modified="{ 5, 6 }, { 7, 8 }"),
    Row("committed_path", "/g/e", 1, "BLUE", "BLUE", [-3], made='"/g/e"', changed="RED", modified="RED"),
    Row("committed_within", 'H5T_COMPOUND { "/g/t" "t"; /g/e "e"; }', 1, "{{1, 2.5}, BLUE}", "{ { 1, 2.5 }, BLUE }",
        [((1, 2.5), -3)], changed="{{0, 0}, RED}", modified="{ { 0, 0 }, RED }",
        made=f'H5T_COMPOUND {{ {PAIR} "t"; H5T_ENUM {{ H5T_STD_I8LE; "BLUE" -3; "RED" 0; }} "e"; }}'),
    Row("bfloat16", "H5T_FLOAT_BFLOAT16LE", 4, "1.5, -2, inf, 1.00390624", "1.5, -2, inf, 1", [1.5, -2, float("inf"), 1],
        made="16-bit little-endian floating-point 16-bit precision", changed="0, 1, 2, -inf", modified="0, 1, 2, -inf"),
    Row("bfloat16_be", "H5T_FLOAT_BFLOAT16BE", 1, "-0.5", "-0.5", [-0.5], changed="4", modified="4",
        made="16-bit big-endian floating-point 16-bit precision"),
    Row("half", "H5T_IEEE_F16BE", 2, "1.5, -65504", "1.5, -65504", [1.5, -65504], changed="0, inf", modified="0, inf"),
    Row("deep", DEEP, 1, "{1, 'abc', {-3, 4}, [1,2,3,4,5,6], (1.5, 2), 'é', /g/d, 258, 01:02}",
        changed="{2, '', {0, 255}, [0,0,0,0,0,0], (), '', NULL, 1, ff:ff}"),
]


def joined(text: str) -> str:
    """In single blanks, without the indices of lines, which are where h5dump breaks them, and without addresses."""
    text = re.sub(r"\(\d+(,\d+)*\): ", "", " ".join(text.split()))
    return re.sub(r'\b(DATASET|GROUP|DATATYPE) \d+ "', r'\1 "', text)


def attribute(t, name="a") -> str:
    """h5dump's output about an attribute, from its type on."""
    text = joined(hdf5.dump(t, "-a", f"/{name}").decode())
    return text[text.index("DATATYPE"):]


def shown(t, name="a") -> str:
    return joined(h5edit(t.parent, "-c", f"SHOW /{name};", "t.h5").ok().out)


@pytest.mark.parametrize("row", DONE, ids=str)
def test_a_type_is_made_and_changed(t, row):
    before = content(t)
    for words in (["--dryrun"], []):
        (t.parent / "script").write_text(f"CREATE /a {{{row.kind} ({row.count}) {{{row.values}}}}};")
        h5edit(t.parent, *words, "--command-file", "script", "t.h5").ok()
    dumped = attribute(t)
    assert f"DATATYPE {row.made or row.kind} DATASPACE" in dumped.replace('"/g/t" "t"', f'{PAIR} "t"'), dumped
    assert f"DATA {{ {row.dumped}" in dumped if row.dumped else True, dumped
    if row.reads is not None:
        with h5py.File(t) as opened:
            assert opened.attrs["a"].tolist() == row.reads
    (t.parent / "script").write_text(f"MODIFY /a {{{row.changed}}};")
    h5edit(t.parent, "--command-file", "script", "t.h5").ok()
    assert row.modified in attribute(t) and attribute(t) != dumped
    h5edit(t.parent, "-c", "DELETE /a;", "t.h5").ok()
    assert content(t) == before and nothing_beside(t)


@pytest.mark.parametrize("row", DONE, ids=str)
def test_what_h5dump_and_show_print_is_read_back(t, row):
    """An attribute is made again from its printed form, whole; and its values are put back."""
    (t.parent / "script").write_text(f"CREATE /a {{{row.kind} ({row.count}) {{{row.values}}}}}; COPY /a b; MODIFY /b {{{row.changed}}};")
    h5edit(t.parent, "--command-file", "script", "t.h5").ok()
    wanted, show = attribute(t), shown(t)
    if "-bit " not in wanted:
        dumped = hdf5.dump(t, "-a", "/a").decode()
        body = dumped[dumped.index("DATATYPE"):dumped.rindex("}", 0, dumped.rindex("}"))]
        values = body[body.index("DATA {"):]
        (t.parent / "script").write_text(f"CREATE /dumped {{{body}}}; MODIFY /b {values};")
        h5edit(t.parent, "--command-file", "script", "t.h5").ok()
        assert attribute(t, "dumped") == wanted
        assert attribute(t, "b") == wanted
    body = show[show.index("DATATYPE"):show.rindex("}")]
    (t.parent / "script").write_text(f"CREATE OR REPLACE /a {{{body}}};")
    h5edit(t.parent, "--command-file", "script", "t.h5").ok()
    assert attribute(t) == wanted and shown(t) == show


def test_show_writes_what_h5dump_leaves_out(t):
    script = (f"CREATE /a {{{REGION} (2) {{DATASET /g/d {{REGION_TYPE BLOCK (0,1)-(1,2)}}, NULL}}}};"
              f"CREATE /b {{{OBJECT} (3) {{/g, /g/d, NULL}}}}; CREATE /c {{H5T_OPAQUE {{OPAQUE_TAG 'x'}} {{01:02}}}};"
              "CREATE /d {H5T_FLOAT_BFLOAT16BE {1}};")
    h5edit(t.parent, "-c", script, "t.h5").ok()
    assert 'DATASET "/g/d" {REGION_TYPE BLOCK (0,1)-(1,2)}, NULL' in shown(t)
    assert 'GROUP "/g", DATASET "/g/d", NULL' in shown(t, "b")
    assert 'H5T_OPAQUE { OPQ_SIZE 2; OPAQUE_TAG "x"; }' in shown(t, "c") and "H5T_FLOAT_BFLOAT16BE" in shown(t, "d")
    diff = h5edit(t.parent, "--diff", "-c", "MODIFY /b {NULL, NULL, /g};", "t.h5").ok().out
    assert '-   (0): GROUP "/g", DATASET "/g/d", NULL' in diff and '+   (0): NULL, NULL, GROUP "/g"' in diff


def test_references_lead_where_they_should(t):
    script = (f"CREATE /a {{{OBJECT} (2) {{/soft, /g}}}}; CREATE /r {{{REGION} (2) {{DATASET /g/d {{REGION_TYPE BLOCK (0,1)-(1,2)}}, "
              "DATASET /g/d {REGION_TYPE POINT (2,3), (0,0)}}}; CREATE GROUP /new; MODIFY /a[1] {/new};")
    h5edit(t.parent, "-c", script, "t.h5").ok()
    with h5py.File(t) as f:
        assert [f[ref].name for ref in f.attrs["a"]] == ["/g/d", "/new"]
        block, points = f.attrs["r"]
        assert f["/g/d"][block].tolist() == [[1, 2], [5, 6]]
        space = h5py.h5r.get_region(points, f.id)
        assert space.get_select_elem_pointlist().tolist() == [[2, 3], [0, 0]]


def test_elements_are_changed_beside_others(t):
    kind = f'H5T_COMPOUND {{ H5T_VLEN {{ {TEXT} }} "l"; H5T_ARRAY {{ [2] H5T_STD_I8LE }} "p"; }}'
    script = f"CREATE /a {{{kind} (3) {{{{('a','b'),[1,2]}}, {{(),[3,4]}}, {{('c'),[5,6]}}}}}}; MODIFY /a[1:2] {{{{('x','y','z'),[7,8]}}, {{(),[9,9]}}}};"
    h5edit(t.parent, "-c", script, "t.h5").ok()
    assert '{ ("a", "b"), [ 1, 2 ] }, { ("x", "y", "z"), [ 7, 8 ] }, { (), [ 9, 9 ] }' in attribute(t)


def test_datasets_of_these_types(t):
    script = (f"CREATE DATASET /table {{{PAIR} SIMPLE {{(4) / (H5S_UNLIMITED)}} LAYOUT CHUNKED (2) FILTER DEFLATE 6 FILLVALUE {{-1, nan}}}};"
              "MODIFY DATASET /table [1:2] {{30, 40}, {50, 60}};"
              "CREATE DATASET /lists {H5T_VLEN {H5T_STD_I32LE} (2) LAYOUT CONTIGUOUS DATA {(1,2), ()}}; MODIFY DATASET /lists [1] {(3)};"
              "CREATE DATASET /typed {'/g/t' (2) LAYOUT COMPACT};")
    h5edit(t.parent, "-c", script, "t.h5").ok()
    with h5py.File(t) as f:
        assert f["table"]["a"].tolist() == [-1, 30, 50, -1] and np.isnan(f["table"]["b"][0]) and f["table"]["b"][2] == 60
        assert [list(v) for v in f["lists"][()]] == [[1, 2], [3]]
        assert f["typed"].id.get_type().committed() and f["typed"].shape == (2,)


def test_values_of_a_file(t):
    (t.parent / "x.csv").write_text("{1, 2.5}\n{3, 4}\n")
    h5edit(t.parent, "-c", f"CREATE /a {{{PAIR} (2) FROM 'x.csv'}};", "t.h5").ok()
    assert "{ 1, 2.5 }, { 3, 4 }" in attribute(t)


# Errors that the script alone shows, then errors that only the file shows.
REFUSED = [
    (f"CREATE /a {{{PAIR} {{{{1}}}}}};", "too few values for the compound: expected 2, found 1"),
    (f"CREATE /a {{{PAIR} {{{{1, 2, 3}}}}}};", "too many values for the compound: expected 2, found 3"),
    (f"CREATE /a {{{PAIR} {{{{2147483648, 2}}}}}};", "member a: out of range: the type holds -2147483648 to 2147483647"),
    (f"CREATE /a {{{PAIR} {{{{1, 'x'}}}}}};", "member b: wrong kind of value: a float type takes numbers, found a string"),
    (f"CREATE /a {{{PAIR} (2) {{{{1, 2}}}}}};", "too few values: expected 2, found 1"),
    ("CREATE /a {H5T_ARRAY {[2] H5T_STD_I8LE} {[1]}};", "too few values for the array: expected 2, found 1"),
    ("CREATE /a {H5T_VLEN {H5T_STRING {STRSIZE 3}} {('abc')}};", "string too long"),
    ("CREATE /a {H5T_OPAQUE {OPQ_SIZE 2} {01:02:03}};", "the type has 2 bytes, found 3"),
    ("CREATE /a {H5T_STD_B8LE {256}};", "out of range: the type holds 0 to 255"),
    ("CREATE /a {H5T_FLOAT_BFLOAT16LE {3.4e38}};", "out of range"),
    (f"CREATE /a {{{REGION} {{/g/d}}}};", "a region reference takes DATASET"),
    (f"CREATE /a {{{OBJECT} {{/nope}}}};", "script:1:50: no such object /nope"),
    (f"CREATE /a {{{OBJECT} (2) {{/g, /far}}}};", "script:1:58: /far lies in another file"),
    (f"CREATE /a {{{OBJECT} {{GROUP /g/d}}}};", "/g/d is a DATASET"),
    (f"CREATE /a {{{OBJECT} (2) {{/g, ''}}}};", "script:1:58: an empty path leads to no object"),
    (f"CREATE /a {{{OBJECT} {{GROUP \"\"}}}};", "an empty path leads to no object"),
    (f"CREATE /a {{{REGION} {{DATASET '' {{REGION_TYPE POINT (0)}}}}}};", "an empty path leads to no object"),
    (f"CREATE /a {{{OBJECT} {{'/g\\0/d'}}}};", "a NUL byte in a path"),
    (f"CREATE /c {{{OBJECT} {{/g}}}}; MODIFY /c {{''}};", "an empty path leads to no object"),
    (f"CREATE /a {{H5T_VLEN {{{OBJECT}}} {{(/g, /nope)}}}};", "no such object /nope"),
    (f"CREATE /a {{{REGION} {{GROUP /g {{REGION_TYPE POINT (0)}}}}}};", "/g is not a dataset"),
    (f"CREATE /a {{{REGION} {{DATASET /g/d {{REGION_TYPE POINT (0)}}}}}};", "/g/d has 2 dimensions"),
    (f"CREATE /a {{{REGION} {{DATASET /g/d {{REGION_TYPE BLOCK (0,0)-(0,4)}}}}}};", "beyond /g/d, whose dimension 2 has the size 4"),
    (f"CREATE /a {{{REGION} {{DATASET /g/d {{REGION_TYPE BLOCK (1,0)-(0,0)}}}}}};", "a block ends before it begins"),
    ("CREATE /a {'/nope' {1}};", "script:1:12: no such object /nope"),
    ("CREATE /a {'/g/d' {1}};", "/g/d is not a committed type"),
    ("CREATE /a {'/far' {1}};", "/far lies in another file"),
    ("CREATE /a {H5T_COMPOUND {'/nope' x} {{1}}};", "script:1:26: no such object /nope"),
    ("CREATE /a {'/g/t' {{1, 'x'}}};", "script:1:24: member b: wrong kind of value"),
    ("CREATE /a {'/g/e' (2) {RED, GREEN}};", "script:1:29: no member of the enum; it has"),
    ("CREATE DATASET /a {H5T_VLEN {H5T_STD_I8LE} (2) LAYOUT COMPACT FILLVALUE (1)};", "a fill value of variable length"),
    ("CREATE DATASET /a {'/g/t' (2) LAYOUT COMPACT DATA {{1, 2}, {3}}};", "too few values for the compound"),
    (f"CREATE /c {{{PAIR} {{{{1, 2}}}}}}; MODIFY /c {{{{1}}}};", "too few values for the compound"),
    (f"CREATE /c {{{PAIR} {{{{1, 2}}}}}}; MODIFY /c {{1, 2}};", "a compound takes the values of its members in { }, found an integer"),
    (f"CREATE /c {{{OBJECT} {{/g}}}}; MODIFY /c {{/nope}};", "no such object /nope"),
]


@pytest.mark.parametrize("script, says", REFUSED, ids=range(len(REFUSED)))
def test_what_a_type_cannot_hold_is_refused(t, original, script, says):
    (t.parent / "script").write_text(script)
    for words in (["--dryrun"], []):
        result = h5edit(t.parent, *words, "--command-file", "script", "t.h5")
        assert result.code == 1 and says in result.err and result.err.startswith("h5edit: script:1:"), result.describe()
        assert t.read_bytes() == original and nothing_beside(t)
    h5edit(t.parent, "--atomic=no", "--command-file", "script", "t.h5")
    assert 'ATTRIBUTE "a"' not in ddl(t) and 'DATASET "a"' not in ddl(t)


def test_appended_values_follow_the_type(t):
    script = (f"CREATE /a {{H5T_VLEN {{ {TEXT} }} (1) {{('a')}}}}; APPEND /a {{('b', 'c'), ()}};"
              f"CREATE /r {{{OBJECT} (1) {{/g}}}}; APPEND /r {{/g/d, NULL}}; CREATE /c {{'/g/t' (1) {{{{1, 2}}}}}}; APPEND /c {{{{3, 4}}}};"
              "CREATE DATASET /d {H5T_VLEN {H5T_STD_I8LE} SIMPLE {(1) / (H5S_UNLIMITED)} LAYOUT CHUNKED (2) DATA {(1)}}; APPEND DATASET /d [] {(2, 3)};")
    h5edit(t.parent, "-c", script, "t.h5").ok()
    assert '("a"), ("b", "c"), ()' in attribute(t) and 'DATATYPE "/g/t"' in attribute(t, "c") and "{ 1, 2 }, { 3, 4 }" in attribute(t, "c")
    assert 'GROUP "/g", DATASET "/g/d", NULL' in shown(t, "r")
    with h5py.File(t) as f:
        assert [list(v) for v in f["d"][()]] == [[1], [2, 3]]
    before = t.read_bytes()
    for script, says in (("APPEND /r {/nope};", "no such object /nope"), ("APPEND /c {{5}};", "too few values for the compound")):
        result = h5edit(t.parent, "-c", script, "t.h5")
        assert result.code == 1 and says in result.err, result.describe()
        assert t.read_bytes() == before and nothing_beside(t)


def refused(t, script: str, says: str) -> None:
    """By one line at the place, with the file as it was."""
    before = t.read_bytes()
    result = h5edit(t.parent, "-c", script, "t.h5")
    assert result.code == 1 and says in result.err, result.describe()
    assert t.read_bytes() == before and nothing_beside(t)


def test_a_type_that_committed_ones_make_too_large_is_refused(t):
    with h5py.File(t, "r+") as f:
        f["/g/page"] = np.dtype("S65536")
        h5py.h5t.create(h5py.h5t.OPAQUE, 2**31 - 1).commit(f.id, b"/g/huge")
    says = "the type is too large: a value of it may have 2147483647 bytes"
    for kind, column in (("H5T_ARRAY {[65536] '/g/page'}", 20), ("H5T_ARRAY {[32768] '/g/page'}", 20),
                         ("H5T_COMPOUND {'/g/huge' a; '/g/huge' b; '/g/page' c}", 47),
                         ("H5T_COMPOUND {H5T_STD_I8LE a; '/g/huge' b}", 50),
                         ("H5T_VLEN {H5T_ARRAY {[65536][65536] H5T_STD_I8LE}}", 30)):
        refused(t, f"CREATE DATASET /a {{{kind} (1) LAYOUT CONTIGUOUS}};", f"-c:1:{column}: {says}")
    h5edit(t.parent, "-c", "CREATE DATASET /a {H5T_ARRAY {[32767] '/g/page'} (1) LAYOUT CONTIGUOUS};", "t.h5").ok()
    with h5py.File(t) as f:
        assert f["a"].dtype.itemsize == f["a"].id.get_type().get_size() == 32767 * 65536


def rounded(exact: Fraction, mantissa: int, lowest: int) -> Fraction:
    """To the nearest of a binary float, ties to even."""
    if exact == 0:
        return exact
    exponent = max(math.frexp(exact)[1] - 1, lowest)
    unit = Fraction(2) ** (exponent - mantissa)
    return round(exact / unit) * unit


def numbers(random, mantissa: int, lowest: int, highest: int) -> list:
    """Decimals near midpoints of a binary float, too small ones included, and some anywhere."""
    texts = []
    for _ in range(400):
        exponent = random.randint(lowest - mantissa - 2, highest - 1)
        step = Fraction(2) ** max(exponent - mantissa, lowest - mantissa)
        middle = (random.randint(0, 2 ** (mantissa + 1)) + Fraction(1, 2)) * step
        nudge = middle * random.choice([0, 0, 1, -1]) / Fraction(10) ** random.randint(3, 40)
        value = (random.uniform(0, 4) * step if random.random() < 0.3 else middle + nudge) * random.choice([1, -1])
        texts.append(f"{decimal_of(Fraction(value)):.{random.choice([3, 9, 17, 60])}e}")
    return texts


def decimal_of(exact: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = 400
        return Decimal(exact.numerator) / Decimal(exact.denominator)


@pytest.mark.parametrize("kind, mantissa, lowest, highest", [
    *((f"H5T_IEEE_F16{order}", 10, -14, 15) for order in ("BE", "LE")),
    *((f"H5T_IEEE_F32{order}", 23, -126, 127) for order in ("BE", "LE")),
    *((f"H5T_FLOAT_BFLOAT16{order}", 7, -126, 127) for order in ("BE", "LE")),
])
def test_a_number_is_the_nearest_of_its_type(t, kind, mantissa, lowest, highest):
    seed = Random().randrange(2**32)
    texts = numbers(Random(seed), mantissa, lowest, highest)
    values, count = ", ".join(texts), len(texts)
    (t.parent / "script").write_text(
        f"CREATE /a {{{kind} ({count}) {{{values}}}}}; CREATE /b {{H5T_ARRAY {{[{count}] {kind}}} {{[{values}]}}}};"
        f"COPY /a c; MODIFY /c[0:{count}] {{{values}}};")
    h5edit(t.parent, "--command-file", "script", "t.h5").ok()
    with h5py.File(t) as f:
        held = {name: f.attrs.get_id(name) for name in "abc"}
        size = held["a"].get_type().get_size()
        raw = {name: np.zeros(count, f"V{size}") for name in held}
        for name, attribute in held.items():
            attribute.read(raw[name] if name != "b" else raw[name].reshape(1, count), mtype=attribute.get_type())
    for name, values in raw.items():
        bits = np.frombuffer(values.tobytes(), f"{'>' if kind.endswith('BE') else '<'}u{size}").astype("u8")
        for text, word in zip(texts, bits.tolist()):
            wanted = rounded(Fraction(text), mantissa, lowest)
            assert float_of(word, 8 * size - 1, mantissa, lowest) == wanted, (seed, name, text, hex(word))


def float_of(word: int, sign_at: int, mantissa: int, lowest: int) -> Fraction:
    exponent, rest = word >> mantissa & 2 ** (sign_at - mantissa) - 1, word & 2**mantissa - 1
    whole = rest + (2**mantissa if exponent else 0)
    return (-1) ** (word >> sign_at) * whole * Fraction(2) ** (lowest + max(exponent - 1, 0) - mantissa)


@pytest.mark.parametrize("order", ["LE", "BE"])
@pytest.mark.parametrize("size, offset, bits, dumped", [(2, 3, 5, "0x1f, 0x02, 0x01"), (2, 0, 12, "1f:00, 02:00, 01:00"),
                                                        (4, 7, 12, "1f:00, 02:00, 01:00"), (8, 23, 41, "1f:00:00:00:00:00:00:00, ")])
def test_bitfields_with_bits_beside_them(t, order, size, offset, bits, dumped):
    """Types that no script makes: h5edit prints their bits as a number, and accepts such a number."""
    kind = bytearray(h5py.h5t.STD_B16LE.encode())
    kind[3] = order == "BE"
    kind[6:14] = size.to_bytes(4, "little") + offset.to_bytes(2, "little") + bits.to_bytes(2, "little")
    with h5py.File(t, "r+") as f:
        kind = h5py.h5t.decode(bytes(kind))
        h5py.h5a.create(f.id, b"a", kind, h5py.h5s.create_simple((3,)))
        kind.commit(f.id, b"/g/k")
    h5edit(t.parent, "-c", f"MODIFY /a {{0x1f, 2, {(1).to_bytes(size, 'little').hex(':')}}};", "t.h5").ok()
    with h5py.File(t) as f:
        raw = np.zeros(3, f"V{size}")
        f.attrs.get_id("a").read(raw, mtype=f.attrs.get_id("a").get_type())
    assert [int.from_bytes(v, "big" if order == "BE" else "little") >> offset for v in raw.tolist()] == [0x1f, 2, 1]
    assert f"DATA {{ {dumped}" in attribute(t)
    wanted, values = attribute(t), attribute(t).split("DATA {")[1].split("}")[0]
    assert values in shown(t)
    h5edit(t.parent, "-c", f"MODIFY /a {{0, 0, 0}}; MODIFY /a {{{values}}};", "t.h5").ok()
    assert attribute(t) == wanted
    h5edit(t.parent, "-c", f"CREATE /n {{H5T_COMPOUND {{'/g/k' k}} {{{{{values.split(',')[0]}}}}}}};", "t.h5").ok()
    assert f"{{ {values.split(',')[0].strip()} }}" in shown(t, "n") and values.split(",")[0] in attribute(t, "n")
    refused(t, f"MODIFY /a[1] {{{2**bits}}};", f"out of range: the type holds 0 to {2**bits - 1}")


@pytest.mark.parametrize("words, named", [(["--command-file", "sub"], "sub"),
                                          (["--command-file", "-"], "standard input"),
                                          (["-c", "CREATE /a {H5T_STD_I8LE (1) FROM 'sub'};"], "sub"),
                                          (["-c", "MODIFY /empty FROM 'sub';"], "sub")])
def test_a_directory_is_no_text(t, words, named):
    with h5py.File(t, "r+") as f:
        f.attrs.create("empty", np.zeros(0, "i4"))
    before = t.read_bytes()
    (t.parent / "sub").mkdir()
    directory = os.open(t.parent / "sub", os.O_RDONLY)
    done = subprocess.run([str(w) for w in command(*words, "t.h5")], cwd=t.parent, stdin=directory, text=True, timeout=60,
                          capture_output=True, env=hdf5.plain_env())
    os.close(directory)
    assert done.returncode == 1 and f"cannot read {named}: Is a directory" in done.stderr, done
    assert t.read_bytes() == before


def test_attributes_of_no_elements(t):
    with h5py.File(t, "r+") as f:
        f.attrs.create("numbers", np.zeros((0, 2), "i4"))
        f.attrs.create("texts", np.zeros(0, object), dtype=h5py.string_dtype())
        f.attrs.create("pairs", np.zeros(0, [("a", "i4"), ("b", "f8")]))
    for name in ("numbers", "texts", "pairs"):
        h5edit(t.parent, "-c", f"MODIFY /{name} {{}}; SHOW /{name};", "t.h5").ok()
        refused(t, f"MODIFY /{name} {{1}};", "1")
    h5edit(t.parent, "-c", "APPEND /numbers {1, 2}; APPEND /texts {'a', 'b'}; APPEND /pairs {{1, 2}};", "t.h5").ok()
    with h5py.File(t) as f:
        assert f.attrs["numbers"].tolist() == [[1, 2]] and f.attrs["texts"].tolist() == ["a", "b"]
        assert f.attrs["pairs"].tolist() == [(1, 2)]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_names_that_are_not_ascii_are_told_to_be_utf_8(tmp_path, libver):
    with h5py.File(tmp_path / "t.h5", "w", libver=libver) as f:
        f["d"] = 1
    script = ("CREATE GROUP /é; CREATE GROUP /é/plain; CREATE DATASET '/é/ñ' {H5T_STD_I8LE LAYOUT COMPACT}; LINK HARD /d /ö;"
              "LINK SOFT /d /ü; LINK EXTERNAL x.h5 /y /ß; CREATE GROUP /ascii; MOVE /ascii /é/µ//;")
    h5edit(tmp_path, "-c", script, "t.h5").ok()
    with h5py.File(tmp_path / "t.h5") as f:
        links = {name: f.id.links.get_info(name.encode()).cset for name in ("d", "é", "é/plain", "é/ñ", "ö", "ü", "ß", "é/µ")}
        assert f["é/µ"].name == "/é/µ" and f["ü"][()] == 1
    if libver == "latest":   # The old groups do not keep it.
        assert links == {name: int(not name.split("/")[-1].isascii()) for name in links}


def test_chunks_that_are_too_large_are_shown(t):
    says = "a chunk is too large: it must have less than 4 GiB"
    for kind, chunk in (("H5T_STD_I8LE", 2**32), ("H5T_STD_I32LE", 2**30), ("H5T_STD_I64LE", 2**29)):
        refused(t, f"CREATE DATASET /a {{{kind} SIMPLE {{(1) / (H5S_UNLIMITED)}} LAYOUT CHUNKED ({chunk})}};",
                f"-c:1:{len(kind) + 67}: {says}")
    refused(t, f"CREATE DATASET /a {{'/g/t' SIMPLE {{(1) / (H5S_UNLIMITED)}} LAYOUT CHUNKED ({2**29})}};", f"-c:1:73: {says}")
    h5edit(t.parent, "-c", f"CREATE DATASET /a {{H5T_STD_I32LE SIMPLE {{(1) / (H5S_UNLIMITED)}} LAYOUT CHUNKED ({2**30 - 1})}};", "t.h5").ok()


def test_a_syntax_error_is_told_in_json(t):
    result = h5edit(t.parent, "--json", "-c", "DELETE /g x;\nMODIFY /g {", "t.h5")
    wrong, summary = map(json.loads, result.out.splitlines())
    assert result.code == 1 and result.err.startswith("h5edit: -c:2:"), result.describe()
    assert wrong == {"line": 2, "command": None, "target": None, "status": "error", "message": wrong["message"], "old": None, "new": None}
    assert wrong["message"] in result.err
    assert summary == {"file": "t.h5", "statements": 0, "done": 0, "dryrun": False, "exit": 1}


def test_errors_name_the_attribute_that_is_replaced(t):
    h5edit(t.parent, "-c", "CREATE /a {{1}};", "t.h5").ok()
    before = t.read_bytes()
    result = h5edit(t.parent, "-c", "CREATE OR REPLACE /a {H5T_STRING {STRSIZE 70000} {'x'}};", "t.h5")
    assert result.code == 1 and "create attribute a: " in result.err and "h5edit-new" not in result.err, result.describe()
    assert t.read_bytes() == before
