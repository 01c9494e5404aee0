"""compare(): a reader's guess beside what the ranks measured."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import Any

from ddp_lessons.text import short


@dataclass(frozen=True)
class Comparison:
    """A guess, what was measured, and whether they agree (None while there is no guess)."""

    guess: Any
    measured: Any

    @property
    def agrees(self) -> bool | None:
        return None if self.guess is None else same(self.guess, self.measured)

    def __repr__(self) -> str:
        if self.agrees is None:
            return f"no guess · measured {told(self.measured)}"
        verdict = "yes" if self.agrees else "not this time"
        return f"{verdict} · guess {told(self.guess)} · measured {told(self.measured)}"


def compare(guess: Any, measured: Any) -> Comparison:
    """Put `guess` beside `measured`; a cell that ends with it shows the verdict.

    Numbers agree within 0.5 percent. One guess may stand for a list whose entries are all equal.
    While `guess` is None the result says "no guess".
    """
    return Comparison(guess, measured)


def plain(value: Any) -> Any:
    """Arrays, tensors and ranges as lists; a whole number too large for a float as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, range):
        return list(value)
    return str(value) if isinstance(value, int) and abs(value) > 1e300 else value


def unquoted(guess: str) -> Any:
    """The number or truth value that somebody has put between quotes; any other text as it is."""
    try:
        found = ast.literal_eval(guess.strip().capitalize() if guess.strip().isalpha() else guess)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return guess
    return found if isinstance(found, bool | int | float) else guess


def told(value: Any) -> str:
    """One line for a value; a long list of equal entries is counted, not written out."""
    if isinstance(value, list) and len(value) > 4 and all(item == value[0] for item in value):
        return f"{short(value[0])} on all {len(value)} ranks"
    return short(value)


def same(guess: Any, measured: Any) -> bool:
    """Whether the two say the same, as compare() means it."""
    guess, measured = plain(guess), plain(measured)
    if isinstance(guess, str) and not isinstance(measured, str | list | tuple):
        guess = unquoted(guess)
    listed = isinstance(measured, list | tuple)
    if listed and not isinstance(guess, list | tuple):
        return len(measured) > 0 and all(same(guess, item) for item in measured)
    if listed:
        return len(guess) == len(measured) and all(
            same(g, m) for g, m in zip(guess, measured, strict=True)
        )
    numbers = (int, float)
    if isinstance(guess, numbers) and isinstance(measured, numbers):
        return guess == measured or math.isclose(guess, measured, rel_tol=5e-3, abs_tol=1e-9)
    if isinstance(guess, str) and isinstance(measured, str):
        return guess.strip().casefold() == measured.strip().casefold()
    return bool(guess == measured)
