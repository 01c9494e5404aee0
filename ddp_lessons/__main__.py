"""`python -m ddp_lessons machine`: the machine check of lesson 00, in a terminal."""

from __future__ import annotations

import argparse
import sys


def main(argv: list[str] | None = None) -> int:
    """Run one command; return its exit code: 0 if all is well."""
    parser = argparse.ArgumentParser(prog="python -m ddp_lessons", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("machine", help="what this machine has, and a real all-reduce on it")
    parser.parse_args(argv)

    from ddp_lessons.machine import check_machine

    found = check_machine()
    print(found.report())
    return 0 if found.works else 1


if __name__ == "__main__":
    sys.exit(main())
