"""How far each rank of a run has come, read from its folder while the run goes on."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddp_lessons import collect
from ddp_lessons.bootstrap import EVENTS, rank_folder
from ddp_lessons.text import printable, short
from ddp_lessons.worker import LIMIT

STEP = "progress"  # record("progress", step=i, of=n) says how far a rank has come
OUTPUT, RECORDED = 1 << 16, 2 * LIMIT  # bytes read of each file in one look, from its end
WIDTH = 160  # characters of a printed line

# What a rank's last milestone says of it.
STAGES = {"started": "started", "joining": "waiting to join", "joined": "joined"}


@dataclass(frozen=True)
class Standing:
    """Where one rank is: `stage` is one of a few words, `step` what its last progress record says,
    `printed` its last whole lines of stdout."""

    stage: str = "starting"
    step: str = ""
    printed: tuple[str, ...] = ()


class Progress:
    """Follows the newest attempt of a run. Only the first `follow` ranks' output is read."""

    def __init__(self, folder: Path, world_size: int, follow: int, lines: int):
        self._folder, self._size, self._follow, self._lines = folder, world_size, follow, lines
        self.attempt = -1

    def look(self) -> list[Standing]:
        """Where the ranks are now, in rank order. Reads only what is new since the last look."""
        attempt = collect.last_attempt(self._folder)
        if attempt != self.attempt:
            self.attempt = attempt
            self._ranks = [
                _Rank(rank_folder(self._folder, attempt, r), self._lines if r < self._follow else 0)
                for r in range(self._size)
            ]
        return [rank.look() for rank in self._ranks]


class _Rank:
    def __init__(self, here: Path, lines: int):
        self._events = Tail(here / EVENTS, OUTPUT)
        self._records = Tail(here / "records.jsonl", RECORDED)
        self._stdout = Tail(here / "stdout", OUTPUT) if lines else None
        self._printed: deque[str] = deque(maxlen=lines)
        self._stage, self._step = "starting", ""

    def look(self) -> Standing:
        for event in objects(self._events.lines()):
            self._stage = stage(event, self._stage)
        for found in objects(line for line in self._records.lines() if f'"{STEP}"' in line):
            if found.get("name") == STEP and isinstance(found.get("values"), dict):
                self._step = step(found["values"])
        if self._stdout:
            self._printed.extend(shown(line) for line in self._stdout.lines())
        return Standing(self._stage, self._step, tuple(self._printed))


class Tail:
    """The new whole lines of a file that grows. Of more than `most` new bytes it gives the last."""

    def __init__(self, path: Path, most: int):
        self._path, self._most, self._at = path, most, 0

    def lines(self) -> list[str]:
        try:
            size = self._path.stat().st_size
            if size <= self._at:
                return []
            start = max(self._at, size - self._most)
            with open(self._path, "rb") as file:
                file.seek(start)
                text = file.read(size - start)
        except OSError:  # not there yet, or tidied away: there is nothing to show
            return []
        end = text.rfind(b"\n") + 1
        begin = text.find(b"\n") + 1 if start > self._at else 0  # the rest of a line that is cut
        if end:
            self._at = start + end
        return text[begin:end].decode("utf-8", "replace").splitlines()


def objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects among the lines; a script may write other things into the file."""
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def stage(event: Mapping[str, Any], before: str) -> str:
    """What a rank is at after this milestone."""
    if event.get("event") == "ended":
        return "done" if event.get("finished") else "failed"
    return STAGES.get(str(event.get("event")), before)


def step(values: Mapping[str, Any]) -> str:
    """A progress record in words: "step 3 of 10, loss 0.25"."""
    rest = dict(values)
    told = []
    if "step" in rest:
        of = f" of {short(rest.pop('of'))}" if "of" in rest else ""
        told.append(f"step {short(rest.pop('step'))}{of}")
    told += [f"{printable(name)} {short(value)}" for name, value in rest.items()]
    return ", ".join(told)


def shown(line: str) -> str:
    """A printed line as one line of text; of one that rewrites itself, what it says last."""
    line = printable(line.rstrip("\r").rpartition("\r")[2].expandtabs())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
