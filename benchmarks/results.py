"""What a benchmark row measured, and the table of all rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.tables import text_table


@dataclass(frozen=True)
class Side:
    """One thing that a row measures: every value, in the order in which they were taken."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        return f"{self.name} {self.median:.3g} {self.unit}"


@dataclass(frozen=True)
class Result:
    """One line of the table. `ratio` is None for a row that is held against fixed limits."""

    what: str
    sides: tuple[Side, ...]
    ratio: float | None
    reach: str
    reached: bool


def in_turn(repeats: int, unit: str, **sides: Callable[[], float]) -> tuple[Side, ...]:
    """Measure every side once, then every side again, `repeats` times."""
    values: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, measure in sides.items():
            values[name].append(measure())
    return tuple(Side(name, unit, tuple(found)) for name, found in values.items())


def at_least(reach: float, what: str, sides: Sequence[Side]) -> Result:
    """The first side over the second, which should be `reach` or more."""
    ratio = sides[0].median / sides[1].median
    return Result(what, tuple(sides), ratio, f">= {reach}", ratio >= reach)


def at_most(reach: float, what: str, sides: Sequence[Side]) -> Result:
    """The first side over the second, which should be `reach` or less."""
    ratio = sides[0].median / sides[1].median
    return Result(what, tuple(sides), ratio, f"<= {reach}", ratio <= reach)


def table(results: Sequence[Result]) -> str:
    """The results as plain text, one line a row."""
    head = ("what", "median values", "ratio", "reach", "reached")
    rows = [
        (
            result.what,
            ", ".join(map(str, result.sides)),
            "-" if result.ratio is None else f"{result.ratio:.3g}",
            result.reach,
            "yes" if result.reached else "no",
        )
        for result in results
    ]
    return text_table(head, rows)
