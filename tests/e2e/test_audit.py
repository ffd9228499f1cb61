"""The audit log: each call leaves a line, one line of jq answers a question, and logrotate turns the file over."""

import json
import os
import re
import subprocess
import time

import pytest

from harness import paths
from harness.process import run, wait_until
from harness.users import ANNA, BOB, CAROL, needs_root, running_host

pytestmark = needs_root

DOC = paths.SOURCE / "docs" / "reference" / "audit.md"


@pytest.fixture
def host(tmp_path):
    with running_host(tmp_path, audit_log=tmp_path / "audit.jsonl") as host:
        host.audit = tmp_path / "audit.jsonl"
        yield host


def lines(host, **fields) -> list[dict]:
    """The lines whose fields have these values."""
    text = host.audit.read_text() if host.audit.exists() else ""  # Between two files there is none.
    every = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
    return [line for line in every if fields.items() <= line.items()]


def await_lines(host, **fields) -> list[dict]:
    wait_until(lambda: lines(host, **fields), f"no line of the audit log has {fields}", 60)
    return lines(host, **fields)


def await_read(host, user: str) -> dict:
    """The first line of a call that gave the user the bytes of a file."""
    def reads():
        return [line for line in lines(host, user=user) if line.get("bytes_sent", 0) > 8000]
    wait_until(reads, f"no line tells of bytes that {user} got", 60)
    return reads()[0]


def test_each_attempt_leaves_a_line_with_its_user(host):
    host.fill()
    host.run(ANNA, "export", f"home/{ANNA}/a.h5@1", "out.h5").ok()
    host.run("robot", "log", f"home/{ANNA}/a.h5").ok()
    assert host.run(BOB, "rm", f"home/{ANNA}/a.h5").code == 3
    written = await_lines(host, method="MirrorFile", event="end", user=ANNA)[0]
    assert written["files"] == [{"name": f"home/{ANNA}/a.h5", "right": "write"}]
    assert written["bytes_received"] > 8000 and written["status"] == "OK" and written["issuer"] == "unix"
    begun = await_lines(host, method="MirrorFile", event="begin", user=ANNA)[0]
    assert begun["files"] == written["files"] and begun["time"] <= written["time"]
    assert re.fullmatch(f"{ANNA}@\\S+ h5mirror \\d+", begun["claimed"]), begun
    read = await_read(host, ANNA)
    assert read["files"] == [{"name": f"home/{ANNA}/a.h5", "right": "read", "version": 1}], read
    assert await_lines(host, method="ListVersions", user="robot")[0]["issuer"] == "token"
    # A name that is hidden from its caller leaves a trace here.
    hidden = await_lines(host, method="RemoveFile", user=BOB)[0]
    assert hidden["status"] == "NOT_FOUND" and hidden["files"][0]["name"] == f"home/{ANNA}/a.h5"
    assert hidden["uid"] != 0 and hidden["seconds"] >= 0


def test_the_documented_line_of_jq_tells_who_read_a_file(host):
    host.fill()
    # The robot is root here, whose tool reads below the server's root itself.
    host.run(CAROL, "export", "beamline/a.h5@1", "out.h5").ok()
    host.run(ANNA, "export", "beamline/a.h5@1", "out.h5").ok()
    host.run(BOB, "export", f"home/{BOB}/a.h5@1", "out.h5").ok()
    for user in (CAROL, ANNA, BOB):
        await_read(host, user)
    command = re.search(r"^    (jq -Rr .*\n(?:      .*\n)*)", DOC.read_text(), re.M).group(1)
    command = command.replace("/var/log/h5mirror/audit.jsonl", str(host.audit))
    command = command.replace("beamline/run.h5", "beamline/a.h5")
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True).stdout
    rows = [row.split("\t") for row in shown.splitlines()]
    assert {row[1] for row in rows} == {CAROL, ANNA}, shown
    assert all(time.strptime(row[0][:19], "%Y-%m-%dT%H:%M:%S") for row in rows), shown


def test_logrotate_turns_it_over_with_the_shipped_snippet(host):
    host.fill()
    await_lines(host, user=CAROL, event="end")
    logs = host.site.logs
    snippet = (paths.SOURCE / "deploy" / "h5mirrord.logrotate").read_text()
    reload = "if systemctl -q is-active h5mirrord.service; then systemctl reload h5mirrord.service; fi"
    assert reload in snippet
    snippet = snippet.replace(reload, f"kill -HUP {host.site.server.process.pid}")
    snippet = snippet.replace("/var/log/h5mirror/audit.jsonl", str(host.audit))
    snippet = snippet.replace("su h5mirror h5mirror", "su root root")
    (logs / "logrotate.conf").write_text(snippet)
    before = host.site.server.log().count("reload")
    run(["/usr/sbin/logrotate", "--force", "--state", logs / "state", logs / "logrotate.conf"], logs,
        timeout=60, name="logrotate").ok()
    wait_until(lambda: host.site.server.log().count("reload") > before, "no reload is logged", 60)
    old = host.audit.with_name("audit.jsonl.1")
    host.run(CAROL, "log", "beamline/a.h5").ok()
    assert await_lines(host, user=CAROL)
    assert f'"user":"{CAROL}"' in old.read_text() and "ListVersions" not in old.read_text()
    assert os.stat(host.audit).st_mode & 0o007 == 0


def test_a_full_disk_under_it_stops_nobody(tmp_path):
    with running_host(tmp_path, audit_log="/dev/full") as host:
        host.fill()
        host.run(ANNA, "log", f"home/{ANNA}/a.h5").ok()
        wait_until(lambda: "audit_log /dev/full: " in host.site.server.log(), "the log tells nothing", 60)
        assert "No space left on device" in host.site.server.log()


def test_standard_output_takes_it_too(tmp_path):
    with running_host(tmp_path, audit_log="-") as host:
        host.fill()
        host.run(ANNA, "log", f"home/{ANNA}/a.h5").ok()
        host.site.server.process.wait_for_line('"method":"ListVersions"')
        lines_of_json = [json.loads(line) for line in host.site.server.process.out().splitlines()
                         if line.startswith("{") and line.endswith("}")]
        assert {line["user"] for line in lines_of_json} >= {ANNA, BOB, CAROL}
