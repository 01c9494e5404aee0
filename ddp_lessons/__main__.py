"""`python -m ddp_lessons machine`: the machine check of lesson 00, in a terminal.
`python -m ddp_lessons check KEY PATH`: the verdict on an answer, exit code 0 if it passes, else 1.
`python -m ddp_lessons gain PATH ...`: what the readers gained whose answer sheets are there.
"""

from __future__ import annotations

import argparse
import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Run one command; return its exit code: 0 if all is well."""
    parser = argparse.ArgumentParser(prog="python -m ddp_lessons")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("machine", help="what this machine has, and a real all-reduce on it")
    one = commands.add_parser("check", help="run an exercise's check on an answer")
    one.add_argument("key", metavar="KEY", help="the exercise, NN_slug/name")
    one.add_argument("path", metavar="PATH", help="the notebook, or the file %%%%exercise wrote")
    gained = commands.add_parser("gain", help="what readers gained, from their answer sheets")
    gained.add_argument(
        "paths", metavar="PATH", nargs="+", help="answer sheets, or folders of them"
    )
    gained.add_argument("--json", action="store_true", help="the same numbers for a program")
    options = parser.parse_args(argv)
    if options.command == "gain":
        return gain(options.paths, options.json)
    if options.command == "check":
        return check(options.key, options.path)

    from ddp_lessons.machine import check_machine

    found = check_machine()
    print(found.report())
    return 0 if found.works else 1


def check(key: str, path: str) -> int:
    """Print the verdict on an answer; 0 if it passes, 1 if it does not or cannot be found."""
    from ddp_lessons.checks import grade
    from ddp_lessons.checks.verdict import CheckError

    try:
        print(grade.check(key, path))
    except (CheckError, ValueError, OSError, RuntimeError) as error:
        print(error)
        return 1
    return 0


def gain(paths: list[str], as_json: bool) -> int:
    """Print what was gained; 0 if at least one answer sheet was found, else 1."""
    from ddp_lessons.objectives import gain

    collected = gain.collect(paths)
    try:
        print(gain.as_json(collected) if as_json else gain.report(collected), flush=True)
    except BrokenPipeError:  # `| head` has seen enough; Python would try again as it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if collected.sheets else 1


if __name__ == "__main__":
    sys.exit(main())
