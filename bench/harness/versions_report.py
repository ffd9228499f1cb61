"""Tables and JSON of a run of bench/versions.py."""

from dataclasses import asdict, dataclass

from harness.histories import Ours, Plain
from harness.stats import Sample, format_ratio, format_seconds, format_table

_TITLES = {
    "commit": "A version, made by a program that changes {pages} pages of {mib} MiB: open, write, close",
    "safe": "The same, until it survives power loss",
    "open newest": "Opening the newest version", "open oldest": "Opening the oldest version",
    "open any": "Opening a version anywhere in the history",
}
_SINGLE_TITLES = {
    "export": "Export of a version of {export_mib} MiB",
    "sparse": "A safe commit of {pages} pages in a file that is nearly all hole",
    "rollback": "Rollback of 100 pages in a file of {rollback_mib} MiB that is nearly all hole",
    "compression": "Page compression: versions that overwrite an eighth of {compression_mib} MiB",
    "flat": "A safe commit of {pages} pages with few versions and with many, in turns",
    "prune": "Prune",
}


@dataclass
class Report:
    options: object
    facts: dict
    samples: dict
    singles: dict
    failures: list

    def sample(self, label: str, figure: str, rung: int) -> Sample:
        return Sample(self.samples.get((label, figure, rung), []))

    def _labels(self) -> list[str]:
        return list(dict.fromkeys(label for label, _, _ in self.samples))

    def _rungs(self, figure: str) -> list[int]:
        return sorted({rung for _, known, rung in self.samples if known == figure})

    def text(self) -> str:
        parts = [self._head()]
        values = asdict(self.options)
        for figure, title in _TITLES.items():
            if self._rungs(figure):
                parts.append(f"\n## {title.format(**values)}\n\n" + self._ladder_table(figure))
        if self._rungs("bytes"):
            parts.append("\n## History on the disk, per overwritten byte\n\n" + self._bytes_table())
            parts.append("\n## Reading a version front to back\n\n" + self._reads_table())
        for name, rows in self.singles.items():
            parts.append(f"\n## {_SINGLE_TITLES[name].format(**values)}\n\n" + _single_table(rows))
        targets = self.targets()
        if targets:
            parts.append("\n## Targets\n\n" + format_table(
                ["target", "measured", "limit", ""],
                [[t["what"], f"{t['measured']:.2f}", f"{t['limit']:.2f}",
                  "met" if t["met"] else "MISSED"] for t in targets]))
        if self.failures:
            parts.append("\n## Failed\n\n" + "\n".join(f"- {text}" for text in self.failures))
        return "\n".join(parts)

    def _head(self) -> str:
        f = self.facts
        return (f"# bench versions, {f['time']}, commit {f['commit']} ({f['build_type']})\n\n"
                f"{f['cpu']}, {f['cores']} cores, {f['memory_gib']} GiB, Linux {f['kernel']}, "
                f"{f['filesystem']}; HDF5 {f['hdf5']}.\n"
                f"{self.options.rounds} rounds in {f['elapsed_s']} s; load average at the start "
                f"{f['load_average']:.1f}, {f['steal_percent']} % of the time stolen by the "
                f"hypervisor.\nMedians with [min-max]; x: times `{Plain.label}` in the same round.")

    def _ladder_table(self, figure: str) -> str:
        rungs, rows = self._rungs(figure), []
        for label in self._labels():
            row = [label]
            for rung in rungs:
                mine, plain = self.sample(label, figure, rung), self.sample(Plain.label, figure, rung)
                ratio = f", x {format_ratio(mine.over(plain))}" if mine and plain and label != Plain.label else ""
                row.append(format_seconds(mine) + ratio)
            if any(cell != "-" for cell in row[1:]):
                rows.append(row)
        return format_table(["versions there are", *map(str, rungs)], rows)

    def _bytes_table(self) -> str:
        return format_table(["", "bytes"], [
            [label, format_ratio(self.sample(label, "bytes", rung))]
            for rung in self._rungs("bytes") for label in self._labels()
            if self.sample(label, "bytes", rung)])

    def _reads_table(self) -> str:
        rows = []
        for rung in self._rungs("read newest"):
            for label in self._labels():
                newest, old = (self.sample(label, f"read {what}", rung) for what in ("newest", "old"))
                if newest:
                    rows.append([label, str(rung), format_seconds(newest), format_seconds(old),
                                 format_ratio(newest.over(old))])
        return format_table(["", "versions", "newest", "version 2", "speed of version 2 to the newest's"], rows)

    def targets(self) -> list[dict]:
        """The promises of issue and README about our driver, as far as this run measured them."""
        found = []
        if not self.options.with_targets:
            return found

        def check(what: str, measured: float, limit: float, at_least: bool = False) -> None:
            met = measured >= limit if at_least else measured <= limit
            found.append({"what": what, "measured": measured, "limit": limit, "met": met})

        rungs = self._rungs("safe")
        if len(rungs) > 1:
            for what in ("newest", "oldest", "any"):
                rung = self._rungs(f"open {what}")[-1]
                mine, plain = (self.sample(label, f"open {what}", rung) for label in (Ours.label, Plain.label))
                check(f"open {what} at {rung} versions: ms more than a plain open",
                      1e3 * (mine.median - plain.median), 1.0)
            check("history bytes per overwritten byte",
                  self.sample(Ours.label, "bytes", self._rungs("bytes")[-1]).median, 1.1)
            rung = self._rungs("read old")[-1]
            speed = self.sample(Ours.label, "read newest", rung).over(self.sample(Ours.label, "read old", rung))
            check("speed of an old version to the newest's", speed.median, 0.5, at_least=True)
        self._check_singles(check)
        return found

    def _check_singles(self, check) -> None:
        if rows := self.singles.get("flat"):
            few, many = (Sample(row["a safe commit"]) for row in rows.values())
            check(f"commit at {list(rows)[1]} to that at {list(rows)[0]}", many.over(few).median, 1.3)
        if rows := self.singles.get("export"):
            cp = Sample(rows["cp --reflink=never"]["on the disk"])
            for row in ("h5mirror export, newest", "h5mirror export, old"):
                check(f"{row}, to cp, on the disk", Sample(rows[row]["on the disk"]).over(cp).median, 1.2)
        if rows := self.singles.get("sparse"):
            small, huge = (Sample(values).median for values in rows[Ours.label].values())
            check("commit in the huge sparse file to that in 10 MB", huge / small, 1.3)
        if rows := self.singles.get("rollback"):
            check("rollback of 100 pages, seconds",
                  Sample(rows["h5mirror rollback"]["until it returns"]).median, 1.0)

    def as_dict(self) -> dict:
        ladder = [{"history": label, "figure": figure, "versions": rung, "rounds": values}
                  for (label, figure, rung), values in self.samples.items()]
        return {"machine": self.facts, "options": asdict(self.options), "ladder": ladder,
                "singles": self.singles, "targets": self.targets(), "failures": self.failures}


def _single_table(rows: dict) -> str:
    """Columns that name a unit or a ratio are numbers, the others times."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))

    def cell(column: str, values: list[float] | None) -> str:
        if not values:
            return "-"
        number = column.endswith(", MiB") or " per " in column
        return format_ratio(Sample(values)) if number else format_seconds(Sample(values))

    return format_table(["", *columns], [[name, *(cell(column, row.get(column)) for column in columns)]
                                         for name, row in rows.items()])
