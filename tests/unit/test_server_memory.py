"""What a rank costs in memory of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ddp_lessons import launch
from ddp_lessons.engines import forkserver

pytestmark = pytest.mark.skipif(
    forkserver.METHOD != "forkserver", reason="there is no server on this platform"
)


def test_a_rank_shares_the_servers_objects_also_after_it_has_collected_garbage(tmp_path: Path):
    script = tmp_path / "collect.py"
    script.write_text(
        "import gc\n"
        "from pathlib import Path\n"
        "from ddp_lessons.worker import record\n"
        "gc.collect()\n"
        "kept = gc.get_freeze_count()\n"
        "rollup = Path('/proc/self/smaps_rollup')\n"
        "lines = rollup.read_text().splitlines() if rollup.exists() else []\n"
        "dirty = [int(line.split()[1]) for line in lines if line.startswith('Private_Dirty')]\n"
        "record('memory', frozen=kept, private_kb=sum(dirty))\n"
    )
    run = launch(script, 2)
    assert min(run.values("frozen")) > 100_000  # torch's modules hold several hundred thousand
    if sys.platform == "linux":
        # 70 MB without the freeze, about 7 with it.
        assert max(run.values("private_kb")) < 30_000


def test_the_kernel_itself_is_not_frozen():
    launch("00_start_here/hello.py", 1)
    assert "ddp_lessons.engines.frozen" not in sys.modules
