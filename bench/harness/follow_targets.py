"""The project's promises about following and reading, checked against a run of bench/follow.py."""

from harness import follow_crowd, follow_scans, follow_tables
from harness.stats import Sample

PUBLISHING_CPU_MAX = 1.03   # client and server, followed to not followed
TICKS_MIN = 10              # with fewer there is nothing to publish
MANY_DATASETS_MAX = 1.5     # of 10,000 datasets, followed to sec2; VFD SWMR: 2.23
MANY_DATASETS = f"{follow_tables.SMALL}, 10,000"
LATENCY_P99_MAX_MS = 20     # with LATENCY_READERS
LATENCY_READERS = 10
COLD_SPEED_MIN = 3.5        # times sec2 from a cold disk, as Mig-drive
WRITE_SPEED_MIN = 1.0
SHARED_MIN = 1.0            # times sec2 from a cold disk, read by many processes, each way as it is meant


def check(report) -> list[dict]:
    found = []

    def add(what: str, measured: float, limit: float, at_least: bool = False) -> None:
        met = measured >= limit if at_least else measured <= limit
        found.append({"what": what, "measured": measured, "limit": limit, "at_least": at_least, "met": met})

    _tables(report, add)
    for each in report.latency():
        if each["readers"] == LATENCY_READERS:
            add(f"flush to reader, p99 with {LATENCY_READERS} readers, ms", 1e3 * each["p99_s"], LATENCY_P99_MAX_MS)
    _reading(report, add)
    return found


def _tables(report, add) -> None:
    for row in report.options.rows:
        ticks = report.sample(row.key, "mirrored", "ticks")
        if not ticks or ticks.median < TICKS_MIN:
            continue
        if ratio := report.ratio(row.key, "followed", "mirrored", "cpu_s"):
            add(f"{row.key}: client + server CPU, followed, x not followed", ratio.median, PUBLISHING_CPU_MAX)
    for base, name in (("plain", "sec2 without flushes"), ("ticked", "sec2 with the same flushes")):
        for figure, what in (("felt_s", "until the close"), ("total_s", "with the close")):
            if ratio := report.ratio(MANY_DATASETS, "followed", base, figure):
                add(f"{MANY_DATASETS}: followed, {what}, x {name}", ratio.median, MANY_DATASETS_MAX)


def _reading(report, add) -> None:
    for section, rows in report.results.get("reading", {}).items():
        base = Sample(rows.get("sec2, cold", rows.get("sec2", {})).get("total", []))
        for name, row in rows.items():
            if name.startswith("sec2"):
                continue
            if section.startswith("write"):
                add(f"{section}: speed of {name}, x sec2", base.over(Sample(row["total"])).median, WRITE_SPEED_MIN, True)
            else:
                add(f"{section}: speed of {name}, x sec2 cold", base.over(Sample(row["total"])).median, COLD_SPEED_MIN, True)
    for link, way, _, ratio in follow_scans.ratios(report.results.get("scans") or {}):
        add(f"in order, {link}: speed of {way}, x a plain stream", ratio.median, follow_scans.SPEED_MIN, True)
    if report.results.get("crowd"):
        most = max(report.results["crowd"][follow_crowd.LOCAL])
        add(f"TeraVAP-like: speed with {most} processes, x sec2", report.crowd_ratio(most).median, follow_crowd.THEIRS, True)
    for name, files in follow_crowd.sets(report.options).items():
        if not files.is_cold:
            continue
        for processes in (report.results.get(name) or {}).get(follow_crowd.LOCAL, []):
            ratio = report.crowd_ratio(processes, files.best, name)
            add(f"{name}: {processes} processes, {files.best}, x sec2", ratio.median, SHARED_MIN, True)
