"""The figures of bench/follow.py, drawn from its own results with matplotlib where that is there."""

from pathlib import Path

from harness import follow_crowd, follow_scans, follow_subscribers, follow_targets
from harness.stats import Sample

_OURS, _THEIRS, _PLAIN = "#1f6f8b", "#c8553d", "#8a8a8a"


def draw(report, directory: Path) -> list[str]:
    """Writes follow-*.png into `directory`; returns a line about it."""
    try:
        import matplotlib
    except ImportError:
        return ["no figures: python3-matplotlib is missing (./dev bench follow installs it)"]
    matplotlib.use("Agg")
    from matplotlib import pyplot

    directory.mkdir(parents=True, exist_ok=True)
    notes = []
    for name, (of, painter) in _FIGURES.items():
        if report.results.get(of):
            figure = painter(pyplot, report)
            foot = 0.25 / figure.get_figheight()  # a quarter of an inch
            figure.get_layout_engine().set(rect=(0, foot, 1, 1 - foot))
            figure.text(0.995, 0.005, f"{report.facts['cpu']}, {report.facts['cores']} cores, commit "
                        f"{report.facts['commit']}, {report.facts['time']}", ha="right", va="bottom", fontsize=6)
            path = directory / f"follow-{name}.png"
            figure.savefig(path, dpi=130)
            pyplot.close(figure)
            notes.append(f"figure: {path}")
    return notes


def _bars(axes, labels: list[str], series: dict) -> None:
    """Groups of horizontal bars; series: {name: (colour, [Sample or None for each label])}."""
    height = 0.8 / len(series)
    for index, (name, (colour, samples)) in enumerate(series.items()):
        at = [row + (index - (len(series) - 1) / 2) * height for row in range(len(labels))]
        known = [(y, sample) for y, sample in zip(at, samples) if sample]
        medians = [sample.median for _, sample in known]
        spread = [[sample.median - min(sample.values) for _, sample in known],
                  [max(sample.values) - sample.median for _, sample in known]]
        axes.barh([y for y, _ in known], medians, height * 0.9, xerr=spread, label=name, color=colour,
                  error_kw={"elinewidth": 0.8, "ecolor": "#333333"})
        for y, sample in known:
            axes.text(max(sample.values), y, f" {sample.median:.2f}", va="center", fontsize=7)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)


def _tables(pyplot, report):
    rows = report.options.rows
    figure, axes = pyplot.subplots(figsize=(10, 1.6 + 0.75 * len(rows)), constrained_layout=True)
    theirs = [Sample([row.theirs_s[1] / row.theirs_s[0]] if row.theirs_s else []) for row in rows]
    _bars(axes, [row.key for row in rows], {
        "sec2, flushed": (_PLAIN, [report.ratio(row.key, "ticked", "plain", "felt_s") for row in rows]),
        "mirrored": ("#7fb7c9", [report.ratio(row.key, "mirrored", "plain", "felt_s") for row in rows]),
        "mirrored and followed": (_OURS, [report.ratio(row.key, "followed", "plain", "felt_s") for row in rows]),
        "VFD SWMR, 2021": (_THEIRS, theirs)})
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time until the close, times plain sec2 (bars: medians, lines: min to max)")
    axes.set_title(f"Writing with a tick each {report.options.tick_ms:g} ms")
    axes.legend(fontsize=8, bbox_to_anchor=(1, 1), loc="upper left")
    return figure


def _cost(pyplot, report):
    rows = [row for row in report.options.rows if report.ratio(row.key, "followed", "mirrored", "cpu_s")]
    figure, (cpu, close) = pyplot.subplots(1, 2, figsize=(13, 1.6 + 0.75 * len(rows)), constrained_layout=True, sharey=True)
    _bars(cpu, [row.key for row in rows], {
        "followed": (_OURS, [report.ratio(row.key, "followed", "mirrored", "cpu_s") for row in rows])})
    cpu.axvline(follow_targets.PUBLISHING_CPU_MAX, color=_THEIRS, linestyle="--", linewidth=1)
    cpu.set_title(f"CPU of client and server, times not followed (dashed: {follow_targets.PUBLISHING_CPU_MAX:g})", fontsize=9)
    _bars(close, [row.key for row in rows], {
        label: (colour, [report.sample(row.key, key, "close_s") for row in rows])
        for key, label, colour in (("plain", "sec2", _PLAIN), ("mirrored", "mirrored", "#7fb7c9"),
                                   ("followed", "mirrored and followed", _OURS))})
    close.set_title("the close, s", fontsize=9)
    close.invert_yaxis()  # Shared: the second set of bars has turned it back.
    close.legend(fontsize=8)
    figure.suptitle(f"What it costs to be followed, ticks of {report.options.tick_ms:g} ms")
    return figure


