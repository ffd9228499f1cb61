"""Tables, targets and JSON of a run of bench/follow.py."""

from dataclasses import asdict, dataclass

from harness import follow_crowd, follow_scans, follow_tables
from harness.follow_latency import percentile
from harness.follow_targets import check
from harness.stats import Sample, format_ratio, format_seconds, format_table


@dataclass
class Report:
    options: object
    facts: dict
    results: dict
    notes: list
    failures: list

    def text(self) -> str:
        parts = [self._head()]
        writers = {"tables": self._tables, "latency": self._latency, "reading": self._reading,
                   "scans": lambda: follow_scans.text(self.results["scans"], self.options.scan_mib),
                   **{name: lambda n=name, f=files: self._crowd(n, f)
                      for name, files in follow_crowd.sets(self.options).items()},
                   "subscribers": self._subscribers}
        for name, writer in writers.items():
            if self.results.get(name):
                parts.append(writer())
        if targets := self.targets():
            parts.append("\n## Targets\n\n" + format_table(
                ["target", "measured", "limit", ""],
                [[t["what"], f"{t['measured']:.3g}", f"{'>= ' if t['at_least'] else '<= '}{t['limit']:g}",
                  "met" if t["met"] else "MISSED"] for t in targets]))
        for title, lines in (("Notes", self.notes), ("Failed", self.failures)):
            if lines:
                parts.append(f"\n## {title}\n\n" + "\n".join(f"- {line}" for line in lines))
        return "\n".join(parts)

    def _head(self) -> str:
        f = self.facts
        return (f"# bench follow, {f['time']}, commit {f['commit']} ({f['build_type']})\n\n"
                f"{f['cpu']}, {f['cores']} cores, {f['memory_gib']} GiB, Linux {f['kernel']}, {f['filesystem']}; "
                f"HDF5 {f['hdf5']}, gRPC {f['grpc']}.\nAll in {f['elapsed_s']} s; load average at the start "
                f"{f['load_average']:.1f}, {f['steal_percent']} % of the time stolen by the hypervisor.\n"
                f"Medians with [min-max].")

    # Part 1.

    def sample(self, row: str, variant: str, figure: str) -> Sample:
        return Sample(each and each.get(figure) for each in self.results.get("tables", {}).get(row, {}).get(variant, []))

    def ratio(self, row: str, variant: str, base: str, figure: str) -> Sample:
        return self.sample(row, variant, figure).over(self.sample(row, base, figure))

    def _tables(self) -> str:
        parts = [f"\n## 1. Writing while others follow: ticks of {self.options.tick_ms:g} ms, "
                 f"{self.options.table_rounds} rounds"]
        for table in dict.fromkeys(row.table for row in self.options.rows):
            rows = [row for row in self.options.rows if row.table == table]
            parts.append(f"\n### {table}\n\n{self._time_table(rows)}\n\n{self._cost_table(rows)}")
        return "\n".join(parts)

    def _time_table(self, rows: list) -> str:
        """Until the last call before the close has returned."""
        lines = []
        for row in rows:
            line = [row.title, format_seconds(self.sample(row.key, "plain", "felt_s"))]
            line += [format_ratio(self.ratio(row.key, variant, "plain", "felt_s"))
                     for variant in ("ticked", "mirrored", "followed")]
            line.append(format_ratio(self.ratio(row.key, "followed", "ticked", "felt_s")))
            line.append(f"{row.theirs_s[1] / row.theirs_s[0]:.2f}" if row.theirs_s else "-")
            lines.append(line)
        return format_table(["objects", "sec2, until the close", "flushed, x sec2", "mirrored, x sec2", "followed, x sec2",
                             "followed, x sec2 flushed", "VFD SWMR, x plain (2021)"], lines)

    def _cost_table(self, rows: list) -> str:
        lines = []
        for row in rows:
            line = [row.title]
            line += [format_seconds(self.sample(row.key, variant.key, "close_s")) for variant in follow_tables.VARIANTS]
            line += [format_seconds(self.sample(row.key, variant, "cpu_s")) for variant in ("plain", "ticked", "mirrored")]
            line.append(format_ratio(self.ratio(row.key, "followed", "mirrored", "cpu_s")))
            line += [_count(self.sample(row.key, variant, "ticks")) for variant in ("ticked", "mirrored")]
            line.append(_count(self.sample(row.key, "followed", "follower_files")))
            lines.append(line)
        closes = [f"close: {variant.label}" for variant in follow_tables.VARIANTS]
        return format_table(["objects", *closes, "CPU: sec2", "CPU: sec2, flushed", "CPU: mirrored", "CPU: followed, x mirrored",
                             "ticks: sec2, flushed", "ticks: mirrored", "files the follower saw"], lines)

    # Parts 2 to 4.

    def latency(self) -> list[dict]:
        return [{"readers": each["readers"], "passed_over": each["passed_over"] / (each["readers"] * each["ticks"]),
                 **{f"p{percent:g}_s": percentile(each["latencies_s"], percent) for percent in (50, 99, 100)}}
                for each in self.results.get("latency", [])]

    def _latency(self) -> str:
        rows = [[str(each["readers"]), *(f"{1e3 * each[key]:.2f} ms" for key in ("p50_s", "p99_s", "p100_s")),
                 f"{100 * each['passed_over']:.1f} %"] for each in self.latency()]
        return (f"\n## 2. From the flush to the new value in a reader: {self.options.ticks:,} ticks of 100 ms\n\n"
                + format_table(["readers", "p50", "p99", "max", "ticks passed over"], rows))

    def _reading(self) -> str:
        parts = ["\n## 3. Many objects in one file"]
        for section, rows in self.results["reading"].items():
            columns = list(next(iter(rows.values())))
            base = Sample(rows.get("sec2, cold", rows.get("sec2", {})).get("total", []))
            lines = [[name, *(format_seconds(Sample(row[column])) for column in columns),
                      format_ratio(base.over(Sample(row["total"])))] for name, row in rows.items()]
            speed = "speed, x sec2" + (" cold" if "sec2, cold" in rows else "")
            parts.append(f"\n### {section}\n\n" + format_table(["", *columns, speed], lines))
            if "sec2, warm" in rows:
                most = format_ratio(base.over(Sample(rows["sec2, warm"]["total"])))
                parts.append(f"\nWhere all of the file is in memory already (sec2, warm) it is {most}: the rest is HDF5's own work.")
        if how := self.facts.get("caches emptied by"):
            parts.append(f"\nCold: page caches emptied by {how}.")
        return "\n".join(parts)

    def crowd_ratio(self, processes: int, way: str = follow_crowd.REMOTE, part: str = "crowd") -> Sample:
        crowd = self.results[part]
        return Sample(crowd[follow_crowd.LOCAL][processes]).over(Sample(crowd[way][processes]))

    def _crowd(self, part: str, files: follow_crowd.FileSet) -> str:
        crowd = self.results[part]
        others = [way for way in crowd if way != follow_crowd.LOCAL]
        rows = [[str(processes), *(format_seconds(Sample(crowd[way][processes])) for way in crowd),
                 *(format_ratio(self.crowd_ratio(processes, way, part)) for way in others)]
                for processes in crowd[follow_crowd.LOCAL]]
        return (f"\n### {files.title}\n\n"
                + format_table(["processes", *crowd, *(f"{way}: speed, x sec2 (TeraVAP: 2.4)" for way in others)], rows))

    def _subscribers(self) -> str:
        rows = []
        for each in self.results["subscribers"]:
            cuts = each["cuts"]
            rows.append([f"{each['subscribers']:,}", each["reads"], str(each["processes"]),
                         f"{each['connected_mib']:.1f} MiB", f"{each['peak_mib']:.1f} MiB", f"{each['server_cores']:.3f}",
                         f"{1e3 * each['server_cpu_s'] / each['ticks']:.2f} ms",
                         f"{each['received_bytes'] / 2**20:.1f} MiB", f"{each['elapsed_s']:.1f} s",
                         f"{cuts[len(cuts) // 2]} [{cuts[0]}-{cuts[-1]}]" if cuts else "-", f"{each['passed_over']:,}",
                         f"{each['refused']:,}", f"{each['expired']:,}"])
        return (f"\n## 4. Subscribers, each on a channel of its own: a file of {self.options.subscriber_kib} KiB, all of it "
                f"written in each of {self.options.subscriber_ticks} ticks of 100 ms\n\n"
                + format_table(["subscribers", "read", "processes", "server memory, all connected", "peak", "server CPU, cores",
                                "server CPU per tick", "received", "until all had followed", "cuts that each held",
                                "cuts passed over", "calls refused or late", "cuts that expired"], rows)
                + "\n\nEach subscriber held the last cut's digest in the end.")

    def targets(self) -> list[dict]:
        return check(self) if self.options.with_targets else []

    def as_dict(self) -> dict:
        options = asdict(self.options)
        return {"machine": self.facts, "options": options, "results": self.results, "latency": self.latency(),
                "targets": self.targets(), "notes": self.notes, "failures": self.failures}


def _count(sample: Sample) -> str:
    return f"{sample.median:.0f}" if sample else "-"
