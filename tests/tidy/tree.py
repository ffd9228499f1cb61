"""The project's files, as the checks see them."""

import subprocess

CPP = (".cc", ".h", ".c")
TEXT = CPP + (".py", ".md", ".proto", ".cmake", ".txt", ".json", ".toml", ".sh", ".service", ".in")


class Tree:
    """The files that git tracks or would track, below `root`."""

    def __init__(self, root):
        self.root = root
        listing = subprocess.run(
            ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"],
            cwd=root, capture_output=True, check=True, text=True).stdout
        names = sorted(set(filter(None, listing.split("\0"))))
        # A tracked file may be deleted in the work tree.
        self.paths = [name for name in names if (root / name).is_file()]

    def with_suffix(self, suffixes):
        return [path for path in self.paths if path.endswith(suffixes)]

    def text_files(self):
        """Sources, documents and scripts; binary samples are left out."""
        return [path for path in self.paths if path.endswith(TEXT) or self._has_shebang(path)]

    def shell_scripts(self):
        return [path for path in self.paths if self._first_line(path).startswith(b"#!/bin/bash")]

    def lines(self, path):
        """Pairs of line number, from 1, and text."""
        text = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return list(enumerate(text.split("\n"), start=1))

    def _has_shebang(self, path):
        return self._first_line(path).startswith(b"#!")

    def _first_line(self, path):
        with open(self.root / path, "rb") as file:
            return file.readline(200)
