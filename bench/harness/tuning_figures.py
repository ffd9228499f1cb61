"""A run of bench/tuning.py, drawn with matplotlib where that is there."""

from pathlib import Path

from harness.stats import Sample

_SEC2, _OURS = "#8a8a8a", "#1f6f8b"


def draw(report, directory: Path) -> list[str]:
    """Writes tuning-*.png into `directory`; returns a line about it."""
    try:
        import matplotlib
    except ImportError:
        return ["no figures: python3-matplotlib is missing (./dev bench tuning installs it)"]
    matplotlib.use("Agg")
    from matplotlib import pyplot

    directory.mkdir(parents=True, exist_ok=True)
    notes = []
    for recipe, rows in report.recipes().items():
        figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.55 * len(rows)), constrained_layout=True)
        for index, (driver, figure_name, label, colour) in enumerate((
                ("sec2", "total_s", "sec2, with the close", _SEC2), ("mirrored", "felt_s", "mirrored, until the close", "#7fb7c9"),
                ("mirrored", "total_s", "mirrored, with the close", _OURS))):
            _bars(axes, [report.sample(row, driver, figure_name) for row in rows], index, label, colour)
        axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("seconds (bars: medians, lines: min to max)")
        axes.set_title(recipe)
        axes.grid(axis="x", alpha=0.3)
        axes.legend(fontsize=8)
        foot = f"{report.facts['cpu']}, {report.facts['cores']} cores, commit {report.facts['commit']}, {report.facts['time']}"
        axes.text(1, 1.0, foot, transform=axes.transAxes, ha="right", va="bottom", fontsize=5)
        name = "".join(c if c.isalnum() else "-" for c in recipe.split(" ")[0].rstrip(","))
        path = directory / f"tuning-{name}.png"
        figure.savefig(path, dpi=130)
        pyplot.close(figure)
        notes.append(f"figure: {path}")
    return notes


def _bars(axes, samples: list[Sample], index: int, label: str, colour: str) -> None:
    known = [(row + (index - 1) * 0.27, sample) for row, sample in enumerate(samples) if sample]
    medians = [sample.median for _, sample in known]
    spread = [[sample.median - min(sample.values) for _, sample in known],
              [max(sample.values) - sample.median for _, sample in known]]
    axes.barh([y for y, _ in known], medians, 0.25, xerr=spread, label=label, color=colour,
              error_kw={"elinewidth": 0.8, "ecolor": "#333333"})
