"""Tables, checks and JSON of a run of bench/tuning.py."""

from dataclasses import dataclass

from harness import tuning_rows
from harness.stats import Sample, format_ratio, format_seconds, format_table


def ratio_of_medians(rates: dict) -> float:
    return Sample(rates["ours"]).median / Sample(rates["stock"]).median


def format_rates(values: list[float]) -> str:
    """Median and the middle half."""
    quarter, ordered = len(values) // 4, sorted(values)
    return f"{Sample(values).median:,.0f} [{ordered[quarter]:,.0f}-{ordered[-1 - quarter]:,.0f}]"


@dataclass
class Report:
    options: object
    facts: dict
    runs: dict       # row -> driver's key -> one dict of figures for each round, or None
    h5perf: dict     # parameters -> rate's name -> of tuning_runs.H5PERFS -> MB/s, one for each round
    sweep: dict      # size of the transfer buffer -> phase -> [times of sec2, times mirrored]
    notes: list
    failures: list

    def sample(self, row, driver: str, figure: str) -> Sample:
        return Sample(each and each.get(figure) for each in self.runs.get(row, {}).get(driver, []))

    def ratio(self, row, figure: str) -> Sample:
        return self.sample(row, "mirrored", figure).over(self.sample(row, "sec2", figure))

    def recipes(self) -> dict[str, list]:
        recipes = {}
        for row in self.runs:
            recipes.setdefault(row.recipe, []).append(row)
        return recipes

    def text(self) -> str:
        parts = [self._head()]
        for recipe, rows in self.recipes().items():
            parts.append(f"\n## {recipe}\n\n{self._table(rows)}")
        if self.sweep:
            parts.append(f"\n## 4.16 h5perf_serial's transfer buffer, {self.options.sweep_dataset}\n\n{self._sweep_table()}")
        if self.h5perf:
            parts.append(f"\n## h5perf_serial beside HDF5's: MB/s, ours to stock's\n\n{self._h5perf_table()}")
        parts.append("\n## Checks\n\n" + format_table(
            ["", "measured", "wanted", ""], [[c["what"], f"{c['measured']:.6g}", c["wanted"], "yes" if c["met"] else "NO"]
                                             for c in self.checks()]))
        for title, lines in (("Notes", self.notes), ("Failed", self.failures)):
            if lines:
                parts.append(f"\n## {title}\n\n" + "\n".join(f"- {line}" for line in lines))
        return "\n".join(parts)

    def _head(self) -> str:
        f = self.facts
        return (f"# bench tuning, {f['time']}, commit {f['commit']} ({f['build_type']})\n\n"
                f"{f['cpu']}, {f['cores']} cores, {f['memory_gib']} GiB, Linux {f['kernel']}, {f['filesystem']}; "
                f"HDF5 {f['hdf5']}, gRPC {f['grpc']}.\nAll in {f['elapsed_s']} s; load average at the start "
                f"{f['load_average']:.1f}, {f['steal_percent']} % of the time stolen by the hypervisor.\n"
                f"Medians with [min-max] of up to {self.options.rounds} rounds; nothing is synced but by the mirrored close.")

    def _table(self, rows: list) -> str:
        first = rows[0]
        # The figures of each recipe, in the order of its name.
        own = sorted({figure for row in rows for run in self.runs[row]["sec2"] if run for figure in run
                      if figure in ("write_s", "read_s", "create_s", "chunk_s")})
        header = ["setting", "sec2", "x first", *(f"{name.removesuffix('_s')}" for name in own), "mirrored, felt",
                  "x sec2", "total x sec2", "CPU x sec2", "write calls", "file MB"]
        cells = []
        for row in rows:
            sec2 = self.sample(row, "sec2", "total_s")
            cells.append([row.label, format_seconds(sec2), format_ratio(sec2.over(self.sample(first, "sec2", "total_s"))),
                          *(format_seconds(self.sample(row, "sec2", name)) for name in own),
                          format_seconds(self.sample(row, "mirrored", "felt_s")), format_ratio(self.ratio(row, "felt_s")),
                          format_ratio(self.ratio(row, "total_s")), format_ratio(self.ratio(row, "cpu_s")),
                          self._number(row, "write_calls", 1), self._number(row, "file_bytes", 1e6)])
        return format_table(header, cells)

    def _number(self, row, figure: str, unit: float) -> str:
        sample = self.sample(row, "sec2", figure)
        if not sample:
            return "-"
        return f"{sample.median / unit:,.2f}" if unit > 1 else f"{sample.median:,.0f}"

    def _sweep_table(self) -> str:
        cells = []
        for size, phases in self.sweep.items():
            row = [size]
            for sec2, mirrored in phases.values():
                row += [format_seconds(Sample(sec2)), format_seconds(Sample(mirrored)),
                        format_ratio(Sample(mirrored).over(Sample(sec2)))]
            cells.append(row)
        return format_table(["buffer", "write, sec2", "mirrored", "x sec2", "with open and close, sec2", "mirrored", "x sec2"],
                            cells)

    def _h5perf_table(self) -> str:
        names = list(dict.fromkeys(name for rates in self.h5perf.values() for name in rates))
        return format_table(["", *self.h5perf], [[name, *(self._h5perf_cell(rates.get(name)) for rates in self.h5perf.values())]
                                                 for name in names])

    @staticmethod
    def _h5perf_cell(rates: dict | None) -> str:
        if not rates or not all(rates.values()):
            return ""
        ours, stock = (format_rates(rates[key]) for key in ("ours", "stock"))
        return f"{ratio_of_medians(rates):.2f}: {ours} to {stock}"

    # Checks that must hold on any machine, and fail the run; and checks that depend on the machine, and do not.

    def checks(self) -> list[dict]:
        found = []

        def add(what: str, measured: float, wanted: str, met: bool, hard: bool = True) -> None:
            found.append({"what": what, "measured": measured, "wanted": wanted, "met": met, "hard": hard})

        for row in self.runs:
            for driver in ("sec2", "mirrored"):
                size = self.sample(row, driver, "file_bytes")
                if row.size_mb and size:
                    # Metadata is in the talk's sizes, and weighs more beside a part of its dataset.
                    slack_mb = 0 if row.count == tuning_rows.FULL["slab_rows"] else 0.008
                    add(f"{row.recipe}, {row.label}, {driver}: file, MB", size.median / 1e6, f"{row.size_mb:.4g} within 0.1 %",
                        abs(size.median / 1e6 - row.size_mb) <= 0.001 * row.size_mb + slack_mb)
            if misaligned := self.sample(row, "sec2", "misaligned"):
                add(f"{row.recipe}, {row.label}: datasets that do not begin where they must", misaligned.median, "0",
                    misaligned.median == 0)
        self._check_orders(add)
        for parameters, rates in self.h5perf.items():
            for name, each in rates.items():
                if all(each.values()):
                    ratio = ratio_of_medians(each)
                    add(f"h5perf_serial, {parameters}, {name}: median, x stock's", ratio, "0.95 to 1.05", 0.95 <= ratio <= 1.05,
                        hard=False)
        return found

    def _check_orders(self, add) -> None:
        def less(recipe: str, small: str, large: str, figure: str, hard: bool, unit: str = "") -> None:
            rows = {row.label: row for row in self.recipes().get(recipe, [])}
            if small not in rows or large not in rows:
                return
            ratio = self.sample(rows[small], "sec2", figure).over(self.sample(rows[large], "sec2", figure))
            if ratio:
                add(f"{recipe}: {figure}, {small} to {large}", ratio.median, "below 1", ratio.median < 1, hard)

        metadata = "4.1 metadata block, pages, format"
        less(metadata, "block 1 MiB", "block 0", "write_calls", True)
        less(metadata, "default, metadata=memory", "default (2 KiB)", "write_calls", False)
        less("4.10 sieve buffer, each 2nd element", "1024 KiB", "4 KiB", "write_calls", True)
        less("4.11 fill and allocation", "contiguous, early, never", "contiguous, early, filled", "written_bytes", True)
        less("4.7 preemption of the chunk cache", "w0 1", "w0 0", "read_calls", True)
        less("4.3 chunk cache", "256 MB", "16 MB", "write_s", False)
        less("4.5, 4.6 shuffle, deflate", "256 MB", "16 MB", "write_s", False)

    def broken(self) -> list[str]:
        """The hard checks that fail."""
        return [f"{c['what']}: {c['measured']:.6g}, wanted {c['wanted']}" for c in self.checks() if c["hard"] and not c["met"]]

    def as_dict(self) -> dict:
        return {"facts": self.facts, "rounds": self.options.rounds, "checks": self.checks(), "failures": self.failures,
                "h5perf": self.h5perf, "sweep": self.sweep,
                "rows": [{"recipe": row.recipe, "setting": row.label, "count": row.count, "runs": runs}
                         for row, runs in self.runs.items()]}
