"""Tables and JSON of a run of bench/mirror.py."""

from dataclasses import dataclass

from harness import drivers
from harness.mirror_plan import (EXISTING, LOOPBACK, NEW, SCALED, Cell, Options, Workload,
                                 link_name)
from harness.mirror_targets import check_targets
from harness.promise import Promise
from harness.stats import Sample, format_ratio, format_seconds, format_table

_STATES = (NEW, EXISTING, SCALED)


@dataclass
class Report:
    options: Options
    facts: dict
    runs: dict
    starts: dict
    failures: list

    def sample(self, cell: Cell, what: str) -> Sample:
        return Sample(None if run is None else getattr(run, what) for run in self.runs.get(cell, []))

    def text(self) -> str:
        parts = [self._head()]
        for workload in self.options.workloads:
            parts.append(f"\n## {workload.title}\n\n" + self._workload_table(workload))
        parts += ["\n## Total, times sec2\n\n" + self._matrix("total_s", LOOPBACK),
                  "\n## Felt, times sec2\n\n" + self._matrix("felt_s", LOOPBACK)]
        if self.options.with_delay:
            parts.append(self._delay_section())
        if self.starts:
            parts.append(self._starts_section())
        parts.append(self._targets_section())
        if self.failures:
            parts.append("\n## Failed\n\n" + "\n".join(f"- {text}" for text in self.failures))
        return "\n".join(parts)

    def _head(self) -> str:
        f = self.facts
        return (f"# bench mirror, {f['time']}, commit {f['commit']} ({f['build_type']})\n\n"
                f"{f['cpu']}, {f['cores']} cores, {f['memory_gib']} GiB, Linux {f['kernel']}, "
                f"{f['filesystem']}; HDF5 {f['hdf5']}, gRPC {f['grpc']}.\n"
                f"{self.options.rounds} rounds in {f['elapsed_s']} s; load average at the start "
                f"{f['load_average']:.1f}, {f['steal_percent']} % of the time stolen by the "
                f"hypervisor.\nMedians with [min-max]. Server and client share the machine. "
                f"After each mirrored run the server's file was compared with the local one.")

    def _workload_table(self, workload: Workload) -> str:
        rows = []
        for state in _STATES:
            base = Cell(workload.name, state, drivers.SEC2.label)
            for cell in self.runs:
                if cell.workload == workload.name and cell.state == state:
                    rows.append(self._workload_row(cell, base))
        return format_table(["state", "driver", "link", "felt", "x sec2", "total", "x sec2",
                             "process end", "CPU client", "CPU server"], rows)

    def _workload_row(self, cell: Cell, base: Cell) -> list[str]:
        felt, total = self.sample(cell, "felt_s"), self.sample(cell, "total_s")
        return [cell.state, cell.driver, cell.link,
                format_seconds(felt), format_ratio(felt.over(self.sample(base, "felt_s"))),
                format_seconds(total), format_ratio(total.over(self.sample(base, "total_s"))),
                *(format_seconds(self.sample(cell, what))
                  for what in ("exit_s", "client_cpu_s", "server_cpu_s"))]

    def ratio(self, cell: Cell, what: str) -> Sample:
        base = Cell(cell.workload, cell.state, drivers.SEC2.label)
        return self.sample(cell, what).over(self.sample(base, what))

    def _matrix(self, what: str, link: str) -> str:
        labels = [driver.label for driver in self.options.drivers if driver != drivers.SEC2]
        rows = [[f"{workload.title}, {state}",
                 *(format_ratio(self.ratio(Cell(workload.name, state, label, link), what))
                   for label in labels)]
                for workload in self.options.workloads for state in (NEW, EXISTING)
                if not (workload.premade and state == NEW)]
        return format_table(["", *labels], rows)

    def _delay_section(self) -> str:
        """Ours as times of its own loopback run, the stock mirror as times sec2."""
        delayed, direct = link_name(self.options.round_trip_ms), link_name(0)
        rows = []
        for cell in self.runs:
            if cell.link != delayed:
                continue
            here = Cell(cell.workload, cell.state, cell.driver)
            proxied = Cell(cell.workload, cell.state, cell.driver, direct)
            title = next(w.title for w in self.options.workloads if w.name == cell.workload)
            rows.append([title, cell.state, cell.driver] + [
                format_ratio(self.sample(cell, what).over(self.sample(base, what)))
                for base in (here, proxied) for what in ("felt_s", "total_s")
            ] + [format_ratio(self.ratio(cell, "total_s"))])
        return (f"\n## {self.options.round_trip_ms:g} ms a round trip more\n\n" + format_table(
            ["workload", "state", "driver", "felt, x its loopback", "total, x its loopback",
             "felt, x proxy at 0 ms", "total, x proxy at 0 ms", "total, x sec2"], rows))

    def _starts_section(self) -> str:
        first = [[label, *(format_seconds(times[what]) for what in ("open_s", "felt_s", "total_s"))]
                 for label, times in self.starts["first_open"].items()]
        lives = self.starts["unused_plugin"]
        base = next(iter(lives.values()), None)
        unused = [[name, format_seconds(sample), f"{1e3 * (sample.median - base.median):+.2f} ms"]
                  for name, sample in lives.items()]
        trips = [[name, f"{count:.1f}"] for name, count in self.starts["round_trips"].items()]
        return "\n".join([
            "\n## First mirrored open of a process (aim: 40 ms)\n",
            format_table(["driver", "open", "felt", "total"], first),
            "\n## Life of a process that mirrors nothing (aim: 2 ms more)\n",
            format_table(["environment", "life", "more"], unused),
            "\n## Round trips waited for, open + write + close (aim: 3)\n",
            format_table(["driver, state", "round trips"], trips)])

    def targets(self) -> list[Promise]:
        return check_targets(self)

    def _targets_section(self) -> str:
        rows = [[row.what, row.where, f"{row.measured:.2f}", f"{row.limit:.2f}",
                 "met" if row.met else "MISSED"] for row in self.targets()]
        return "\n## Targets\n\n" + format_table(["target", "row", "measured", "limit", ""], rows)

    def as_dict(self) -> dict:
        """Every single run, so that other figures can be made of them later."""
        cells = [{"workload": cell.workload, "state": cell.state, "driver": cell.driver,
                  "link": cell.link,
                  "rounds": [run.as_dict() if run else None for run in runs]}
                 for cell, runs in self.runs.items()]
        starts = {
            "first_open": {label: {what: sample.as_dict() for what, sample in times.items()}
                           for label, times in self.starts.get("first_open", {}).items()},
            "unused_plugin": {name: sample.as_dict()
                              for name, sample in self.starts.get("unused_plugin", {}).items()},
            "round_trips": self.starts.get("round_trips", {}),
        }
        return {"machine": self.facts, "cells": cells, "starts": starts,
                "targets": [row.as_dict() for row in self.targets()], "failures": self.failures}
