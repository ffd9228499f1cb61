"""The shipped units, under systemd itself: the steps of docs/how-to/install-a-server.md, with a `group`."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import paths
from harness.fits import FITS, installed  # noqa: F401
from harness.installed import copy_h5py, install
from harness.machine import Machine, may_boot

WRITER = "import h5py, sys; f = h5py.File(sys.argv[1], 'a'); f[sys.argv[2]] = [1] * 1000; f.close()"


PAGE_NEEDS = ("aiohappyeyeballs", "aiohttp", "aiosignal", "attr", "attrs", "frozenlist", "h5grove", "h5py", "h5py.libs", "idna",
              "multidict", "numpy", "numpy.libs", "orjson", "propcache", "tifffile", "typing_extensions.py", "yarl")


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """The files that the machine has besides this one's."""
    if reason := may_boot():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("stage")
    install(Path("/usr/local"), destdir=directory)
    (directory / "opt").mkdir()
    copy_h5py(directory / "opt" / "h5py")
    return directory


@pytest.fixture(scope="module")
def page_s_python(stage, installed):  # noqa: F811
    """As the how-to page has it from pip: a Python of its own, with the package and what its page needs."""
    place = stage / "opt" / "h5mirror-web"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", place], check=True, timeout=100)
    target, = place.glob("lib/python3*/site-packages")
    shutil.copytree(installed, target, dirs_exist_ok=True)
    for source in (each for name in PAGE_NEEDS for each in FITS.glob(f"lib/python3*/site-packages/{name}")):
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, target / source.name)


@pytest.fixture
def machine(stage, tmp_path):
    """A machine with two users: ada is in the group scientists, bob is not."""
    machine = Machine(tmp_path, stage)
    try:
        machine.sh("""
            groupadd scientists
            useradd -m -G scientists ada
            useradd -m bob
            install -d -m 1777 /data
            systemd-sysusers
            systemctl daemon-reload
        """)
        yield machine
    finally:
        machine.stop()


def set_up(machine, toml: str, drop_in: str) -> None:
    machine.write("/etc/h5mirror/h5mirrord.toml", toml)
    machine.write("/etc/systemd/system/h5mirrord.service.d/group.conf", f"[Service]\n{drop_in}\n")
    machine.sh("systemctl daemon-reload")


def start(machine, unit: str) -> None:
    assert machine.run(["systemctl", "start", unit]).code == 0, machine.run(["systemctl", "status", unit]).out + machine.said(unit)


def write(machine, user: str, server: str, file: str, name: str):
    return machine.run(["env", "PYTHONPATH=/opt/h5py", "h5mirror", "--server", server, "exec", "--strict", "--root", "/data",
                        "--", "/usr/bin/python3", "-c", WRITER, file, name], user=user)


# As a browser behind a proxy that has the certificate.
VISIT = """
import http.client, json

def ask(path, method="GET", given=None, **more):
    link = http.client.HTTPConnection("127.0.0.1", 7449, timeout=60)
    headers = {"Host": "files.example.org", "Origin": "https://files.example.org", "Content-Type": "application/json", **more}
    link.request(method, path, None if given is None else json.dumps(given), headers)
    answer = link.getresponse()
    body = answer.read()
    assert answer.status == 200, (path, answer.status, body)
    return body, answer.headers

token = open("/etc/h5mirror/ada.token").read().strip()
_, headers = ask("/api/session", "POST", {"token": token})
cookie = headers["Set-Cookie"].partition(";")[0]
assert "Secure" in headers["Set-Cookie"] and cookie.startswith("__Host-")
print("files", *(each["name"] for each in json.loads(ask("/api/files", Cookie=cookie)[0])["files"]))
body, _ = ask("/api/h5/data?file=run.h5&path=/d&version=1&selection=7&format=json", Cookie=cookie)
print("element", json.loads(body))
print("diff", *(each["path"] for each in json.loads(ask("/api/diff?file=run.h5&old=1&new=2", Cookie=cookie)[0])["changes"]))
"""

