"""The tables and the plot of bench/h5edit.py."""

from pathlib import Path

from harness.h5edit_targets import check_targets
from harness.stats import Sample, format_ratio, format_seconds, format_table

LEVELS = ("no", "yes", "inc", "copy")
# Linux, 64 bits, with the back-up driver of h5edit 1.3: seconds (h5edit performance study, 2014).
PUBLISHED = {15: {"no": 0.004, "yes": 0.022, "inc": 0.031}, 38: {"no": 0.004, "yes": 0.059, "inc": 0.053},
             123: {"no": 0.004, "yes": 0.191, "inc": 0.23}, 310: {"no": 0.004, "yes": 0.366, "inc": 0.488},
             549: {"no": 0.005, "yes": 0.594, "inc": 0.594}, 2200: {"no": 0.004, "yes": 3.806, "inc": 3.137}}


def _sample(figures: dict, megabytes: int, row: str) -> Sample:
    return Sample(figures.get((megabytes, row), []))


def _head(args, facts: dict) -> str:
    return (f"# bench h5edit, {facts['time']}, commit {facts['commit']} ({facts['build_type']})\n\n"
            f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
            f"{facts['filesystem']}; HDF5 {facts['hdf5']}.\n"
            f"{args.rounds} interleaved rounds in {facts['elapsed_s']} s; load average at the start "
            f"{facts['load_average']:.1f}, {facts['steal_percent']} % of the time stolen by the hypervisor.\n"
            f"Nine attributes of the root group; whole processes. Medians with [min-max]; ratios are taken round by round.")


def _plain(args, figures: dict) -> str:
    rows = []
    for mb in args.megabytes:
        floor, no = _sample(figures, mb, "floor"), _sample(figures, mb, "no")
        rows.append([f"{mb} MB", format_seconds(floor), *(format_seconds(_sample(figures, mb, level)) for level in LEVELS),
                     format_ratio(no.over(floor)), format_ratio(_sample(figures, mb, "yes").over(no)),
                     format_ratio(_sample(figures, mb, "inc").over(no))])
    return format_table(["file", "bare program", *LEVELS, "no / bare", "yes / no", "inc / no"], rows)


def _durable(args, figures: dict, syncs: dict) -> str:
    rows = []
    for mb in args.megabytes:
        sync = _sample(figures, mb, "fdatasync")
        cells = [f"{mb} MB", format_seconds(sync)]
        for row in ("floor", *LEVELS):
            sample = _sample(figures, mb, row + "+durable")
            cells.append(f"{format_seconds(sample)} ({syncs[row]})" if sample else "-")
        rows.append(cells)
    return format_table(["file", "one fdatasync", "bare (syncs)", *(f"{level} (syncs)" for level in LEVELS)], rows)


def _published() -> str:
    rows = [[f"{mb} MB", *(f"{figures[level]:.3f} s" for level in ("no", "yes", "inc")),
             f"{figures['yes'] / figures['no']:.0f}", f"{figures['inc'] / figures['no']:.0f}"] for mb, figures in PUBLISHED.items()]
    return format_table(["file", "no", "yes", "inc", "yes / no", "inc / no"], rows)


def _promised(args, figures: dict, syncs: dict) -> str:
    rows = [[row.what, row.where, f"{row.measured:.2f}", f"{row.limit:g}", "yes" if row.met else "NO"]
            for row in check_targets(args.megabytes, figures, syncs)]
    return format_table(["", "worst", "measured", "at most", "met"], rows)


def text(args, facts: dict, figures: dict, syncs: dict) -> str:
    return "\n".join([_head(args, facts), "\n## Survives the death of the process\n", _plain(args, figures),
                      "\n## Survives power loss (--durable)\n", _durable(args, figures, syncs),
                      "\n## Promised\n", _promised(args, figures, syncs),
                      "\n## Published (2014, h5edit 1.3, Linux, 64 bits)\n", _published()])


def draw(args, facts: dict, figures: dict, directory: Path) -> str:
    """Writes h5edit.png into `directory`; returns a line about it."""
    try:
        import matplotlib
    except ImportError:
        return "no figure: python3-matplotlib is missing (./dev bench h5edit installs it)"
    matplotlib.use("Agg")
    from matplotlib import pyplot

    directory.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(7, 4.5), constrained_layout=True)
    for row in ("floor", *LEVELS):
        points = [(mb, _sample(figures, mb, row).median * 1e3) for mb in args.megabytes if (mb, row) in figures]
        axes.plot(*zip(*points), marker="o", label="bare program" if row == "floor" else "--backup=copy" if row == "copy" else row)
    for level, marker in (("no", "x"), ("yes", "+"), ("inc", "1")):
        axes.plot(*zip(*((mb, f[level] * 1e3) for mb, f in PUBLISHED.items())), marker=marker, linestyle="", color="grey",
                  label=f"{level}, published 2014")
    axes.set(xscale="log", yscale="log", xlabel="file, MB", ylabel="nine attributes, ms")
    axes.legend(fontsize=8)
    axes.text(1, 1.0, f"{facts['cpu']}, {facts['cores']} cores, commit {facts['commit']}, {facts['time']}", transform=axes.transAxes,
              ha="right", va="bottom", fontsize=5)
    path = directory / "h5edit.png"
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return f"figure: {path}"
