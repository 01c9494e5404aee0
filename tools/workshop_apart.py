"""Who may do what in the room: user ids that keep people apart, and who can start this Python."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

FIRST_UID = 21000
TOLD = {
    "uid": "each person has a user id of its own, and may write into its own folders only",
    "reader": "each person has a user id of its own, may write into its own folders only, and may "
    "read everything, because this Python lies where only root may read",
    "same": "all are this user: permissions keep the course read-only, not one person from another",
    "root": "all are root, whom no permission holds back: only the comparison of the course's "
    "files before and after tells whether somebody wrote there",
}
OWN_UIDS = ("uid", "reader")
READER = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]


def as_user(uid: int, apart: str) -> list[str]:
    """The beginning of a command that runs as that user."""
    if apart not in OWN_UIDS:
        return []
    ids = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return [*ids, *(READER if apart == "reader" else ["--inh-caps=-all"])]


def free_uids(count: int) -> list[int]:
    """User ids that belong to nobody here: what these write is taken for the room's."""
    if not hasattr(os, "getuid"):
        return [FIRST_UID] * count
    import pwd

    def has_a_name(uid: int) -> bool:
        try:
            return bool(pwd.getpwuid(uid))
        except KeyError:
            return False

    return list(
        itertools.islice(itertools.filterfalse(has_a_name, itertools.count(FIRST_UID)), count)
    )


def cannot_start() -> str:
    """The fault of a Python that only root may read, with the first place that shuts people out."""
    place = closed_place(Path(sys.executable))
    return (
        f"people cannot start this Python: {place} lies where only its owner may read. Make .venv "
        "with one that everybody can read: rm -rf .venv; make check PYTHON=/usr/bin/python3"
    )


def closed_place(python: Path) -> Path:
    """The first on the way to this Python, link by link, that others may not pass; the Python
    itself where all may be passed, as when its packages are closed."""
    hops = [python.absolute()]
    while hops[-1].is_symlink():
        hops.append(hops[-1].parent / hops[-1].readlink())
    hops.append(python.resolve())  # also past links among the folders
    for hop in hops:
        for place in [*reversed(hop.parents), hop]:
            need = stat.S_IXOTH if place.is_dir() else stat.S_IROTH | stat.S_IXOTH
            if place.stat().st_mode & need != need:
                return place
    return python


def separation() -> str:
    """How people can be kept apart here: a key of TOLD."""
    if not hasattr(os, "getuid") or os.getuid() != 0:
        return "same"
    if shutil.which("setpriv"):
        for apart in OWN_UIDS:
            # setpriv may reach what its user may not, so the user itself has to start one.
            again = (
                "import subprocess as s, sys, torch.version; s.check_call([sys.executable, '-V'])"
            )
            tried = [*as_user(free_uids(1)[0], apart), sys.executable, "-c", again]
            if not subprocess.run(tried, capture_output=True, cwd="/").returncode:
                return apart
    return "root"
