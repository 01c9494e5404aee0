"""What torch's own messages mean: for each known cause what happened and what to do, in a sentence.

Only messages that say too little to a learner, or too much, are here; all others are passed on.
"""

from __future__ import annotations

import re

# What torch says, and what the reader is told instead; {1} and so on are the groups of the pattern.
# Most are from torch 2.13, as seen; those of NCCL are as its source has them.
KNOWN = [
    (
        r"An attempt has been made to start a new process before the\s+current process",
        "the file starts processes while it is imported, and each new process imports it again. "
        'Put the start below `if __name__ == "__main__":`.',
    ),
    (
        r"Can't (?:pickle|get) (?:<function |local object '?)([\w.<>]+)",
        "a new process cannot be given the function {1}: it looks for a function by its name in "
        "the script. Define it there with def, outside of any other function.",
    ),
    (
        r"cannot pickle '([\w.]+)' object",
        "a new process cannot be given an object of type {1}: what it is given is pickled. Let "
        "each process make its own.",
    ),
    (
        r"Caught (\w+) in DataLoader worker process (\d+)\.[\s\S]*"
        r'File "[^"]*?([^"/\\]+)", line (\d+), in (\w+)\n[\s\S]*\n\1: ([^\n]*)',
        "{6} (in worker process {2} of a DataLoader: {3}, line {4}, in {5}).",
    ),
    (
        r"Expected to have finished reduction in the prior iteration[\s\S]*"
        r"Parameters which did not receive grad for rank \d+: ([^\n]+)",
        "in the step before this one, {1} took no part in the loss, so DDP still waits for a "
        "gradient. Use all parameters in every step, or wrap with DDP(model, "
        "find_unused_parameters=True).",
    ),
    (
        r"Expected to have finished reduction in the prior iteration[\s\S]*"
        r"did not receive grad for rank \d+: ([\d ]+)",
        "in the step before this one, the parameters with the numbers {1} took no part in the "
        "loss, so DDP still waits for their gradients. Use all parameters in every step, or wrap "
        "with DDP(model, find_unused_parameters=True). With TORCH_DISTRIBUTED_DEBUG=INFO in the "
        "environment torch gives their names.",
    ),
    (
        r"Unable to find address for: (\S+)",
        "this machine has no network interface {1}, which GLOO_SOCKET_IFNAME asks for. Take the "
        "variable away, or name an interface that is there (lo is this machine alone).",
    ),
    (
        r"doesn't have NCCL built in",
        'backend "nccl", and this build of torch has no NCCL. Use "gloo", or process_group(), '
        "which takes the backend that fits; NCCL needs GPUs and a CUDA build of torch on Linux.",
    ),
    (
        r"doesn't have (MPI|UCC|XCCL) built in|Unknown c10d backend type (\w+)",
        'backend "{name}", which this build of torch does not have. Use "gloo" on the CPU.',
    ),
    (
        r"Torch not compiled with CUDA enabled|has no attribute '_cuda_setDevice'",
        "the script asks for a GPU, and this build of torch is for the CPU alone. Use the device "
        "that process_group() yields: it is a GPU only where each rank has one.",
    ),
    (
        r"\bport: (\d+)\b.*EADDRINUSE|EADDRINUSE.*\bport: (\d+)\b",
        "port {name} is taken by another program, or by a run that has not ended. Leave the "
        "address to launch(), which finds a free port.",
    ),
    (
        r"(\d+)/(\d+) clients joined",
        "{1} of {2} ranks came before the script's own time limit. Each rank is a process of its "
        "own, which somebody has to start: launch(script, {2}) starts them all.",
    ),
    (
        r"client socket has timed out after (\d+)ms while trying to connect to \((.+), (\d+)\)",
        "nobody answered at {2}, port {3}, where rank 0 should be, for {seconds}. Leave the "
        "address to launch(); if it is meant, start rank 0 there first.",
    ),
    (
        r"wait timeout after (\d+)ms, keys: /default_pg/\S*//cpu//\d+/(\d+)",
        "rank {2} had not come to init_process_group after {seconds}, the script's own limit.",
    ),
    (
        r"wait timeout after (\d+)ms, keys: \S*//cpu//",
        "a rank of the new group had not come to it after {seconds}, the script's own limit.",
    ),
    (
        r"Timed out waiting (\d+)ms for (?:recv|send) operation",
        "another rank had not made the same call after {seconds}, the script's own limit.",
    ),
    (
        r"connectFullMesh failed|Connection closed by peer|Connection reset by peer",
        "the connection to another rank broke: that rank has ended, or left the group.",
    ),
    (
        r"rank < size\. (\d+) vs (\d+)",
        "rank {1} in a world of {2}: ranks count from 0, and the last is one less than world_size.",
    ),
    (
        r"No backend type associated with device type (\w+)",
        "a tensor on {1}, which this group's backend cannot send: gloo takes tensors on the CPU, "
        "NCCL tensors on a GPU. Make it on the device that process_group() yields.",
    ),
    (
        r"Duplicate GPU detected",
        "two ranks use the same GPU, and NCCL wants one for each. Let each rank use cuda:LOCAL_RANK"
        ', or take backend "gloo".',
    ),
]
PATTERNS = [(re.compile(pattern, re.DOTALL), said) for pattern, said in KNOWN]


def translate(message: str) -> str | None:
    """The sentence for a message of torch whose cause is known, else None."""
    for pattern, said in PATTERNS:
        if found := pattern.search(message):
            groups = [group for group in found.groups() if group] or [""]
            seconds = f"{int(groups[0]) / 1000:g} s" if "{seconds}" in said else ""
            # {1} is the first group, as in the pattern's own language; {0} is all that was found.
            return said.format(found[0], *found.groups(), name=groups[0].lower(), seconds=seconds)
    return None
