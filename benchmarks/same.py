"""Whether two runs of one script say the same: pure functions from two Runs to differences.

Used to hold NCCL against gloo, where timing, devices and process ids lawfully differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from ddp_lessons.run import Record, Run
from ddp_lessons.text import summary

RELATIVE = 1e-5
ABSOLUTE = 1e-6  # two float32 results that should both be 0 are told apart by rounding only

# A value is left out of the comparison if a word of its name is one of these.
LEFT_OUT = frozenset(
    {"time", "times", "seconds", "ms", "started", "joined", "ended"}
    | {"device", "devices", "backend", "pid", "pids", "parent", "port", "host", "path"}
)


@dataclass(frozen=True)
class Difference:
    """`kind`: "rank" (one is missing), "records" (some are), "order", or "value"."""

    kind: str
    text: str


def differences(
    first: Run, second: Run, names: tuple[str, str] = ("NCCL", "gloo")
) -> list[Difference]:
    """Where the records of two runs differ: in ranks, names, order in a rank, or values.

    Whole numbers and text have to be equal, floats within RELATIVE or ABSOLUTE. `names` is what the
    sentences call the two runs.
    """
    found: list[Difference] = []
    one, two = ({rank.rank: rank.records for rank in run} for run in (first, second))
    for rank in sorted(one.keys() | two.keys()):
        mine, other = one.get(rank), two.get(rank)
        for records, beside, name in ((mine, other, names[0]), (other, mine, names[1])):
            if not records and beside:
                found.append(Difference("rank", f"rank {rank} is missing on {name}"))
        if mine and other:
            found += _in_rank(rank, mine, other, names)
    return found


def _in_rank(
    rank: int, mine: Sequence[Record], other: Sequence[Record], names: tuple[str, str]
) -> list[Difference]:
    heads = [record.name for record in mine], [record.name for record in other]
    if sorted(heads[0]) != sorted(heads[1]):
        text = f"rank {rank} recorded {_list(heads[0])} on {names[0]}, {_list(heads[1])} on "
        return [Difference("records", text + names[1])]
    if heads[0] != heads[1]:
        at = next(i for i, pair in enumerate(zip(*heads, strict=True)) if pair[0] != pair[1])
        text = f"rank {rank}, record {at}: {heads[0][at]} on {names[0]}, {heads[1][at]} on "
        return [Difference("order", text + names[1])]
    found = []
    for at, (a, b) in enumerate(zip(mine, other, strict=True)):
        left, right = neutral(a.values), neutral(b.values)
        for key in [*left, *(key for key in right if key not in left)]:
            if key not in left or key not in right or not same(left[key], right[key]):
                sides = (
                    f"{values[key]!r} on {name}" if key in values else f"nothing on {name}"
                    for values, name in ((left, names[0]), (right, names[1]))
                )
                text = f"rank {rank}, record {at}, {a.name}.{key}: {', '.join(sides)}"
                found.append(Difference("value", text))
    return found


def same(a: Any, b: Any) -> bool:
    """Equality with a tolerance for floats, at any depth. True and 1 are not the same."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        close = math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        return close or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        a, b = neutral(a), neutral(b)
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


def is_left_out(name: str) -> bool:
    """Whether a value of this name is about the machine or the moment."""
    return not LEFT_OUT.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def neutral(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that are left out."""
    return {name: value for name, value in values.items() if not is_left_out(name)}


def left_out(run: Run) -> list[str]:
    """The names of the values of this run that the comparison does not look at."""
    return sorted({name for record in run.records for name in record.values if is_left_out(name)})


def without(run: Run, names: Sequence[str]) -> Run:
    """The run less its records of these names."""
    ranks = tuple(
        replace(rank, records=tuple(r for r in rank.records if r.name not in names)) for rank in run
    )
    return replace(run, ranks=ranks)


def text_of(run: Run) -> str:
    """The run's text summary, of the values that are not left out."""
    ranks = tuple(
        replace(rank, records=tuple(replace(r, values=neutral(r.values)) for r in rank.records))
        for rank in run
    )
    return summary(replace(run, ranks=ranks))


def unequal_line(one: str, two: str) -> str:
    """The first line in which two texts differ, as both have it; empty if the texts are equal."""
    for a, b in zip_longest(one.splitlines(), two.splitlines(), fillvalue=""):
        if a != b:
            return f"{a!r} and {b!r}"
    return ""


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:6]) or "nothing"
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"
