"""Programs that use the Python package h5mirror (client_vfd/python), from the source tree."""

import contextlib
import re

from . import paths
from .process import Process, run
from .site import Site

PACKAGE = paths.SOURCE / "client_vfd" / "python"


class Package:
    """A site whose programs use the package, with no driver in their environment."""

    first = "import h5mirror"  # what a program begins with

    def __init__(self, site):
        self.site = site
        self.url = f"h5mirror://{site.address}/run.h5"

    def env(self, **more) -> dict[str, str]:
        return {**self.site.plain_env(), "PYTHONPATH": str(PACKAGE), "H5MIRROR_PLUGIN_DIR": str(paths.LIB),
                "PATH": f"{paths.BIN}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", **more}

    def script(self, text: str, first: str | None = None, config: str | None = None) -> list:
        names = f"{first or self.first}\nURL = {self.url!r}\nSERVER = {self.site.address!r}\nCONFIG = {config or self.site.config()!r}\n"
        return self.site.script(names + re.sub(r"(?m)^ {4}", "", text))

    def run(self, text: str, first: str | None = None, config: str | None = None, **env):
        return self.site.run(self.script(text, first, config), env=self.env(**env))

    def start(self, text: str, *, talks: bool = False, **env) -> Process:
        """Runs it beside the test."""
        return self.site.start(self.script(text), env=self.env(**env), talks=talks)

    def py(self, text: str, **options) -> str:
        return self.run(text, **options).ok().out

    def raised(self, expression: str, setup: str = "", **options) -> str:
        """The type and the text of what an expression raises."""
        return self.py(f"""{setup}
    try:
        {expression}
    except Exception as error:
        print(type(error).__name__, error)
    """, **options)


@contextlib.contextmanager
def secured(directory, h5py: str):
    """A package beside a server with TLS and tokens, and the arguments that its programs have to give."""
    secrets = directory / "secrets"
    run([paths.BIN / "h5mirrord", "init", "--dir", secrets, "--host", "127.0.0.1"], directory).ok()
    site = Site(directory, h5py=h5py,
                options={"tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key", "tokens_file": secrets / "tokens"})
    try:
        site.server.start()
        yield Package(site), f"ca='{secrets}/ca.pem', token=open('{secrets}/token').read().strip()"
    finally:
        site.close()
