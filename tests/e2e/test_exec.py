"""`h5mirror exec`: its report on files that were not mirrored, and the split between its own words and the
program's."""

import json
import os
import shlex

import pytest

from harness import paths
from harness.process import run

WRITE = """
for path in sys.argv[1:]:
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(10)
"""
NOT_ALL = 7
RULES = [({"include": "*.h5"}, "include=*.h5 does not take it"),
         ({"exclude": "*.dat"}, "exclude=*.dat leaves it out"),
         ({"mode": "off"}, "mode=off mirrors nothing"),
         ({"mode": "remote", "exclude": "*.dat"}, "exclude=*.dat leaves it out"),
         ({"server": "embedded", "exclude": "*.dat"}, "exclude=*.dat leaves it out"),
         ({"exclude": "*.dat", "metadata": "memory"}, "exclude=*.dat leaves it out")]


@pytest.fixture
def site(bare_site):
    """These tests need no history."""
    return bare_site


def execute(site, *words, flags=(), config=None, code=0):
    """`h5mirror exec --strict` of `words`: its result, and the files of its JSON report by name."""
    report = site.directory / "report.json"
    report.unlink(missing_ok=True)
    settings = [] if config is None else ["--config", site.config(**config)]
    result = site.cli("exec", "--strict", "--report", report, *settings, *flags, "--", *words)
    assert result.code == code, result.describe()
    return result, {os.path.basename(file["local"]): file for file in json.loads(report.read_text())["files"]}


def test_files_outside_the_root_fail_strict_and_are_named(site, tmp_path):
    script = site.script(WRITE)
    outside = tmp_path / "outside.h5"
    result, files = execute(site, *script, site.local("in.h5"), outside, flags=["--root", site.work], code=NOT_ALL)
    assert f"NOT mirrored: {outside}" in result.err and f"outside of root={site.work}" in result.err, result.describe()
    assert files["in.h5"]["mirrored"] and files["in.h5"]["server"] == site.address
    assert files["outside.h5"] == {**files["outside.h5"], "mirrored": False, "state": "left_out", "server": ""}
    execute(site, *script, site.local("in.h5"), flags=["--root", site.work])


def test_what_the_rules_leave_out_is_named_with_the_rule_and_fails_strict_unless_it_is_excluded(site):
    for rule, reason in RULES:
        result, files = execute(site, *site.script(WRITE), site.local("odd name \udcff\n.dat"), config=rule,
                                code=0 if "exclude" in rule else NOT_ALL)
        assert reason in result.err, result.describe()
        (left_out,) = files.values()
        assert left_out["detail"] == reason and left_out["local"].endswith("odd name \\xff\n.dat"), left_out
        assert result.err.count("\n") == 1, "the name's newline makes no line"


def test_left_out_files_that_are_only_read_or_not_changed_are_none_of_its_business(site, tmp_path):
    path = tmp_path / "plain.h5"
    site.py(f"h5py.File({str(path)!r}, 'w')['x'] = np.arange(10)", env=site.plain_env())
    script = site.script(f"""
        with h5py.File({str(path)!r}, "r") as f: assert f["x"][3] == 3
        with h5py.File({str(path)!r}, "r+") as f: assert f["x"][3] == 3
    """)
    result, files = execute(site, *script, flags=["--root", site.work])
    assert files == {} and "no file was written through the driver" in result.err, result.describe()


def test_children_and_many_files_are_counted_and_the_list_is_short(site, tmp_path):
    script = site.script("""
        import subprocess
        write = "import h5py, sys; h5py.File(sys.argv[1], 'w').close()"
        subprocess.run([sys.executable, "-c", write, "child.h5"], check=True)
        for n in range(40):
            h5py.File(f"f{n}.h5", "w").close()
            h5py.File(f"f{n}.h5", "a").close()
        if os.fork() == 0:
            h5py.File("forked.h5", "w").close()
            os._exit(0)
        os.wait()
    """)
    result, files = execute(site, "sh", "-c", f"cd {shlex.quote(str(tmp_path))} && {shlex.join(map(str, script))}",
                            flags=["--root", site.work], code=NOT_ALL)
    assert len(files) == 42 and {"child.h5", "forked.h5"} <= set(files), files
    assert result.err.count("NOT mirrored: ") == 20 and "and 22 more files" in result.err, result.describe()


