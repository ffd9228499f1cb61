"""A machine of its own for systemd and our units: this one's files under an overlay, in namespaces, which leaves nothing behind."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .process import Process, Result, run, wait_until

# Stage 1: in a cgroup of its own, which stage 2 takes for the whole tree. What systemd makes below it goes with it.
STAGE_1 = r"""
set -e
scratch=$1 stage=$2
mount --make-rprivate /
mount -t tmpfs scratch "$scratch"
mkdir "$scratch/cgroups"
mount -t cgroup2 cgroups "$scratch/cgroups"
own=$scratch/cgroups/h5m-machine-$$
mkdir "$own"
echo $$ > "$own/cgroup.procs"
rc=0
unshare --cgroup --pid --fork --kill-child --mount --ipc --uts --net sh -c "$3" sh "$scratch" "$stage" || rc=$?
echo $$ > "$scratch/cgroups/cgroup.procs"
find "$own" -depth -type d -exec rmdir {} + || true
exit $rc
"""

# Stage 2: the machine's files, of which only ours and a few users are its own; then systemd.
STAGE_2 = r"""
set -e
top=$1/top
mkdir "$1/upper" "$1/work" "$top"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$top"
mount -t proc proc "$top/proc"
mount -t sysfs -o ro sysfs "$top/sys"
mount -t cgroup2 cgroup2 "$top/sys/fs/cgroup"
for each in run tmp dev; do mount -t tmpfs -o mode=0755 tmpfs "$top/$each"; done
chmod 1777 "$top/tmp"
mkdir "$top/dev/shm"
mount -t tmpfs -o mode=1777 shm "$top/dev/shm"
for each in null zero full random urandom tty; do touch "$top/dev/$each" && mount --bind "/dev/$each" "$top/dev/$each"; done
ln -s pts/ptmx "$top/dev/ptmx"
for each in etc/systemd/system etc/h5mirror var/lib/h5mirror usr/local/lib/systemd; do rm -rf "$top/$each"; done
mkdir -p "$top/etc/systemd/system/service.d"
printf '[Service]\nStandardOutput=append:/run/said-%%p\nStandardError=inherit\n' > "$top/etc/systemd/system/service.d/said.conf"
cp -a "$2"/* "$top/"
printf '[Unit]\nDescription=nothing\n' > "$top/etc/systemd/system/nothing.target"
ip link set lo up
cd "$top"  # Not chroot: systemd makes the namespaces of services with pivot_root too, which wants a real root.
mkdir before
pivot_root . before
umount -l before
exec env -i container=h5m-test PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=nothing.target --log-target=console --log-level=notice --show-status=no
"""


class Machine:
    """Runs systemd as process 1 over the files of this machine and those below `stage`. Wants root."""

    def __init__(self, directory: Path, stage: Path):
        self.logs = directory / "logs"
        scratch = directory / "scratch"
        for each in (self.logs, scratch):
            each.mkdir()
        if not Path("/lib/systemd/systemd").exists() or shutil.which("nsenter") is None:
            pytest.skip("no systemd or no nsenter here")
        self.process = Process(["unshare", "--mount", "sh", "-c", STAGE_1, "sh", scratch, stage, STAGE_2], self.logs,
                               name="machine")
        self.init = 0
        try:
            self._wait_for_init()
        except BaseException:
            self.stop()
            raise

    def _wait_for_init(self) -> None:
        def boots() -> bool:
            if not self.process.running():
                pytest.skip(f"systemd does not start in a namespace here: {self.process.err()[-500:]}")
            self.init = self._find_init()
            return self.init != 0 and self.run(["systemctl", "is-active", "nothing.target"]).code == 0

        wait_until(boots, "systemd does not come up", every=0.1)

    def _find_init(self) -> int:
        """The process that is 1 in there, once it is systemd; 0: not yet."""
        pid = self.process.pid
        # A command of the stages before may end between two looks.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            while (children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
                pid = int(children[0])
                if Path(f"/proc/{pid}/comm").read_text().strip() == "systemd":
                    return pid
        return 0

    def run(self, command, *, user: str = "", timeout: float = 60) -> Result:
        """Runs a program in there, as root or as one of its users with all groups of theirs."""
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
        enter = ["nsenter", f"--target={self.init}", "--mount", "--pid", "--net", "--ipc", "--uts", f"--root=/proc/{self.init}/root",
                 f"--wd=/proc/{self.init}/root"]
        env = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": f"/home/{user}" if user else "/root",
               "LC_ALL": "C.UTF-8"}
        return run([*enter, *become, *command], self.logs, env=env, timeout=timeout)

    def sh(self, script: str, **options) -> str:
        """The output of a shell script in there, which must succeed."""
        return self.run(["sh", "-ec", script], **options).ok().out

    def write(self, path: str, text: str) -> None:
        self.run(["sh", "-ec", 'mkdir -p "$(dirname "$1")"; printf %s "$2" > "$1"', "sh", path, text]).ok()

    def said(self, unit: str) -> str:
        """The output of a unit: there is no journal in there."""
        return self.run(["cat", f"/run/said-{unit.partition('.')[0].partition('@')[0]}"]).out

    def stop(self) -> None:
        """Ends all that runs in there."""
        if self.init:
            try:
                os.kill(self.init, signal.SIGKILL)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + 20
        while self.process.running() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.process.kill()


def may_boot() -> str:
    """Why no machine can be made here, or nothing."""
    if os.geteuid() != 0:
        return "systemd is started in namespaces, which wants root"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--cgroup", "true"], capture_output=True, text=True, timeout=20)
    return tried.stderr.strip() if tried.returncode else ""
