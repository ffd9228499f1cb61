"""./dev bench h5edit: the cost of nine attributes at each level of safety, and whether it grows with the file.

See bench/README.md for what the tables mean and how to read them.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from harness import h5edit_report, h5edit_targets, machine, paths

SCRIPT = "".join(f"CREATE GROUP / bench{n} {{H5T_STD_I32BE (1,2,3) {{11,12,21,22,31,32}}}};\n" for n in range(8)) + \
    "CREATE GROUP / bench8 {H5T_IEEE_F64LE (2,2,2) {0.1E1,0.2E1,-1.1e2,-1.2e2,2.1E-3,2.2E-3,-3.1E-3,-3.2E-2}};\n"
CLEAN_UP = "".join(f"DELETE GROUP / bench{n};\n" for n in range(9))
LEVELS = {"no": ["--atomic=no"], "yes": ["--atomic=yes"], "inc": ["--atomic=inc"], "copy": ["--backup=copy"]}
# Syncs within one run, counted with strace: a cut syncs the journal and the file; the first one two directories too, and the
# end one. A copy syncs itself and its directory when it is made, and both directories at the end.
SYNCS = {"floor": 1, "no": 1, "yes": 5, "inc": 21, "copy": 24}


class Bench:
    def __init__(self, options, directory: Path):
        self.options = options
        self.directory = directory
        self.script = directory / "script"
        self.script.write_text(SCRIPT)
        self.figures = defaultdict(list)   # (megabytes, row) -> seconds of each round

    def run(self) -> None:
        for megabytes in self.options.megabytes:
            file = self.directory / f"granules-{megabytes}.h5"
            subprocess.run([paths.python(), paths.PROGRAMS / "granules.py", file, str(megabytes)], check=True)
            os.sync()
            for number in range(self.options.rounds):
                self._round(file, megabytes)
            print(f"{megabytes} MB: {self.options.rounds} rounds", file=sys.stderr, flush=True)
            file.unlink()

    def _round(self, file: Path, megabytes: int) -> None:
        for durable in ([], ["--durable"]):
            suffix = "+durable" if durable else ""
            self._measure(megabytes, "floor" + suffix, [paths.BIN / "bench_attributes", file, *(["durable"] if durable else [])], file)
            for level, words in LEVELS.items():
                if level == "copy" and megabytes > self.options.copy_max_mb:
                    continue
                command = [paths.BIN / "h5edit", *words, *durable, "--command-file", self.script, file]
                self._measure(megabytes, level + suffix, command, file)
        self.figures[megabytes, "fdatasync"].append(self._sync())

    def _measure(self, megabytes: int, row: str, command: list, file: Path) -> None:
        start = time.perf_counter()
        subprocess.run([str(word) for word in command], check=True)
        self.figures[megabytes, row].append(time.perf_counter() - start)
        # Outside of the timing the file is restored.
        subprocess.run([str(paths.BIN / "h5edit"), "--atomic=no", "-c", CLEAN_UP, str(file)], check=True)
        os.sync()

    def _sync(self) -> float:
        fd = os.open(self.directory / "sync", os.O_WRONLY | os.O_CREAT)
        os.pwrite(fd, os.urandom(16384), 0)
        start = time.perf_counter()
        os.fdatasync(fd)
        seconds = time.perf_counter() - start
        os.close(fd)
        return seconds


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench h5edit", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="11 unless given")
    parser.add_argument("--quick", action="store_true", help="two small files, two rounds: does it work at all?")
    parser.add_argument("--megabytes", help="sizes, comma-separated; 15,38,76,123,310,549,2200 unless given")
    parser.add_argument("--copy-max-mb", type=int, default=2200, help="no --backup=copy above; %(default)s")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, up to 4.5 GB, on a real filesystem")
    parser.add_argument("--figures", type=Path, default=paths.BUILD / "figures", help="where the drawing goes; %(default)s")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    args.rounds = args.rounds or (2 if args.quick else 11)
    args.megabytes = [int(text) for text in (args.megabytes or ("2,4" if args.quick else "15,38,76,123,310,549,2200")).split(",")]
    return args


def main() -> int:
    args = parse()
    facts = {}
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(args, directory)
        bench.run()
    print(h5edit_report.text(args, facts, bench.figures, SYNCS))
    print("\n" + h5edit_report.draw(args, facts, bench.figures, args.figures))
    if args.json:
        rows = [{"megabytes": mb, "row": row, "seconds": seconds} for (mb, row), seconds in bench.figures.items()]
        promised = [row.as_dict() for row in h5edit_targets.check_targets(args.megabytes, bench.figures, SYNCS)]
        args.json.write_text(json.dumps({"facts": facts, "figures": rows, "promised": promised}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