def _latency(pyplot, report):
    figure, axes = pyplot.subplots(figsize=(8, 5), constrained_layout=True)
    for each in report.results["latency"]:
        values = each["latencies_s"]
        share = [(index + 1) / len(values) for index in range(len(values))]
        axes.plot([1e3 * value for value in values], share, label=f"{each['readers']} readers")
    axes.axvline(follow_targets.LATENCY_P99_MAX_MS, color=_THEIRS, linestyle="--", linewidth=1,
                 label=f"{follow_targets.LATENCY_P99_MAX_MS} ms")
    axes.axhline(0.99, color="black", linestyle=":", linewidth=0.8)
    axes.set_xscale("log")
    for ticks in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        ticks(lambda value, _: f"{value:g}")
    axes.set_xlabel("from the flush's return to the value in the reading process, ms")
    axes.set_ylabel("share of all ticks in all readers (dotted: 99 %)")
    axes.set_title(f"Latency over {report.options.ticks:,} ticks of 100 ms")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def _reading(pyplot, report):
    sections = report.results["reading"]
    figure, all_axes = pyplot.subplots(len(sections), 1, figsize=(9, 0.9 + 2.1 * len(sections)),
                                       constrained_layout=True, squeeze=False)
    for axes, (section, rows) in zip(all_axes[:, 0], sections.items()):
        base = Sample(rows.get("sec2, cold", rows.get("sec2", {})).get("total", []))
        _bars(axes, list(rows), {"speed": (_OURS, [base.over(Sample(row["total"])) for row in rows.values()])})
        limit = follow_targets.WRITE_SPEED_MIN if section.startswith("write") else follow_targets.COLD_SPEED_MIN
        axes.axvline(limit, color=_THEIRS, linestyle="--", linewidth=1)
        axes.set_title(f"{section}: speed, times sec2{' cold' if 'sec2, cold' in rows else ''} (dashed: {limit:g})", fontsize=9)
    return figure


def _scans(pyplot, report):
    scans = report.results["scans"]
    figure, all_axes = pyplot.subplots(len(scans), 1, figsize=(9, 0.9 + 2.1 * len(scans)), constrained_layout=True,
                                       squeeze=False)
    for axes, link in zip(all_axes[:, 0], scans):
        known = [(way, ratio) for at, way, _, ratio in follow_scans.ratios(scans) if at == link]
        _bars(axes, [way for way, _ in known], {"speed": (_OURS, [ratio for _, ratio in known])})
        axes.axvline(follow_scans.SPEED_MIN, color=_THEIRS, linestyle="--", linewidth=1)
        axes.set_title(f"{report.options.scan_mib} MiB in order, {link}: speed, times a plain gRPC stream "
                       f"(dashed: {follow_scans.SPEED_MIN:g})", fontsize=9)
    return figure


def _crowd(pyplot, report):
    figure, axes = pyplot.subplots(figsize=(8, 5), constrained_layout=True)
    lines = [("crowd", follow_crowd.REMOTE, "each its share, directly", _OURS, "-"),
             ("crowd", follow_crowd.AGENT, "each its share, through the agent", _OURS, ":"),
             ("crowd_whole", follow_crowd.REMOTE, "each all of it, directly", "black", "-"),
             ("crowd_whole", follow_crowd.AGENT, "each all of it, through the agent", "black", ":"),
             ("crowd_disk", follow_crowd.AGENT, "each all of it, through the agent, slow disk", "black", "--")]
    for part, way, label, colour, style in lines:
        if not report.results.get(part):
            continue
        processes = list(report.results[part][way])
        ratios = [report.crowd_ratio(count, way, part) for count in processes]
        axes.errorbar(processes, [ratio.median for ratio in ratios],
                      yerr=[[r.median - min(r.values) for r in ratios], [max(r.values) - r.median for r in ratios]],
                      marker="o", capsize=3, color=colour, linestyle=style, label=label)
    axes.axhline(follow_crowd.THEIRS, color=_THEIRS, linestyle="--", label="TeraVAP with Mig-drive, 16 to 256 processors")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(report.options.set_processes, [str(count) for count in report.options.set_processes])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("reading processes")
    axes.set_ylabel("speed, times sec2")
    axes.set_title("A set of files read cold")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def _subscribers(pyplot, report):
    figure, (memory, cpu) = pyplot.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)
    all_counts = set()
    for reads, colour in ((follow_subscribers.ALL, _THEIRS), (follow_subscribers.METADATA, _OURS)):
        rows = [each for each in report.results["subscribers"] if each["reads"] == reads]
        counts = [each["subscribers"] for each in rows]
        all_counts.update(counts)
        memory.plot(counts, [each["peak_mib"] for each in rows], marker="o", label=f"peak, read {reads}", color=colour)
        memory.plot(counts, [each["connected_mib"] for each in rows], marker=".", linestyle=":", color=colour,
                    label=f"all connected, read {reads}")
        cpu.plot(counts, [each["server_cores"] for each in rows], marker="o", label=f"read {reads}", color=colour)
    memory.set_ylabel("server's resident memory, MiB")
    cpu.set_ylabel("server's CPU, cores")
    for axes in (memory, cpu):
        axes.legend(fontsize=8)
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xticks(sorted(all_counts), [f"{count:,}" for count in sorted(all_counts)])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("subscribers, each on a channel of its own")
        axes.grid(alpha=0.3)
    figure.suptitle(f"{report.options.subscriber_kib} KiB written whole in each tick of 100 ms")
    return figure


# {figure: (the results that it shows, the function that draws it)}
_FIGURES = {"tables": ("tables", _tables), "cost": ("tables", _cost), "latency": ("latency", _latency),
            "reading": ("reading", _reading), "scans": ("scans", _scans), "crowd": ("crowd", _crowd),
            "subscribers": ("subscribers", _subscribers)}
