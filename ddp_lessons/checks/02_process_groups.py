"""The exercise of lesson 02: a prediction, and what really happens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ddp_lessons.checks import starts
from ddp_lessons.checks.exercise import Case, Exercise, Fault

# Start, what happened, what was predicted, and what one believes who predicts that: "g" for goes
# on, "r" for raises, "w" for waits; "." is any of them. The first line that fits counts.
BELIEFS = (
    ("A", "www", "..g", "port_ignored"),
    ("A", "www", "ggr|g[wr]r|[wr]gr", "begun_and_refused"),
    ("A", "www", "gg.", "two_of_three"),
    ("A", "www", "g..|.g.", "alone"),
    ("A", "www", "r..|.r.", "missing_raises"),
    ("A", "www", "..r", "wrong_port_raises"),
    ("B", "gg", "r.", "early_raises"),
    ("B", "gg", ".r", "late_raises"),
    ("B", "gg", "ww", "early_waits"),
    ("B", "gg", "wg", "short_wait"),
    ("B", "gg", "gw", "alone"),
    ("C", "wr", "gg", "twins_meet"),
    ("C", "wr", "g.|.g", "alone"),
    ("C", "wr", "r.", "first_raises"),
    ("C", "wr", "ww", "twin_waits"),
    ("D", "ww", "gg", "from_one"),
    ("D", "ww", "g.|.g", "alone"),
    ("D", "ww", "r.|.r", "no_store_raises"),
    ("E", "ggr", "..g", "too_many"),
    ("E", "ggr", "ggw", "full_waits"),
    ("E", "ggr", "gw.|wg.", "alone"),
    ("E", "ggr", "..[rw]", "third_disturbs"),
)


class WillTheyMeet(Exercise):
    key = "02_process_groups/will_they_meet"
    minutes = 8
    names = ("will_they_meet",)
    one_by_one = True
    requirements = {
        "form": f"the prediction has one of the three words for each of the {len(starts.EVERY)} "
        "processes",
        "right": "each word says what its process really does",
    }
    mistakes = {
        "form": "Return a dict with a list for each of the starts A to E. In it is a word for each "
        'process, in the order of the table: "goes on", "raises" or "waits".',
        "port_ignored": "MASTER_PORT is a part of the place where ranks meet. A process that looks "
        "elsewhere never learns of the others, nor they of it.",
        "two_of_three": "WORLD_SIZE says how many must come to the same place. Two of three are no "
        "group, and no smaller group is made of those who came.",
        "begun_and_refused": "A group begins with all its ranks or not at all, so two of three are "
        "none. And an address where nobody listens looks like a store that is not open yet: a "
        "process tries it again and again until the timeout.",
        "alone": "A group begins with all its ranks or not at all. Nobody goes on while one is "
        "missing, and rank 0 is no exception: it opens the store, then it waits like the others.",
        "missing_raises": "Who has come to the store cannot know whether a rank is late or will "
        "never come. So there is no error before the timeout.",
        "wrong_port_raises": "An address where nobody listens looks like a store that is not open "
        "yet. A process tries it again and again until the timeout.",
        "early_raises": "An early process finds no store yet. That is no error: it tries again "
        "until rank 0 has opened it.",
        "late_raises": "Nothing is wrong with a rank 0 that comes later. It opens the store, and "
        "finds the address free: the early process has opened none.",
        "short_wait": 'It does wait, but for a second only: here "waits" stands for at least '
        "four. And nobody goes on while a rank of the group still waits for the store.",
        "early_waits": "An early process tries again and again. As soon as rank 0 has opened the "
        "store, both are there.",
        "twins_meet": "A group of two has the ranks 0 and 1, and two processes with RANK 0 are no "
        "such group. And both want to open the store at one address.",
        "first_raises": "The first process does nothing wrong. It has opened the store, and cannot "
        "know what comes later.",
        "twin_waits": "RANK 0 means: open the store. The address is taken by then, and a program "
        "learns that at once.",
        "from_one": "Ranks count from 0. Who opens the store that these two look for?",
        "no_store_raises": "Without a RANK 0 nobody opens the store. The others try to reach it "
        "until the timeout; nobody looks at their numbers before they have met.",
        "too_many": "A group of two has the ranks 0 and 1, and room for nobody else.",
        "full_waits": "The store answers, so this process comes as far as the group. There its "
        "number is compared with WORLD_SIZE, at once.",
        "third_disturbs": "Two of two have come, and go on. What a third process does later cannot "
        "undo that.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        return [Case("your prediction", 1)]

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        return answer.will_they_meet()

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        (said,) = results
        wrong = misformed(said)
        if wrong:
            yield Fault("form", wrong, "nothing_returned" if said is None else "form")
            return
        real = starts.measured()
        for start, was in starts.outcomes(real).items():
            if list(said[start]) != was:
                told = "\n".join(compared(start, said[start], was))
                yield Fault("right", told, belief(start, said[start], was))


def misformed(said: Any) -> str:
    """Why this is no prediction, "" if it is one."""
    if not isinstance(said, dict):
        what = "None" if said is None else f"a {type(said).__name__}"
        return f"will_they_meet() returned {what}, not a dict"
    for start, processes in starts.STARTS.items():
        if start not in said:
            return f"the prediction says nothing about start {start}"
        words, count = said[start], len(processes)
        if not isinstance(words, list | tuple):
            return f"start {start} has {words!r}, not a list of {count} words"
        if len(words) != count:
            return f"start {start} has {len(words)} words for {count} processes"
        for word in words:
            if word not in starts.WORDS:
                return f"start {start} has {word!r}, which is none of the three words"
    return ""


def compared(start: str, said: Sequence[str], was: Sequence[str]) -> Iterator[str]:
    """Which words of a prediction are wrong, a line each. Not what happened: that is the task."""
    yield f"start {start}: {' · '.join(map(str, starts.STARTS[start]))}"
    for process, guess, word in zip(starts.STARTS[start], said, was, strict=True):
        if guess != word:
            yield f'wrong for {process}: "{guess}"'


def belief(start: str, said: Sequence[str], was: Sequence[str]) -> str:
    """The name of what one believes who makes this prediction, "" where that is not known."""
    guess, fact = ("".join(word[0] for word in words) for words in (said, was))
    return next(
        (
            name
            for one, happened, predicted, name in BELIEFS
            if (one, happened) == (start, fact) and re.fullmatch(predicted, guess)
        ),
        "",
    )


EXERCISES = (WillTheyMeet(),)
