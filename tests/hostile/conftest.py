"""A foreign client against a real h5mirrord: stubs are made from our protos at test time, HTTP/2 frames by hand."""

import importlib
import sys
from pathlib import Path

import grpc
import pytest
from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

from harness import own_directory, paths  # noqa: E402
from harness.limit import limited  # noqa: E402
from harness.own_directory import pytest_sessionfinish  # noqa: E402, F401
from target import Target  # noqa: E402


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    own_directory.choose(config)
    config.addinivalue_line("markers", "limit(seconds): the test is stopped after so long (default 60)")


@pytest.fixture(autouse=True)
def limit(request):
    with limited(request, 60):
        yield


class Stubs:
    """The generated modules: `stubs.files` for files_pb2, `stubs.files_grpc` for files_pb2_grpc, ..."""


@pytest.fixture(scope="session")
def stubs(tmp_path_factory):
    """The stubs of a stranger with our protos and a code generator."""
    out = tmp_path_factory.mktemp("stubs")
    root = paths.SOURCE / "proto"
    protos = sorted(str(path.relative_to(root)) for path in root.rglob("*.proto"))
    builtin = Path(protoc.__file__).resolve().parent / "_proto"
    assert protoc.main(["protoc", f"-I{root}", f"-I{builtin}", f"--python_out={out}", f"--grpc_python_out={out}",
                        *protos]) == 0, "protoc"
    sys.path.insert(0, str(out))
    grpc.__path__.append(str(out / "grpc"))  # The standard services' package has the library's name.
    made = Stubs()
    for proto in protos:
        module, name = proto[:-len(".proto")].replace("/", "."), Path(proto).stem
        setattr(made, name, importlib.import_module(module + "_pb2"))
        setattr(made, name + "_grpc", importlib.import_module(module + "_pb2_grpc"))
    return made


@pytest.fixture
def start(tmp_path, stubs, request):
    """Starts servers: start(tls=True, tokens=True, memory_max="256MiB", ...); they end with the test."""
    started: list[Target] = []

    def start_one(**arguments) -> Target:
        directory = tmp_path / f"server-{len(started)}"
        directory.mkdir()
        target = Target(directory, stubs, **arguments)
        started.append(target)
        target.server.start()
        return target

    yield start_one
    for target in started:
        if request.session.testsfailed:
            print(f"--- {target.address}\n{target.server.log_tail()}")
        target.close()


@pytest.fixture(params=["tls", "tcp", "unix"])
def any_door(request):
    """Arguments for `start`: each kind of listener, with tokens."""
    return {"tls": request.param == "tls", "unix": request.param == "unix", "tokens": True}
