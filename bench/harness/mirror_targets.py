"""The project's promises about its mirror's speed, checked against a run."""

from harness import drivers
from harness.mirror_plan import EXISTING, NEW, Cell, link_name
from harness.promise import Promise

# Total with ack=applied, as times sec2.
TOTAL_MAX = {"contiguous": 2.5, "groups": 1.5, "small_chunks": 1.5, "small_chunks_flush": 2.0}
FELT_MAX = 1.2           # with ack=none, everywhere
DELAYED_MAX = 1.3        # with 1 ms a round trip, as times its own loopback run
ROUND_TRIPS_MAX = 3
FIRST_OPEN_MAX_MS = 40
UNUSED_PLUGIN_MAX_MS = 2


def check_targets(report) -> list[Promise]:
    rows = []
    for workload in report.options.workloads:
        for state in (NEW, EXISTING):
            rows += _workload_rows(report, workload, state)
    rows += _start_rows(report.starts)
    return rows


def _workload_rows(report, workload, state) -> list[Promise]:
    where = f"{workload.title}, {state}"
    rows = []

    def add(what, sample, limit):
        if sample:
            rows.append(Promise(what, where, sample.median, limit))

    applied = Cell(workload.name, state, drivers.APPLIED.label)
    none = Cell(workload.name, state, drivers.NONE.label)
    stock = Cell(workload.name, state, drivers.STOCK.label)
    add("total, applied, x stock mirror",
        report.sample(applied, "total_s").over(report.sample(stock, "total_s")), 1.0)
    if workload.name in TOTAL_MAX:
        add("total, applied, x sec2", report.ratio(applied, "total_s"), TOTAL_MAX[workload.name])
    add("felt, none, x sec2", report.ratio(none, "felt_s"), FELT_MAX)
    if not workload.premade:  # A few round trips are most of a short one's time.
        _add_delayed(report, add, none, "felt_s", "felt, none")
        _add_delayed(report, add, applied, "total_s", "total, applied")
    return rows


def _add_delayed(report, add, cell, what, name) -> None:
    link = link_name(report.options.round_trip_ms)
    slow = Cell(cell.workload, cell.state, cell.driver, link)
    add(f"{name}, {link}, x its loopback",
        report.sample(slow, what).over(report.sample(cell, what)), DELAYED_MAX)


def _start_rows(starts: dict) -> list[Promise]:
    rows = []
    for name, count in starts.get("round_trips", {}).items():
        if not name.startswith(drivers.STOCK.label):
            rows.append(Promise("round trips, open + write + close", name, count, ROUND_TRIPS_MAX + 0.5))
    for label, times in starts.get("first_open", {}).items():
        if label == drivers.NONE.label:
            rows.append(Promise("first mirrored open of a process, ms", label,
                            1e3 * times["felt_s"].median, FIRST_OPEN_MAX_MS))
    lives = list(starts.get("unused_plugin", {}).items())
    for name, sample in lives[1:]:
        rows.append(Promise("unused plugin, ms", name, 1e3 * (sample.median - lives[0][1].median),
                        UNUSED_PLUGIN_MAX_MS))
    return rows
