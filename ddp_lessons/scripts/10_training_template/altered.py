"""Run train.py, altered: killed by SIGKILL, or without one of its parts. The other arguments are
train.py's.

--kill RANK STEP: rank RANK dies in its STEP-th step, behind the optimizer's step.
--tear NUMBER: rank 0 dies when it has written half of its NUMBER-th checkpoint.
"""

import argparse
import io
import itertools
import os
import signal
import sys
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

PARTS = {  # what stands in train.py, and what stands there without the part
    "optimizer": ('optimizer.load_state_dict(saved["optimizer"])', "pass"),
    "scheduler": ('scheduler.load_state_dict(saved["scheduler"])', "pass"),
    "position": ("[done * share :]", "[: len(sampler) - done * share]"),
    "generators": ('if len(saved["generators"]) == world_size:', "if False:"),
    "truncate": ("os.truncate(log, log_size)", "pass"),
    "rehearsal": ("model(train_set[:micro][0].to(device)).sum().backward()", "pass"),
    "rename": ('path.with_suffix(".unfinished")', "path"),
    "own seed": ("torch.manual_seed(args.seed + 1 + rank)", "torch.manual_seed(args.seed + 1)"),
    "everybody": ("if step % per_epoch == 0:", "if step % per_epoch == 0 and rank == 0:"),
}

parser = argparse.ArgumentParser()
parser.add_argument("--kill", type=int, nargs=2, default=(-1, 0))
parser.add_argument("--tear", type=int, default=0)
parser.add_argument("--without", choices=PARTS, action="append", default=[])
how, arguments = parser.parse_known_args()
steps, saves, save = itertools.count(1), itertools.count(1), torch.save


def kill(*_):
    if next(steps) == how.kill[1] and how.kill[0] == int(os.environ["RANK"]):
        os.kill(os.getpid(), signal.SIGKILL)


def tear(state, file, **more):  # all_gather_object saves, too, into memory
    if isinstance(state, dict) and next(saves) == how.tear:
        whole = io.BytesIO()
        save(state, whole)
        file.write(whole.getvalue()[: whole.tell() // 2])
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    save(state, file, **more)


if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":  # a restarted rank may live
    register_optimizer_step_post_hook(kill)
    torch.save = tear
path = Path(__file__).with_name("train.py")
text = path.read_text()
for part in how.without:
    old, new = PARTS[part]
    assert text.count(old) == 1, f"train.py has {old!r} {text.count(old)} times"
    text = text.replace(old, new)
sys.argv = [str(path), *arguments]
exec(compile(text, path, "exec"), {"__name__": "__main__"})  # with names of its own
