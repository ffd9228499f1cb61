"""The project's promises about h5edit's speed, checked against a run of bench/h5edit.py."""

from harness.promise import Promise
from harness.stats import Sample

# Of the median, as times another row's.
LIMITS = (("no", "floor", 1.5), ("yes", "no", 1.5), ("inc", "no", 2.0))
FLAT_MAX = 1.25  # the largest file's, as times the smallest one's


def check_targets(megabytes: list[int], figures: dict, syncs: dict) -> list[Promise]:
    """Each promise, with the figure that is nearest to breaking it."""
    def median(mb: int, row: str) -> float:
        return Sample(figures[mb, row]).median

    def durable(mb: int, row: str, base: str, limit: float) -> float:
        allowed = limit * median(mb, base) + syncs[row] * median(mb, "fdatasync")
        return median(mb, row + "+durable") / allowed

    rows = []
    for row, base, limit in LIMITS:
        ratio, mb = max((Sample(figures[mb, row]).over(Sample(figures[mb, base])).median, mb) for mb in megabytes)
        rows.append(Promise(f"{row} / {'bare' if base == 'floor' else base}", f"{mb} MB", ratio, limit))
    for row, base, limit in LIMITS:
        share, mb = max((durable(mb, row, base, limit), mb) for mb in megabytes)
        rows.append(Promise(f"{row}, durable / ({limit} x {'bare' if base == 'floor' else base} + {syncs[row]} syncs)", f"{mb} MB", share, 1.0))
    if len(megabytes) > 1:
        least, most = min(megabytes), max(megabytes)
        rows += [Promise(f"{row}: {most} MB / {least} MB", "", median(most, row) / median(least, row), FLAT_MAX) for row, _, _ in LIMITS]
    return rows
