"""What an exercise is: its cases, what a rank does with the answer, and how results are judged."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddp_lessons.checks.examine import Bench
    from ddp_lessons.run import Run

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One launch of an answer. `told` says in words what it was given ("3 ranks, x of 2 numbers");
    `values` is what on_rank() needs to make its inputs: numbers, text, lists and dicts only.
    `timeout` is in seconds; None stands for the exercise's own."""

    told: str
    world_size: int = 2
    values: Mapping[str, Any] = field(default_factory=dict)
    nnodes: int = 1
    timeout: float | None = None


@dataclass(frozen=True)
class Fault:
    """A requirement that an answer does not meet: what happened, in numbers, and the name of the
    mistake that usually is behind it ("" if it may be anything)."""

    requirement: str
    told: str
    mistake: str = ""


class Exercise:
    """One exercise. A subclass fills in what stands here; the harness does the rest.

    `key` is NN_slug/name, `names` are the functions that an answer must define. `requirements`
    maps the short name of each requirement to the sentence that the reader sees, in the order of
    the verdict; `mistakes` maps the name of each known mistake to what it is and how it is mended.
    """

    key: str
    minutes: int
    names: tuple[str, ...]
    requirements: Mapping[str, str]
    mistakes: Mapping[str, str]
    timeout: float = 8  # seconds for one case, start and end included
    one_by_one = False  # judge() ends at the first requirement, in order, that its one case breaks
    may_change: frozenset[str] = frozenset()  # what of examine.state() an answer may alter

    def cases(self, seed: int) -> Sequence[Case]:
        """The launches, the smallest first: a failure is told by the first one that shows it.
        Another seed gives other inputs to the same kinds of case."""
        raise NotImplementedError

    def on_rank(self, answer: ModuleType, case: Case, bench: Bench) -> Any:
        """In each rank: make fresh inputs, call the answer, return what it returned.

        `bench` says where this is (rank, world_size, device) and watches inputs: bench.keep(x)
        notes a tensor that must not change. Returns lists, dicts, numbers, text and tensors; what
        else an answer returns arrives at judge() as an Other.
        """
        raise NotImplementedError

    def judge(self, case: Case, results: Sequence[Any], run: Run) -> Iterator[Fault]:
        """In the parent: what is wrong with the results of all ranks, in rank order. `run` holds
        the communication calls that the answer made: run[rank].calls."""
        raise NotImplementedError

    def failed(self, case: Case, run: Run, kind: str) -> str:
        """The mistake behind a launch that failed, "" if it may be anything. `kind` is one of
        raises, waits, endless, mismatch, left_early, killed."""
        return ""


# Mistakes that have nothing to do with the exercise.
COMMON: Mapping[str, str] = MappingProxyType(
    {
        "not_written": "Put your code in place of the line that raises NotImplementedError.",
        "syntax": "Python cannot read the code. Mend that line first.",
        "no_function": "The check calls your functions by name: keep the name and the arguments of "
        "the one that was given.",
        "raises": "The last line named above is the one that raised.",
        "no_tensor": "A communication call takes a tensor. A number goes in as "
        "torch.tensor(number), and the result stands in that tensor afterwards.",
        "waits": "Ranks wait for each other for ever. Follow, rank by rank, which call each of "
        "them makes next: the calls must pair up.",
        "endless": "It had not returned by then: a loop that does not end, or a wait for something "
        "that does not come. An exercise's function needs far less than a second.",
        "prints": "A print stands in a loop that does not end, or that is far too long.",
        "busy": "The computer was too busy to start the ranks. Run the check once more.",
        "too_slow": "An answer has 20 seconds, in all launches together. Look for a sleep, or for "
        "work that is done again and again.",
        "left_running": "A thread or a process that your code has started is still at work. Wait "
        "for it, or start none.",
        "mismatch": "Collectives pair by their order. Each rank must make the same calls, in the "
        "same order, with tensors that fit.",
        "left_early": "The process ended before your function returned. Return the result; leave "
        "the process alone.",
        "killed": "The process was killed from outside or crashed in native code.",
        "wrong_type": "The type of a result is a part of the task: look at what the docstring "
        "promises.",
        "nothing_returned": "A function without a return statement gives back None.",
        "not_finite": "A NaN or an infinity came out: look for a division by zero.",
        "no_wait": "A call with async_op=True, an isend or an irecv only starts. It is done after "
        "wait() on the object that it returned, and until then its tensor is not yours.",
        "changed_input": "What the caller passed in was changed. Work on a copy: x.clone().",
        "changed_state": "A function should leave the process as it found it.",
        "no_work": "Nothing was sent between the ranks, so no rank can know what the others hold.",
    }
)


def find(key: str) -> Exercise:
    """The exercise of that key. Raises ValueError, naming the nearest key, if there is none."""
    known = keys()
    if key not in known:
        near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no exercise {key!r}.{hint}")
    return next(one for one in _of_lesson(key.partition("/")[0]) if one.key == key)


def keys() -> list[str]:
    """The key of every exercise, in course order."""
    slugs = sorted(path.stem for path in HERE.glob("[0-9]*.py"))
    return [one.key for slug in slugs for one in _of_lesson(slug)]


def _of_lesson(slug: str) -> tuple[Exercise, ...]:
    return importlib.import_module(f"ddp_lessons.checks.{slug}").EXERCISES
