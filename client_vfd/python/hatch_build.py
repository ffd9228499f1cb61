"""A wheel with the plugin in it is for one kind of machine, and for every Python: nothing in it is linked with one."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if (Path(self.root) / "h5mirror" / "_native").is_dir():
            build_data["pure_python"] = False
            build_data["tag"] = "py3-none-linux_x86_64"
