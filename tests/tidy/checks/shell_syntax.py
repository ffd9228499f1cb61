"""Shell scripts parse, stop at the first error, and can be executed."""

import os
import subprocess


def check(tree):
    for path in tree.shell_scripts():
        result = subprocess.run(["bash", "-n", path], cwd=tree.root, capture_output=True, text=True)
        if result.returncode:
            yield f"{path}: {result.stderr.strip()}"
        if not any(line.startswith("set -euo pipefail") for _, line in tree.lines(path)):
            yield f"{path}: has no `set -euo pipefail`"
        if not os.access(tree.root / path, os.X_OK):
            yield f"{path}: is not executable"
