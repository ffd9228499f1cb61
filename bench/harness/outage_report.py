"""The tables of bench/outage.py."""

from harness.stats import Sample, format_ratio, format_seconds, format_table

_TITLES = {
    "there": "The server is there: the cost of each policy",
    "away": "The server goes as the program begins",
    "resync": "Bringing a mirror level",
}


def text(options, facts: dict, figures: dict, failures: list) -> str:
    parts = [_head(options, facts)]
    for name, cells in figures.items():
        parts.append(f"\n## {_TITLES[name]}\n\n" + _TABLES[name](cells))
    if failures:
        parts.append("\n## Failed\n\n" + "\n".join(f"- {failure}" for failure in failures))
    return "\n".join(parts)


def _head(options, facts: dict) -> str:
    return (f"# bench outage, {facts['time']}, commit {facts['commit']} ({facts['build_type']})\n\n"
            f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
            f"{facts['filesystem']}; HDF5 {facts['hdf5']}, gRPC {facts['grpc']}.\n"
            f"{options.rounds} rounds in {facts['elapsed_s']} s; load average at the start "
            f"{facts['load_average']:.1f}, {facts['steal_percent']} % of the time stolen by the hypervisor.\n"
            f"The workload writes {256 * options.scale:.0f} MiB in 1 MiB writes, with a flush after each eighth. "
            f"Medians with [min-max].")


def _sample(rounds: list[dict], what: str) -> Sample:
    return Sample(each.get(what) for each in rounds)


def _outcomes(rounds: list[dict]) -> str:
    return ", ".join(sorted({each["outcome"] for each in rounds}))


def _there(cells: dict) -> str:
    base = _sample(cells.get(("sec2", 0.0), []), "total_s")
    rows = []
    for (row, ms), rounds in cells.items():
        total = _sample(rounds, "total_s")
        rows.append([row, "-" if row == "sec2" else f"{ms:g} ms", format_seconds(_sample(rounds, "felt_s")),
                     format_seconds(_sample(rounds, "close_s")), format_ratio(total.over(base))])
    return format_table(["driver", "round trip", "felt", "close", "total, x sec2"], rows)


def _away(cells: dict) -> str:
    rows = [[row, _outcomes(rounds), format_seconds(_sample(rounds, "felt_s")),
             format_seconds(_sample(rounds, "close_s")), format_seconds(_sample(rounds, "exit_s"))]
            for (row, _), rounds in cells.items()]
    return format_table(["driver, server", "the program", "felt", "close", "process end"], rows)


def _mib(sample: Sample) -> str:
    return f"{sample.median / 2**20:.2f} MiB" if sample else "-"


def _resync(cells: dict) -> str:
    rows = []
    for (row, ms), rounds in cells.items():
        changed = _sample(rounds, "changed_bytes")
        sent = _sample(rounds, "sent_bytes")
        rows.append([row, f"{ms:g} ms", format_seconds(_sample(rounds, "took_s")), _mib(changed), _mib(sent),
                     _mib(_sample(rounds, "digest_bytes")), _mib(_sample(rounds, "carried_bytes")),
                     format_ratio(_sample(rounds, "carried_bytes").over(changed))])
    return format_table(["way", "round trip", "took", "changed", "sent", "digests", "on the wire, both ways",
                         "x changed"], rows)


_TABLES = {"there": _there, "away": _away, "resync": _resync}