SOCKET = "unix:/run/h5mirror/sock"


def test_a_group_reaches_the_socket_and_the_heads_and_others_do_not(machine):
    config = f'listen = ["{SOCKET}"]\ngroup = "scientists"\nsocket_mode = "0660"\n'
    set_up(machine, config, "SupplementaryGroups=scientists")
    assert machine.run(["systemctl", "start", "h5mirrord"]).code != 0
    assert "SystemCallFilter=@chown" in machine.said("h5mirrord")
    set_up(machine, config, "SupplementaryGroups=scientists\nSystemCallFilter=@chown")
    start(machine, "h5mirrord")
    assert machine.sh("stat -c '%G %a' /run/h5mirror/sock").split() == ["scientists", "660"]
    write(machine, "ada", SOCKET, "/data/run.h5", "d").ok()
    refused = write(machine, "bob", SOCKET, "/data/bob.h5", "d")
    assert refused.code == 7, refused.describe()  # Not mirrored.
    machine.run(["h5mirror", "--server", SOCKET, "status", "--wait=60", "run.h5"], user="ada").ok()
    head = "/var/lib/h5mirror/run.h5"
    assert machine.sh(f"stat -c '%G %a' {head}").split() == ["scientists", "640"]
    machine.run(["cmp", "/data/run.h5", head], user="ada").ok()
    assert machine.run(["cat", head], user="bob").code != 0
    assert machine.run(["ls", "/var/lib/h5mirror"], user="bob").code != 0


def test_another_root_is_served_once_it_is_mounted(machine):
    """As the chapter says. A server without the disk would serve the directory below, which is empty."""
    machine.write("/etc/systemd/system/data-mirror.mount", "[Mount]\nWhat=mirror\nWhere=/data/mirror\nType=nosuch\n")
    set_up(machine, "", "ExecStart=\nExecStart=/usr/local/bin/h5mirrord --root /data/mirror\n"
           "ReadWritePaths=/data/mirror\n[Unit]\nRequiresMountsFor=/data/mirror")
    machine.sh("install -d -o h5mirror -g h5mirror -m 0751 /data/mirror")
    assert machine.run(["systemctl", "start", "h5mirrord"]).code != 0
    machine.sh('test -z "$(ls -A /data/mirror)"')

    machine.sh("rm /etc/systemd/system/data-mirror.mount && systemctl daemon-reload")
    start(machine, "h5mirrord")
    write(machine, "ada", "127.0.0.1:7447", "/data/own.h5", "x").ok()
    machine.sh("test -f /data/mirror/own.h5")


def test_as_the_services_own_group_it_reaches_heads_in_directories_too_over_tcp(machine):
    set_up(machine, 'group = "scientists"\n', "Group=scientists")
    start(machine, "h5mirrord")
    machine.sh("install -d -o ada /data/runs/2026")
    write(machine, "ada", "127.0.0.1:7447", "/data/runs/2026/a.h5", "d").ok()
    machine.run(["h5mirror", "status", "--wait=60", "runs/2026/a.h5"], user="ada").ok()
    head = "/var/lib/h5mirror/runs/2026/a.h5"
    machine.run(["cmp", "/data/runs/2026/a.h5", head], user="ada").ok()
    assert machine.run(["cat", head], user="bob").code != 0
    machine.sh("systemctl restart h5mirrord")
    assert machine.sh(f"stat -c %G {head}").strip() == "scientists"


def test_tls_and_tokens_are_set_up_as_the_chapters_say(machine):
    machine.sh("h5mirrord init --user h5mirror --host storage.example.org")
    machine.sh("sed -i 's/^listen.*/listen = [\"127.0.0.1:7447\"]/' /etc/h5mirror/h5mirrord.toml")
    start(machine, "h5mirrord")
    machine.sh("h5mirrord token add ada --rights read,write > /etc/h5mirror/ada.token; systemctl reload h5mirrord")
    machine.sh("""
        install -d -o ada -m 0700 /home/ada/.config /home/ada/.config/h5mirror
        install -o ada -m 0644 /etc/h5mirror/ca.pem /home/ada/.config/h5mirror/ca.pem
        install -o ada -m 0600 /etc/h5mirror/ada.token /home/ada/.config/h5mirror/token
    """)
    write(machine, "ada", "127.0.0.1:7447", "/data/run.h5", "d").ok()
    assert machine.run(["h5mirror", "status"], user="bob").code != 0
    machine.sh("h5mirrord token remove ada; systemctl reload h5mirrord; systemctl stop h5mirrord")


