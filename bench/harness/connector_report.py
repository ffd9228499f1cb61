"""Tables and JSON of a run of bench/connector.py."""

from dataclasses import dataclass

from harness.promise import Promise
from harness.stats import Sample, format_ratio, format_seconds, format_table

# The limit for the connector, as times the driver alone.
IDLE_MAX = 1.02
TICKS_MAX = 1.05
TICKS_OF_GROUPS_MAX = 1.15


@dataclass
class Report:
    lanes: tuple      # the first is the base of all ratios
    workloads: tuple
    rounds: int
    facts: dict
    runs: dict        # (workload name, lane key) -> one Timing or None for each round
    failures: list

    def sample(self, workload, lane, what: str) -> Sample:
        return Sample(None if run is None else getattr(run, what) for run in self.runs[workload.name, lane.key])

    def ratio(self, workload, lane, what: str) -> Sample:
        return self.sample(workload, lane, what).over(self.sample(workload, self.lanes[0], what))

    def text(self) -> str:
        f = self.facts
        parts = [f"# bench connector, {f['time']}, commit {f['commit']} ({f['build_type']})\n\n"
                 f"{f['cpu']}, {f['cores']} cores, {f['memory_gib']} GiB, Linux {f['kernel']}, {f['filesystem']}; "
                 f"HDF5 {f['hdf5']}, gRPC {f['grpc']}.\n"
                 f"{self.rounds} rounds in {f['elapsed_s']} s; load average at the start {f['load_average']:.1f}, "
                 f"{f['steal_percent']} % of the time stolen by the hypervisor.\nMedians with [min-max]; ratios are "
                 "those of a round. After each run the server's file was compared with the local one."]
        for workload in self.workloads:
            parts.append(f"\n## {workload.title}\n\n" + self._table(workload))
        rows = [[row.what, row.where, f"{row.measured:.3f}", f"{row.limit:.2f}", "met" if row.met else "MISSED"]
                for row in self.promises()]
        parts.append("\n## Targets\n\n" + format_table(["target", "workload", "measured", "limit", ""], rows))
        if self.failures:
            parts.append("\n## Failed\n\n" + "\n".join(f"- {text}" for text in self.failures))
        return "\n".join(parts)

    def _table(self, workload) -> str:
        header = ["", "total", "x driver alone", "CPU client", "x driver alone", "cuts"]
        rows = []
        for lane in self.lanes:
            cuts = self.sample(workload, lane, "cuts")
            rows.append([lane.label, *(cell for what in ("total_s", "cpu_s") for cell in (
                format_seconds(self.sample(workload, lane, what)), format_ratio(self.ratio(workload, lane, what)))),
                f"{cuts.median:g}" if cuts else "-"])
        return format_table(header, rows)

    def promises(self) -> list[Promise]:
        rows = []
        for workload in self.workloads:
            for lane in self.lanes[1:]:
                limit = (IDLE_MAX if not lane.ticks else
                         TICKS_OF_GROUPS_MAX if workload.name == "groups" else TICKS_MAX)
                for what, words in (("total_s", "total"), ("cpu_s", "CPU")):
                    ratio = self.ratio(workload, lane, what)
                    if ratio:
                        rows.append(Promise(f"{words}, {lane.label}", workload.title, ratio.median, limit))
        return rows

    def as_dict(self) -> dict:
        cells = [{"workload": name, "lane": key, "rounds": [run.as_dict() if run else None for run in runs]}
                 for (name, key), runs in self.runs.items()]
        return {"machine": self.facts, "cells": cells, "targets": [row.as_dict() for row in self.promises()],
                "failures": self.failures}
