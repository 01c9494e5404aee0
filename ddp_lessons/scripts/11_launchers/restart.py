"""Count to four epochs. Rank 1 is killed once, in epoch 2 of the first try."""

import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

path = Path(sys.argv[1] if sys.argv[1:] else "epochs.json")

with process_group() as device:
    saved = json.loads(path.read_text()) if path.exists() else {"epochs": 0, "total": 0}
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    record("began", attempt=attempt, first_epoch=saved["epochs"])
    first_try = saved["epochs"] == 0
    for epoch in range(saved["epochs"], 4):
        if first_try and epoch == 2 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.tensor([epoch], device=device)
        dist.all_reduce(x)
        saved = {"epochs": epoch + 1, "total": saved["total"] + x.item()}
        if dist.get_rank() == 0:
            part = path.with_suffix(".part")
            part.write_text(json.dumps(saved))
            part.replace(path)  # the old file or the new one, never a half
        dist.barrier()
    record("ended", epochs=saved["epochs"], total=saved["total"])
