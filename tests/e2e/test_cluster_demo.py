"""`./dev cluster` checks by itself what it shows."""

import sys

import pytest

from harness import paths
from harness.ceph import missing_packages
from harness.process import Process, run, wait_until

DEMO = paths.SOURCE / "tests" / "demo" / "cluster"


def start(directory, *arguments) -> Process:
    return Process([sys.executable, DEMO, "--build", paths.BUILD, "--python", sys.executable, *arguments], directory)


def test_a_killed_server_is_followed_by_another_one_on_a_local_directory(tmp_path):
    shown = start(tmp_path, "--local").wait(150).ok().out
    assert "first durable ack of the successor" in shown and "All steps were checked" in shown


def test_the_same_on_a_ceph_of_this_machine(tmp_path):
    if not paths.TEST_ALL or missing_packages():
        pytest.skip("a Ceph is started with --all only, where it is installed")
    shown = start(tmp_path).wait(150).ok().out
    assert "Ceph's OSDs refuse its addresses" in shown and "All steps were checked" in shown


def test_keep_goes_on_until_it_is_interrupted(tmp_path):
    demo = start(tmp_path, "--local", "--keep")
    demo.wait_for_line("Kept until Ctrl-C", 150)
    address = demo.out().split("--server ")[-1].split()[0]
    run([paths.BIN / "h5mirror", "--server", address, "ls"], tmp_path).ok()
    demo.popen.terminate()
    demo.wait(60).ok()
    wait_until(lambda: run([paths.BIN / "h5mirror", "--server", address, "ls"], tmp_path).code != 0, "it serves on")


def test_help_needs_no_build(tmp_path):
    shown = run([paths.SOURCE / "dev", "cluster", "--help"], tmp_path).ok().out
    assert "--local" in shown and "--keep" in shown and all(len(line) <= 100 for line in shown.splitlines())
