"""Fixtures of h5edit's tests: the file of the examples, F, fresh for each test."""

import pytest

from .h5edit import make_fixture


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    return make_fixture(tmp_path_factory.mktemp("f") / "f.h5").read_bytes()


@pytest.fixture
def f(tmp_path, original):
    path = tmp_path / "f.h5"
    path.write_bytes(original)
    return path
