"""Rounds to one figure: medians with their spread, and ratios within a round."""

import statistics


class Sample:
    """The same measurement in each round; None where a round lacks it."""

    def __init__(self, rounds):
        self.rounds = list(rounds)
        self.values = [value for value in self.rounds if value is not None]

    def __bool__(self) -> bool:
        return bool(self.values)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def over(self, other: "Sample") -> "Sample":
        """Ratios round by round: a slow moment of the machine in one round slowed both."""
        return Sample(None if mine is None or not theirs else mine / theirs
                      for mine, theirs in zip(self.rounds, other.rounds))

    def as_dict(self) -> dict:
        return {"median": self.median, "min": min(self.values), "max": max(self.values)}


def format_seconds(sample: Sample) -> str:
    """Median and spread, in the unit that fits: `12.3 ms [11.9-14.0]`."""
    if not sample:
        return "-"
    scale, unit = (1e3, "ms") if sample.median < 1 else (1, "s")
    low, high = min(sample.values) * scale, max(sample.values) * scale
    digits = 3 if sample.median * scale < 1 else 2 if sample.median * scale < 10 else 1
    return f"{sample.median * scale:.{digits}f} {unit} [{low:.{digits}f}-{high:.{digits}f}]"


def format_ratio(sample: Sample) -> str:
    return f"{sample.median:.2f} [{min(sample.values):.2f}-{max(sample.values):.2f}]" if sample else "-"


def format_table(header: list[str], rows: list[list[str]]) -> str:
    """Markdown, aligned so that it also reads well on a terminal."""
    cells = [header, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row):
        return "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(header), rule, *(line(row) for row in rows)])
