"""Who started whom: a tree of processes, from what each rank noted of those above it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ddp_lessons.blame import lost_peer
from ddp_lessons.run import Process, Rank, Run

ROOT, SERVER = "launch()", "worker server"
# What a process is, by a part of its command line.
KINDS = (
    ("ddp_lessons.bootstrap agent", "torchrun"),
    ("torch.distributed.run", "torchrun"),
    ("torchrun", "torchrun"),
    ("torch.distributed.launch", "torch.distributed.launch"),
    ("multiprocessing.forkserver", SERVER),
    ("slurmstepd", "slurmstepd"),
)
OWN = "ddp_lessons.own_ranks"


@dataclass
class Node:
    """A process and those that it started. `rank` is None for one that is no rank; `ended`: it
    belongs to an attempt before the last, `died`: that attempt was given up because of it."""

    label: str
    rank: int | None = None
    attempt: int = 0
    ended: bool = False
    died: bool = False
    children: list[Node] = field(default_factory=list)

    def leaves(self) -> Iterator[Node]:
        if self.rank is not None:
            yield self
        for child in self.children:
            yield from child.leaves()

    def depth(self) -> int:
        return 1 + max((child.depth() for child in self.children), default=0)


def trees(run: Run) -> list[Node]:
    """The processes of a run that nobody here started, each with what is below it: launch() alone,
    or on a cluster the cluster's own. Where the system does not tell, the ranks stand alone."""
    nodes: dict[int, Node] = {}
    roots: list[Node] = []
    for attempt, ranks in enumerate([*run.earlier, run.ranks]):
        gone = culprits(ranks) if attempt < run.attempt else set()
        for rank in ranks:
            if rank.pid is None:
                continue  # it was never started
            leaf = Node("rank", rank.rank, attempt, attempt < run.attempt, rank.rank in gone)
            hang(leaf, line_above(rank), run, nodes, roots)
    return roots


def culprits(ranks: Sequence[Rank]) -> set[int]:
    """The ranks because of which an attempt was given up, as far as that is known: those that
    raised something of their own; else the one that left no word. torchrun's own note, which is in
    the exit code, may name a rank that only lost its peer."""
    raised = {rank.rank for rank in ranks if rank.failure and not lost_peer(rank)}
    silent = {rank.rank for rank in ranks if not rank.failure and not rank.finished}
    noted = {rank.rank for rank in ranks if rank.exitcode is not None}
    return raised or (silent if len(silent) == 1 else silent & noted)


def line_above(rank: Rank) -> list[Process]:
    """The processes above a rank, without the guards, which bear the command of their wards."""
    kept: list[Process] = []
    for process in rank.above:
        if not kept or kept[-1].command != process.command:
            kept.append(process)
    return kept


def hang(
    leaf: Node, line: list[Process], run: Run, nodes: dict[int, Node], roots: list[Node]
) -> None:
    node = leaf
    for process in line:
        known = nodes.get(process.pid)
        above = known or nodes.setdefault(process.pid, Node(label(process, run)))
        above.children.append(node)
        if known:
            return
        node = above
    roots.append(node)


def label(process: Process, run: Run) -> str:
    if process.pid == run.owner:
        return ROOT
    if OWN in process.command:
        return run.script
    return next((name for part, name in KINDS if part in process.command), "another process")


def sentence(root: Node) -> str:
    """Who started whom, as the beginning of a sentence."""
    if root.rank is not None:
        return ranks_of([root])
    return f"{root.label} started {told(root)}"


def told(node: Node) -> str:
    """What a process started, and what that started."""
    middle = [child for child in node.children if child.rank is None]
    if not middle:
        return ranks_of(node.children)
    if len(middle) == 1 and len(node.children) == 1:
        the = "the " if middle[0].label == SERVER else ""
        return f"{the}{middle[0].label}, which started {told(middle[0])}"
    each = "; ".join(f"one for {told(child)}" for child in middle)
    alike = {child.label for child in middle}
    return f"{len(middle)} x {alike.pop() if len(alike) == 1 else 'a process'}: {each}"


def ranks_of(leaves: list[Node]) -> str:
    """ "ranks 0 and 1"; with restarts, in which attempt."""
    attempts: dict[int, list[Node]] = {}
    for leaf in leaves:
        attempts.setdefault(leaf.attempt, []).append(leaf)
    if len(attempts) == 1:
        return numbers(leaf.rank for leaf in leaves)
    groups = []
    for attempt, group in sorted(attempts.items()):
        died = [leaf.rank for leaf in group if leaf.died]
        end = f", in which {numbers(died)} died" if died else ""
        groups.append(f"{numbers(leaf.rank for leaf in group)} (attempt {attempt}{end})")
    return ", then ".join(groups)


def numbers(found: Iterable[int]) -> str:
    ranks = sorted(found)
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 4:
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
