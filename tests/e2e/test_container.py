"""The image of deploy/container: it is built, and its server runs from its files as compose.yaml says."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from harness import hdf5, paths
from harness.metrics import free_port
from harness.process import Process, run, wait_until
from harness.users import needs_root

pytestmark = [needs_root, pytest.mark.limit(1500)]

UID = 7447
CONTAINER = paths.SOURCE / "deploy/container"

# Only the parts of a container that compose.yaml asks for: the files read-only, two places that are not, and no rights.
# podman run wants cgroups and limits that a machine for tests may not have.
RUN = r"""
set -e
image=$1 etc=$2 data=$3
shift 3
mount --make-rprivate /
mount --bind "$image" "$image"
mount -o remount,ro,bind "$image"
mount --bind "$etc" "$image/etc/h5mirror"
mount --bind "$data" "$image/var/lib/h5mirror"
mount -t tmpfs tmpfs "$image/tmp"
mount -t proc proc "$image/proc"
exec chroot "$image" setpriv --reuid=7447 --regid=7447 --clear-groups --bounding-set=-all --inh-caps=-all \
  --no-new-privs -- "$@"
"""


class Image:
    """podman's, in a store of its own."""

    def __init__(self, directory):
        self.directory = directory
        self.podman = ["podman", "--root", directory / "store", "--runroot", directory / "run"]

    def build(self) -> None:
        logs = self.directory
        run(["unshare", "--mount", "debootstrap", "--variant=minbase",
             "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg", "bookworm", logs / "base",
             os.environ.get("H5MIRROR_DEBIAN_MIRROR", "http://deb.debian.org/debian")], logs, timeout=900).ok()
        run(["tar", "-C", logs / "base", "-cf", logs / "base.tar", "."], logs, timeout=300).ok()
        run([*self.podman, "import", "-q", logs / "base.tar", "localhost/debian:12"], logs, timeout=300).ok()
        run(["cmake", "--install", paths.BUILD, "--prefix", "/usr/local"], logs, timeout=300,
            env={**os.environ, "DESTDIR": str(logs / "image")}).ok()
        run([*self.podman, "build", "-q", "--isolation=chroot", "--network=host", "--build-arg", "BASE=localhost/debian:12",
             "-t", "h5mirror", "-f", CONTAINER / "Containerfile", logs / "image"], logs, timeout=900).ok()

    def settings(self) -> dict:
        return json.loads(run([*self.podman, "image", "inspect", "h5mirror"], self.directory, timeout=60).ok().out)[0]["Config"]

    def mount(self) -> str:
        return run([*self.podman, "image", "mount", "h5mirror"], self.directory, timeout=60).ok().out.strip()

    def close(self) -> None:
        for command in (["image", "unmount", "--all"], ["image", "rm", "--all", "--force"]):
            subprocess.run([*self.podman, *command], check=False, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if not paths.TEST_ALL or shutil.which("podman") is None:
        pytest.skip("of ./dev test --all, where podman is")
    image = Image(tmp_path_factory.mktemp("image"))
    try:
        image.build()
        yield image
    finally:
        image.close()


class Container:
    def __init__(self, image: Image, directory):
        self.image, self.directory = image, directory
        self.etc, self.data = directory / "etc", directory / "data"
        for each in (self.etc, self.data):
            each.mkdir()
            shutil.chown(each, UID, UID)
        self.enter = ["unshare", "--mount", "sh", "-c", RUN, "sh", image.mount(), self.etc, self.data]
        settings = image.settings()
        assert settings["User"] == "h5mirror", settings
        self.entry, self.usual = settings["Entrypoint"], settings["Cmd"]
        self.address = f"127.0.0.1:{free_port()}"
        self.server: Process | None = None

    def run(self, *arguments):
        return run([*self.enter, *self.entry, *arguments], self.directory, timeout=60)

    def start(self) -> None:
        self.server = Process([*self.enter, *self.entry, *self.usual, "--listen", self.address], self.directory, name="container")
        wait_until(lambda: "serves" in self.server.err() + self.server.out() or not self.server.running(), "no start", 60)
        assert self.server.running(), self.server.err() + self.server.out()

    def stop(self) -> None:
        self.server.signal(signal.SIGTERM)
        self.server.wait(60).ok()

    def client(self, *arguments):
        secrets = ["--ca", self.directory / "ca.pem", "--token", f"@{self.directory}/token"]
        return run([paths.BIN / "h5mirror", "--server", self.address, *secrets, *arguments], self.directory, timeout=60,
                   env=hdf5.plain_env(HOME=str(self.directory)))


def test_its_server_runs_from_read_only_files_without_rights(image, tmp_path):
    container = Container(image, tmp_path)
    container.run("init", "--host", "127.0.0.1").ok()
    for name in ("ca.pem", "token"):
        shutil.copy(container.etc / name, tmp_path / name)
    container.start()
    try:
        local = tmp_path / "run.h5"
        run([sys.executable, "-c", "import h5py; h5py.File('run.h5', 'w')['x'] = range(1000)"], tmp_path, cwd=tmp_path,
            env=hdf5.plain_env()).ok()
        container.client("push", local, "--name", "run.h5").ok()
        head = container.data / "run.h5"
        hdf5.assert_same(local, head)
        assert head.stat().st_uid == UID
        container.stop()
        container.start()
        versions = json.loads(container.client("log", "run.h5", "--json").ok().out)["versions"]
        assert [each["version"] for each in versions] == [1], versions
    finally:
        container.stop()


def test_compose_asks_for_what_the_test_gives(tmp_path):
    # By the Python of podman-compose, which has a reader of YAML.
    script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))"
    read = run(["/usr/bin/python3", "-c", script, CONTAINER / "compose.yaml"], tmp_path, timeout=60)
    if "No module named 'yaml'" in read.err:
        pytest.skip("no python3-yaml")
    service = json.loads(read.ok().out)["services"]["h5mirrord"]
    assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["tmpfs"] == ["/tmp"], service
    assert service["security_opt"] == ["no-new-privileges:true"] and "user" not in service, service
    assert service["volumes"] == ["./etc:/etc/h5mirror", "heads:/var/lib/h5mirror"], service
    assert service["ports"] == ["7447:7447"] and service["image"] == "h5mirror", service
