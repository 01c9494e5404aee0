"""torch.distributed's communication functions: what the ledger notes of each, and which of it must
be the same on all ranks of the group.

The rules come from torch's documentation of each function (torch.distributed, 2.13) and from runs
on gloo. Shapes are those of the tensor that a rank passes in, or of the output for scatter, recv
and reduce_scatter; bytes are those that it passes in, or expects in a recv or scatter.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

SHAPE, SIZE, DTYPE, REDUCE_OP = "shape", "size", "dtype", "reduce op"
ROOT, DETAIL, LENGTH = "root", "detail", "length"

NOBODY = -1  # the peer of a call that has none, or of a recv from anybody

DTYPES = (
    *("", "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8"),
    *("uint8", "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
    *("uint16", "uint32", "uint64", "another dtype"),
)
REDUCE_OPS = (
    *("", "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"),
    "another op",
)


class Facts(NamedTuple):
    """What one call passed in. `dtype` and `reduce_op` are numbers into the tables above, `peer` a
    global rank, -1 if there is none."""

    bytes: int = 0
    peer: int = NOBODY
    reduce_op: int = 0
    dtype: int = 0
    shape: tuple[int, ...] = ()
    detail: str = ""


@dataclass(frozen=True)
class Operation:
    """One function. `agree`: what must be the same across the group. `side`: "send" or "recv" for
    half of a pair, whose bytes and dtype must be those of the other half; such calls differ
    lawfully across the group.

    tensor, many, root, objects, text: the names of the arguments with the tensor (or a list of
    them), with the list of each rank's part, with the peer, with the list of objects, and with what
    is noted as text.
    """

    name: str
    agree: frozenset[str] = frozenset()
    side: str | None = None
    tensor: str | None = None
    many: str | None = None
    root: str | None = None
    objects: str | None = None
    text: str | None = None

    nothing = Facts()

    @functools.cached_property
    def unusual(self) -> bool:
        many = self.many or self.objects or self.text
        return bool(many) or self.name in (*EXCHANGES, "new_group")

    @functools.cached_property
    def whole(self) -> bool:
        """Whether calls that are alike on all members fit together, and nothing else is to ask."""
        special = (*EXCHANGES, *MAKES_GROUPS)
        return self.side is None and not self.many and self.name not in special

    @functools.cached_property
    def plain(self) -> bool:
        """Whether its first argument is the one tensor that a record tells of."""
        return self.tensor == "tensor" and not self.unusual

    @functools.cached_property
    def reduces(self) -> bool:
        return REDUCE_OP in self.agree

    def facts(self, given: Mapping[str, Any], ranks: Sequence[int]) -> Facts:
        """The facts of a call in a group of these ranks. Raises if an argument is of no use."""
        tensor = given.get(self.tensor)
        shape, size, dtype, detail = (), 0, 0, ""
        if isinstance(tensor, list | tuple):
            size, dtype = sum(one.nbytes for one in tensor), dtype_number(tensor[0].dtype)
            detail = sizes([one.shape for one in tensor])
        elif tensor is not None:
            shape, size, dtype = tensor.shape, tensor.nbytes, dtype_number(tensor.dtype)
        if self.unusual:
            shape, size, detail = self._unusual(given, tensor, ranks, (shape, size, detail))
        op = reduce_number(given.get("op")) if self.reduces else 0
        peer = NOBODY if self.root is None else self._peer(given, ranks)
        return Facts(size, peer, op, dtype, shape, detail)

    def _unusual(
        self,
        given: Mapping[str, Any],
        tensor: Any,
        ranks: Sequence[int],
        found: tuple[tuple[int, ...], int, str],
    ) -> tuple[tuple[int, ...], int, str]:
        """Shape, bytes and detail where they are more than those of one tensor."""
        shape, size, detail = found
        many = given.get(self.many) if self.many else None
        if many is not None and any(one.shape != many[0].shape for one in many):
            # Parts of different sizes: a rank's own may differ, the list of them all may not.
            return shape, size, sizes([one.shape for one in many])
        if self.name in EXCHANGES:
            return exchange(given, tensor, len(ranks))
        if self.objects:
            return (len(given[self.objects]),), size, detail
        if self.name == "new_group":
            asked = given.get("ranks")
            if hasattr(asked, "__next__"):
                raise TypeError("an iterator, which can be read once only, and that by torch")
            asked = list(asked or ranks)
            return shape, size, repr(asked if given.get("sort_ranks") is False else sorted(asked))
        return shape, size, repr(_lists(given.get(self.text))) if self.text else detail

    def _peer(self, given: Mapping[str, Any], ranks: Sequence[int]) -> int:
        peer, inside = given.get(self.root), given.get(f"group_{self.root}")
        if inside is not None:
            return ranks[inside]
        if peer is None:
            return (
                NOBODY if self.side == "recv" else 0
            )  # from anybody; torch's default root is rank 0
        return int(peer)

    def local(self, given: Mapping[str, Any]) -> bool:
        """Whether only the members call it, each for itself, so that no rank needs to keep step."""
        return self.name == "new_group" and bool(given.get("use_local_synchronization"))


def _lists(value: Any) -> Any:
    """The same with tuples as lists: it does not matter how ranks are enumerated."""
    return [_lists(one) for one in value] if isinstance(value, list | tuple) else value


def exchange(
    given: Mapping[str, Any], tensor: Any, members: int
) -> tuple[tuple[int, ...], int, str]:
    """all_to_all: how many elements go to each rank and come from each, as "2,3 from 1,4"."""
    if isinstance(tensor, list | tuple):
        out = given.get("output_tensor_list")
        parts = [one.numel() for one in tensor], [one.numel() for one in out]
        return (), sum(one.nbytes for one in tensor), told_parts(*parts)
    out = given.get("output")
    sent = splits(given.get("input_split_sizes"), tensor, members)
    received = splits(given.get("output_split_sizes"), out, members)
    return tuple(tensor.shape), tensor.nbytes, told_parts(sent, received)


def splits(asked: Sequence[int] | None, tensor: Any, members: int) -> list[int]:
    rows = list(asked) if asked else [len(tensor) // members] * members
    return [count * (tensor.numel() // max(1, len(tensor))) for count in rows]


def told_parts(sent: Sequence[int], received: Sequence[int]) -> str:
    return f"{','.join(map(str, sent))} from {','.join(map(str, received))}"


def read_parts(detail: str) -> tuple[list[int], list[int]]:
    """The inverse of told_parts: elements sent to each rank, and expected from each."""
    sent, _, received = detail.partition(" from ")
    return [int(n) for n in sent.split(",")], [int(n) for n in received.split(",")]


def sizes(shapes: Sequence[Sequence[int]]) -> str:
    return "[" + ", ".join(str(list(shape)) for shape in shapes) + "]"


def dtype_number(dtype: Any) -> int:
    number = _dtype_numbers.get(dtype)
    if number is None:
        number = _dtype_numbers[dtype] = _dtype_number(dtype)
    return number


_dtype_numbers: dict[Any, int] = {}


def _dtype_number(dtype: Any) -> int:
    name = str(dtype).removeprefix("torch.")
    return DTYPES.index(name) if name in DTYPES else len(DTYPES) - 1


_reduce_numbers: dict[int, int] = {}


def reduce_number(op: Any) -> int:
    """The number of a reduce op; SUM for one that was left out, as in torch."""
    if op is None:
        return 1
    number = _reduce_numbers.get(id(op))
    if number is None:
        name = getattr(op, "name", None) or getattr(getattr(op, "op", None), "name", "")
        number = REDUCE_OPS.index(name) if name in REDUCE_OPS else len(REDUCE_OPS) - 1
        if hasattr(op, "name"):  # one of the constants: its id is nobody else's later
            _reduce_numbers[id(op)] = number
    return number


MAKES_GROUPS = ("new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group")
ALIASES = {"all_gather_single": "all_gather_into_tensor"}  # 2.13's new names
ALIASES["reduce_scatter_single"] = "reduce_scatter_tensor"
EXCHANGES = ("all_to_all", "all_to_all_single")


def _all(name: str, *agree: str, **where: str | None) -> Operation:
    return Operation(name, frozenset(agree), **where)


OPERATIONS = {
    operation.name: operation
    for operation in (
        _all("all_reduce", SHAPE, DTYPE, REDUCE_OP, tensor="tensor"),
        _all("all_reduce_coalesced", DTYPE, REDUCE_OP, DETAIL, tensor="tensors"),
        _all("broadcast", SIZE, DTYPE, ROOT, tensor="tensor", root="src"),
        _all("reduce", SHAPE, DTYPE, REDUCE_OP, ROOT, tensor="tensor", root="dst"),
        _all("gather", SHAPE, DTYPE, ROOT, tensor="tensor", root="dst"),
        _all("scatter", SHAPE, DTYPE, ROOT, tensor="tensor", root="src"),
        _all("all_gather", SHAPE, DTYPE, DETAIL, tensor="tensor", many="tensor_list"),
        _all("all_gather_coalesced", DTYPE, DETAIL, tensor="input_tensor_list"),
        _all("all_gather_into_tensor", SHAPE, DTYPE, tensor="input_tensor"),
        _all("all_gather_single", SHAPE, DTYPE, tensor="input_tensor"),
        _all("reduce_scatter", SHAPE, DTYPE, REDUCE_OP, DETAIL, tensor="output", many="input_list"),
        _all("reduce_scatter_tensor", SHAPE, DTYPE, REDUCE_OP, tensor="output"),
        _all("reduce_scatter_single", SHAPE, DTYPE, REDUCE_OP, tensor="output"),
        _all("all_to_all", DTYPE, tensor="input_tensor_list"),
        _all("all_to_all_single", DTYPE, tensor="input"),
        _all("barrier"),
        _all("monitored_barrier"),
        _all("broadcast_object_list", LENGTH, ROOT, objects="object_list", root="src"),
        _all("scatter_object_list", ROOT, root="src"),
        _all("gather_object", ROOT, root="dst"),
        _all("all_gather_object"),
        _all("new_group", DETAIL),
        _all("new_subgroups", DETAIL, text="group_size"),
        _all("new_subgroups_by_enumeration", DETAIL, text="ranks_per_subgroup_list"),
        _all("split_group", DETAIL, text="split_ranks"),
        Operation("send", side="send", tensor="tensor", root="dst"),
        Operation("isend", side="send", tensor="tensor", root="dst"),
        Operation("recv", side="recv", tensor="tensor", root="src"),
        Operation("irecv", side="recv", tensor="tensor", root="src"),
        Operation("send_object_list", side="send", objects="object_list", root="dst"),
        Operation("recv_object_list", side="recv", objects="object_list", root="src"),
        Operation("batch_isend_irecv"),
    )
}
CODES = {name: code for code, name in enumerate(OPERATIONS, start=1)}
