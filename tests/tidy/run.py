#!/usr/bin/env python3
"""Checks the mechanical rules of the sources; `ctest -R tidy` runs it.

usage: run.py [CHECK...]

Each file of checks/ is one check: its docstring says what it wants and why, its
check(tree) yields findings. Exits 1 if there is any finding.
"""

import importlib.util
import pathlib
import sys

from tree import Tree

HERE = pathlib.Path(__file__).resolve().parent


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(wanted):
    paths = {path.stem: path for path in sorted((HERE / "checks").glob("*.py"))}
    unknown = [name for name in wanted if name not in paths]
    if unknown:
        sys.exit(f"no check {unknown[0]}; there are: {', '.join(paths)}")
    tree = Tree(HERE.parents[1])
    count = 0
    for name in wanted or paths:
        findings = list(load(paths[name]).check(tree))
        print(f"{name}: {len(findings) or 'no'} finding{'s' * (len(findings) != 1)}")
        for finding in findings:
            print(f"  {finding}")
        count += len(findings)
    return 1 if count else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main(sys.argv[1:]))
