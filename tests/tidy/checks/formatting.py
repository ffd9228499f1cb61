"""C and C++ are formatted by clang-format 14 and .clang-format; `./dev format` does it."""

import shutil
import subprocess

from tree import CPP


def check(tree):
    program = shutil.which("clang-format-14")
    if not program:
        print("formatting: clang-format-14 is not installed, so this is not checked")
        return
    sources = tree.with_suffix(CPP)
    if not sources:
        return
    result = subprocess.run(
        [program, "--dry-run", "-Werror", "--ferror-limit=1", *sources],
        cwd=tree.root, capture_output=True, text=True)
    for line in result.stderr.splitlines():
        if "error:" in line:
            yield f"{line.split(' error:')[0]} not formatted; ./dev format does it"