def test_a_check_reads_anybodys_file_and_is_nobody(machine):
    start(machine, "h5mirrord")
    write(machine, "ada", "127.0.0.1:7447", "/data/run.h5", "d").ok()
    machine.sh("chmod 0600 /data/run.h5")
    machine.write("/etc/systemd/system/h5mirror-verify@.service.d/look.conf",
                  "[Service]\nExecStartPost=/bin/grep -E ^(Uid|CapEff|Seccomp): /proc/self/status\n")
    machine.sh("systemctl daemon-reload")
    unit = machine.sh("systemd-escape -p --template=h5mirror-verify@.service /data/run.h5").strip()
    start(machine, unit)
    said = machine.said(unit)
    assert "equal" in said, said
    assert not re.search(r"^Uid:\t0\b", said, re.M) and re.search(r"^Seccomp:\t2", said, re.M), said
    assert int(re.search(r"^CapEff:\t(\w+)", said, re.M)[1], 16) == 1 << 2, said  # CAP_DAC_READ_SEARCH alone.
    machine.sh("printf x | dd of=/data/run.h5 bs=1 seek=2000 conv=notrunc status=none", user="ada")
    assert machine.run(["systemctl", "start", unit]).code != 0
    assert "differ" in machine.said(unit)


def test_the_agent_serves_readers_and_publishes(machine):
    start(machine, "h5mirrord")
    write(machine, "ada", "127.0.0.1:7447", "/data/run.h5", "d").ok()
    machine.sh("install -d -o h5mirror /srv/live")
    machine.write("/etc/h5mirror/h5mirror-agent.toml", """socket_mode = "0660"
[[server]]
address = "127.0.0.1:7447"
[publish]
directory = "/srv/live"
files = ["run.h5"]
""")
    machine.write("/etc/systemd/system/h5mirror-agent.service.d/live.conf", "[Service]\nReadWritePaths=/srv/live\n")
    machine.sh("systemctl daemon-reload")
    start(machine, "h5mirror-agent")
    machine.sh("for i in $(seq 600); do cmp -s /data/run.h5 /srv/live/run.h5 && exit 0; sleep 0.1; done; exit 1", timeout=90)
    assert machine.sh("stat -c '%U %a' /run/h5mirror-agent/agent.sock").split() == ["h5mirror", "660"]


def test_the_page_serves_a_visitor_and_its_readers_are_fenced(page_s_python, machine):
    machine.sh("h5mirrord init --user h5mirror --host 127.0.0.1")
    machine.sh("sed -i 's/^listen.*/listen = [\"127.0.0.1:7447\"]/; 1i http_listen = \"127.0.0.1:7448\"' "
               "/etc/h5mirror/h5mirrord.toml")
    start(machine, "h5mirrord")
    machine.sh("h5mirrord token add ada --rights read,write > /etc/h5mirror/ada.token; systemctl reload h5mirrord")
    machine.sh("""
        install -d -o ada -m 0700 /home/ada/.config /home/ada/.config/h5mirror
        install -o ada -m 0644 /etc/h5mirror/ca.pem /home/ada/.config/h5mirror/ca.pem
        install -o ada -m 0600 /etc/h5mirror/ada.token /home/ada/.config/h5mirror/token
    """)
    for name in ("d", "e"):
        write(machine, "ada", "127.0.0.1:7447", "/data/run.h5", name).ok()
    assert machine.run(["systemctl", "start", "h5mirror-web"]).code != 0  # It has no settings.
    sample = (paths.SOURCE / "deploy/h5mirror-web.env").read_text()
    settings = sample.replace("http://127", "https://127").replace("OPTIONS=", "OPTIONS=--ca /etc/h5mirror/ca.pem")
    machine.write("/etc/h5mirror/h5mirror-web.env", settings)
    start(machine, "h5mirror-web")
    machine.write("/tmp/visit.py", VISIT)
    told = machine.run(["/usr/bin/python3", "/tmp/visit.py"], timeout=120).ok().out
    assert told.split() == ["files", "run.h5", "element", "1", "diff", "/e"], told + machine.said("h5mirror-web")
    main = machine.sh("systemctl show -p MainPID --value h5mirror-web").strip()
    users = machine.sh(f"ps -o user:20= -p {main} --ppid {main}").split()
    assert len(users) >= 2 and {*users} == {"h5mirror-web"}, users  # The page, and a reader at least.