KILLED = """
    f = h5py.File("run.h5", "w")
    for n in range(4):
        f[f"d{n}"] = np.arange(1000)
        f.flush()
    %s
"""


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(0)"])
def test_a_killed_program_is_told_of_with_its_cuts_and_the_way_back(site, end):
    """Also where nothing but the environment names the server: SERVER is no dash."""
    result = site.run([paths.BIN / "h5mirror", "exec", "--strict", "--config", site.config(server=None, ack="durable"),
                       *site.script(KILLED % end)], env={**site.plain_env(), "H5MIRROR_SERVER": site.address})
    assert result.code == (137 if "kill" in end else NOT_ALL), result.describe()
    cut = int(site.status("run.h5")["last_cut"])
    assert cut > 0
    row = next(line.split() for line in result.err.splitlines() if "run.h5" in line)
    assert row[:2] == ["writer", "lost"] and row[3] == str(cut) and row[6] == site.address, result.describe()
    assert f"the server has it up to cut {cut}" in result.err, result.describe()
    assert "mirroring" not in result.err
    way_out = result.err.split("Next: h5mirror ")[1].splitlines()[0].split()
    assert way_out[-2:] == ["recover", str(site.local("run.h5"))], result.describe()
    site.wait_for_no_lease("run.h5")
    site.cli(*way_out).ok()
    site.assert_mirrored("run.h5")


def test_a_killed_program_whose_server_is_away_ends_soon_and_says_so(site):
    script = site.script(f"""
        f = h5py.File("run.h5", "w")
        f["x"] = np.arange(1000)
        f.flush()
        os.kill({site.server.pid}, 9)
        os._exit(0)
    """)
    report = site.directory / "report.json"
    site.run([paths.BIN / "h5mirror", "exec", "--report", report, "--config", site.config(ack="durable"), *script],
             env=site.plain_env()).ok()
    site.server.start()
    (file,) = json.loads(report.read_text())["files"]
    assert file["state"] == "writer_lost" and "its server was not asked" in file["detail"], file
    assert "status" in file["way_out"], file


def test_the_programs_words_are_its_own(site):
    """With and without the "--" that few remember; exec's own flags come before the program."""
    script = site.script("print(sys.argv[1:])")
    words = ["--strict", "-q", "--json", "--", "--server", "nowhere"]
    for marker in ([], ["--"]):
        result = site.cli("exec", "-q", "--root", site.work, *marker, *script, *words).ok()
        assert result.out.strip() == str(words), result.describe()


def test_a_mistyped_flag_of_exec_is_not_taken_for_a_program(site):
    result = site.cli("exec", "--strct", "--", site.python, "-c", "pass")
    assert result.code == 2 and "exec has no flag --strct; did you mean --strict?" in result.err, result.describe()


def test_a_mistyped_word_is_named_and_the_nearest_one(tmp_path):
    for program, words, said in [
            ("h5mirror", ["rolback", "x.h5"], "h5mirror: there is no verb 'rolback'; did you mean rollback?"),
            ("h5mirror", ["log", "--limt", "3", "x.h5"], "h5mirror: log has no flag --limt; did you mean --limit?"),
            ("h5mirrord", ["toke", "add", "x"], "h5mirrord: there is no verb 'toke'; did you mean token?"),
            ("h5mirrord", ["--rot", "/x"], "h5mirrord: h5mirrord has no flag --rot; did you mean --root?"),
            ("h5mirror-agent", ["--servr", "x"],
             "h5mirror-agent: h5mirror-agent has no flag --servr; did you mean --server?"),
            ("h5edit", ["--dryrn", "x.h5"], "h5edit: unknown option --dryrn; did you mean --dryrun?"),
            ("h5perf_serial", ["--comprae"], "h5perf_serial: unknown option --comprae; did you mean --compare?")]:
        result = run([paths.BIN / program, *words], tmp_path)
        assert result.code != 0 and result.err.startswith(said), result.describe()


def test_a_program_whose_name_is_cut_off_amid_a_character_is_seen(site):
    """The kernel keeps 15 bytes of a program's name, whatever they are."""
    program = site.directory / ("ä" * 10)
    program.write_text(f"#!{site.python}\nimport h5py\nh5py.File({str(site.local('x.h5'))!r}, 'w').close()\n")
    program.chmod(0o755)
    report = site.directory / "report.json"
    site.cli("exec", "--strict", "--report", report, "--root", site.work, program).ok()
    (library,) = json.loads(report.read_text())["libraries"]
    assert library["program"], library
