"""schemathesis makes the requests that the HTTP door's OpenAPI document allows, and requests that it forbids."""

import os
import sys
import urllib.request
from pathlib import Path

import pytest

from harness import paths
from harness.process import run

# The answer to a request that the schema allows may be 400: a schema cannot say all that is no name, version or token
# of a page. The stream of events never ends, so nothing waits for its end; tests/e2e/test_http.py reads it.
FLAGS = ("--exclude-checks", "positive_data_acceptance", "--exclude-path-regex", "/events$", "--max-examples", "40",
         "--phases", "examples,coverage,fuzzing", "--request-timeout", "20", "--no-color")


def document(target) -> Path:
    """The OpenAPI document as the server gives it, in a file."""
    with urllib.request.urlopen(f"http://127.0.0.1:{target.server.http_port}/v1/openapi.json", timeout=20) as answer:
        path = target.directory / "openapi.json"
        path.write_bytes(answer.read())
    return path


def push(target, name: str, size: int) -> None:
    """Two versions of a file of `size` bytes."""
    local = target.directory / name
    for _ in range(2):
        local.write_bytes(os.urandom(size))
        token = ("--token", f"@{target.keys}/token") if target.token else ()
        run([paths.BIN / "h5mirror", "--server", target.address, *token, "push", "--any", "--root", target.directory,
             local], target.directory).ok()


@pytest.mark.limit(200)
@pytest.mark.parametrize("tokens", [False, True], ids=["open", "tokens"])
def test_answers_are_those_that_the_document_describes(start, tokens):
    target = start(http_listen="127.0.0.1:0", tokens=tokens, listen="127.0.0.1:0")
    push(target, "0", 300_000)  # schemathesis tries this name
    asked = run([Path(sys.executable).with_name("schemathesis"), "run", document(target), *FLAGS, "--url",
                 f"http://127.0.0.1:{target.server.http_port}",
                 *(("--header", f"Authorization: Bearer {target.token}") if tokens else ())],
                target.directory, cwd=target.directory, timeout=180)
    assert asked.code == 0, asked.out[-6000:]
    target.assert_serves()
