"""Tables and drawings of a run of ./dev bench tuning --parallel."""

from pathlib import Path

from harness.stats import Sample, format_ratio, format_table

_COLOURS = {"mpiio": "#8a8a8a", "phdf5": "#7fb7c9", "mirrored": "#1f6f8b"}
_LABELS = {"mpiio": "MPI-IO", "phdf5": "parallel HDF5", "mirrored": "parallel HDF5, mirrored"}


def by_recipe(figures: dict) -> dict[str, dict]:
    """recipe -> row -> Figures"""
    recipes = {}
    for row, found in figures.items():
        recipes.setdefault(row.recipe, {})[row] = found
    return recipes


def text(facts: dict, iterations: int, figures: dict, notes: list[str]) -> str:
    parts = [f"# bench tuning --parallel, {facts['time']}, commit {facts['commit']} ({facts['build_type']})\n\n"
             f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, {facts['filesystem']}; "
             f"all processes on this machine.\n{iterations} iterations in {facts['elapsed_s']} s; load average at the start "
             f"{facts['load_average']:.1f}. MB/s (10^6 bytes), medians; ratios of each iteration: median [min-max]."]
    for recipe, rows in by_recipe(figures).items():
        parts.append(f"\n## {recipe}\n\n{_table(rows)}")
    if notes:
        parts.append("\n## Notes\n\n" + "\n".join(f"- {note}" for note in notes))
    return "\n".join(parts)


def _rate(rates: dict[str, list[float]], lane: str) -> str:
    return f"{Sample(rates[lane]).median:,.0f}"


def _ratio(rates: dict[str, list[float]], lane: str, to: str) -> str:
    return format_ratio(Sample(rates[lane]).over(Sample(rates[to])))


def _table(rows: dict) -> str:
    first = next(iter(rows.values()))
    header = ["setting", "MPI-IO, write", "HDF5, write", "x first", "with open and close", "mirrored", "x HDF5", "HDF5, read",
              "talk: HDF5, write"]
    cells = []
    for row, found in rows.items():
        whole = found.write_open_close
        cells.append([row.label, _rate(found.write, "mpiio"), _rate(found.write, "phdf5"),
                      format_ratio(Sample(found.write["phdf5"]).over(Sample(first.write["phdf5"]))), _rate(whole, "phdf5"),
                      _rate(whole, "mirrored"), _ratio(whole, "mirrored", "phdf5"), _rate(found.read, "phdf5"), row.talk])
    return format_table(header, cells)


def draw(facts: dict, figures: dict, directory: Path) -> list[str]:
    """Writes tuning-parallel-*.png into `directory`; returns a line about it."""
    try:
        import matplotlib
    except ImportError:
        return ["no figures: python3-matplotlib is missing (./dev bench tuning installs it)"]
    matplotlib.use("Agg")
    from matplotlib import pyplot

    directory.mkdir(parents=True, exist_ok=True)
    notes = []
    for number, (recipe, rows) in enumerate(by_recipe(figures).items()):
        figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.55 * len(rows)), constrained_layout=True)
        for index, lane in enumerate(_COLOURS):
            medians = [Sample(found.write_open_close[lane]).median for found in rows.values()]
            axes.barh([y + (index - 1) * 0.27 for y in range(len(rows))], medians, 0.25, label=_LABELS[lane],
                      color=_COLOURS[lane])
        axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("MB/s written, with open and close (medians)")
        axes.set_title(f"{recipe}\n{facts['cpu']}, {facts['cores']} cores, commit {facts['commit']}", fontsize=9)
        axes.grid(axis="x", alpha=0.3)
        axes.legend(fontsize=8)
        path = directory / f"tuning-parallel-{number + 1}.png"
        figure.savefig(path, dpi=130)
        pyplot.close(figure)
        notes.append(f"figure: {path}")
    return notes