def test_the_page_without_its_package_says_so_and_is_not_started_again(machine):
    machine.write("/etc/h5mirror/h5mirror-web.env", (paths.SOURCE / "deploy/h5mirror-web.env").read_text().replace(
        "/opt/h5mirror-web/bin/python", "/usr/bin/python3"))
    assert machine.run(["systemctl", "start", "h5mirror-web"]).code != 0
    assert "build the wheel with ./dev wheel" in machine.said("h5mirror-web")
    shown = machine.sh("systemctl show -p NRestarts,ExecMainStatus h5mirror-web").split()
    assert sorted(shown) == ["ExecMainStatus=3", "NRestarts=0"], shown


TELL = """#!/bin/sh
cat > $STATE_DIRECTORY/told
touch /usr/told 2> /dev/null && exit 1
grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status > $STATE_DIRECTORY/sandbox
ls /proc/self/fd > $STATE_DIRECTORY/descriptors
"""

HOOK = """#!/usr/bin/python3
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        open("/tmp/posted", "ab").write(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

http.server.HTTPServer(("127.0.0.1", 8099), Handler).serve_forever()
"""


def test_events_leave_the_sandbox_by_web_hook_and_by_a_command_in_it(machine):
    machine.write("/usr/local/bin/tell", TELL)
    machine.write("/usr/local/bin/hook", HOOK)
    machine.sh("chmod 0755 /usr/local/bin/tell /usr/local/bin/hook; systemd-run --unit=hook /usr/local/bin/hook")
    machine.sh("for i in $(seq 300); do ss -ltn | grep -q :8099 && exit 0; sleep 0.1; done; exit 1", timeout=60)
    machine.write("/etc/h5mirror/h5mirrord.toml", """min_free = "1000TiB"
[[notify]]
events = "disk_low"
command = "/usr/local/bin/tell"
[[notify]]
events = "disk_low"
url = "http://127.0.0.1:8099/"
""")
    start(machine, "h5mirrord")
    told = "/var/lib/h5mirror/descriptors"
    machine.sh(f"for i in $(seq 300); do [ -s {told} ] && [ -s /tmp/posted ] && exit 0; sleep 0.1; done; "
               "journalctl -u h5mirrord; exit 1", timeout=60)
    assert machine.sh("cat /var/lib/h5mirror/sandbox").split() == ["NoNewPrivs:", "1", "Seccomp:", "2"]
    assert machine.sh(f"cat {told}").split() == ["0", "1", "2", "3"]
    for file in ("/var/lib/h5mirror/told", "/tmp/posted"):
        assert '"event":"disk_low"' in machine.sh(f"cat {file}")


def test_every_unit_is_loaded_as_it_is_written(machine):
    for unit in ("h5mirrord.service", "h5mirror-agent.service", "h5mirror-web.service", "h5mirror-verify@x.service", "h5mirror-verify@x.timer"):
        shown = machine.sh(f"systemctl show -p LoadState,LoadError,FragmentPath {unit}")
        assert "LoadState=loaded" in shown and "/usr/local/lib/systemd/system/" in shown, shown
