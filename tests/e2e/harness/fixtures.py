"""Fixtures of the tests of whole programs. A server per test, a hard limit per test, logs of failures."""

import contextlib

import pytest

from . import own_directory, paths
from .limit import limited
from .notify import NotifySocket
from .own_directory import pytest_sessionfinish  # noqa: F401
from .package import Package
from .site import Site

H5PY_VERSIONS = ["3.12.1", "3.16.0"]  # HDF5 1.14.4 and 2.0.0.

BYSTANDER = """
for _ in range({times}):
  with h5py.File("bystander.h5", "a") as f:
    n = len(f)
    f[f"d{{n}}"] = np.full(20000, n)
    f.attrs["count"] = n
"""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    own_directory.choose(config)
    config.addinivalue_line("markers", "limit(seconds): the test is stopped after so long (default 300)")
    config.addinivalue_line("markers", "site(**arguments): how the site's server is set up")


def site_of(item) -> Site | None:
    return next((item.funcargs[name] for name in ("bare_site", "module_site", "module_both") if name in item.funcargs), None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed and (site := site_of(item)) is not None:
        try:
            report.sections.append(("h5mirrord's log", site.server.log_tail()))
            for process in site.beside:
                report.sections.append((f"{process.command}", (process.out() + process.err())[-2000:]))
        except FileNotFoundError as gone:  # The test has ended, and its directory was removed.
            report.sections.append(("no logs", str(gone)))


@pytest.fixture(autouse=True)
def limit(request):
    with limited(request, 300):
        yield


def site_arguments(request) -> dict:
    """Those of the mark `site` of a test, or of its module."""
    marker = request.node.get_closest_marker("site")
    return marker.kwargs if marker else {}


@pytest.fixture
def bare_site(request, tmp_path):
    """A site with a running server."""
    site = Site(tmp_path, **site_arguments(request))
    try:
        site.server.start()
        yield site
    finally:
        site.close()


@pytest.fixture
def site(bare_site):
    """A site with a history and a server, both of which must survive the test.

    `bystander.h5` has three versions before the test. After it they are there bit for bit, every
    head opens, the server still runs under the pid that it last had, and takes a fourth version.
    """
    add_bystander(bare_site)
    yield bare_site
    check_bystander(bare_site)


@contextlib.contextmanager
def long_lived_site(directory, **arguments):
    """A site with a history, as `site`, for many tests."""
    site = Site(directory, **arguments)
    try:
        site.server.start()
        add_bystander(site)
        yield site
        check_bystander(site)
    finally:
        site.close()


@pytest.fixture(scope="module")
def module_site(request, tmp_path_factory):
    with long_lived_site(tmp_path_factory.mktemp("shared"), **site_arguments(request)) as site:
        yield site


@pytest.fixture
def shared_site(module_site):
    """As `site`, and one for all tests of a module: each must leave it as good as new."""
    yield module_site
    assert module_site.server.running(), f"the server is gone:\n{module_site.server.log_tail()}"
    assert module_site.server.starts == 1
    module_site.check_kept()


def add_bystander(site):
    site.py(BYSTANDER.format(times=3))
    site.keep("bystander.h5")
    assert site.versions("bystander.h5") == [1, 2, 3]


def check_bystander(site):
    assert site.server.running(), f"the server is gone:\n{site.server.log_tail()}"
    site.check_kept()
    site.py(BYSTANDER.format(times=1))
    site.assert_mirrored("bystander.h5")
    assert site.versions("bystander.h5")[-1] == 4


@pytest.fixture(params=H5PY_VERSIONS)
def h5py_version(request):
    if not paths.venv_python(request.param).exists():
        pytest.skip(f"no environment with h5py {request.param}; ./dev setup makes it")
    return request.param


@pytest.fixture
def both(site, h5py_version):
    """The site with either h5py: HDF5 1.14.4, then 2.0.0."""
    site.python = paths.venv_python(h5py_version)
    return site


@pytest.fixture(scope="module", params=H5PY_VERSIONS)
def module_both(request, tmp_path_factory):
    """As `both`, one with either h5py, for those tests of a module that only read what it has."""
    if not paths.venv_python(request.param).exists():
        pytest.skip(f"no environment with h5py {request.param}; ./dev setup makes it")
    with long_lived_site(tmp_path_factory.mktemp("shared"), h5py=request.param, **site_arguments(request)) as site:
        yield site


@pytest.fixture
def wheel(bare_site, h5py_version):
    """A site of the test's own, without a history, with either h5py."""
    bare_site.python = paths.venv_python(h5py_version)
    return bare_site


@pytest.fixture
def package(bare_site, h5py_version):
    """The Python package with either h5py, and a server."""
    bare_site.python = paths.venv_python(h5py_version)
    return Package(bare_site)


@pytest.fixture
def notify():
    end = NotifySocket()
    yield end
    end.close()
