"""Which calls fit together: every row of the table, both ways.

The wrappers are the real ones, around functions that do nothing but have torch's own arguments.
"""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from ledgers import MEMBERS, Ranks

from ddp_lessons import ledger_file, operations
from ddp_lessons.agreement import Book
from ddp_lessons.run import Meeting

SUM, MAX = dist.ReduceOp.SUM, dist.ReduceOp.MAX


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype)


@pytest.fixture
def ranks(tmp_path, monkeypatch) -> Ranks:
    return Ranks(tmp_path, monkeypatch)


def differs(book: Book) -> list[str]:
    return [meeting.differs for meeting in book.disagreements()]


X = ones(4)
WORLD_LISTS = [ones(2), ones(2)]

# name, arguments on rank 0, arguments on rank 1, what differs
UNLAWFUL = [
    ("all_reduce", (X,), (ones(5),), "shape"),
    ("all_reduce", (X,), (ones(2, 2),), "shape"),
    ("all_reduce", (X,), (X.long(),), "dtype"),
    ("all_reduce", (X, SUM), (X, MAX), "reduce op"),
    ("all_reduce_coalesced", ([X, X],), ([X, ones(3)],), "detail"),
    ("all_reduce_coalesced", ([X],), ([X.long()],), "dtype"),
    ("all_reduce_coalesced", ([X], SUM), ([X], MAX), "reduce op"),
    ("broadcast", (X, 0), (ones(5), 0), "shape"),
    ("broadcast", (X, 0), (X.double(), 0), "dtype"),
    ("broadcast", (X, 0), (X, 1), "root"),
    ("reduce", (X, 0), (ones(5), 0), "shape"),
    ("reduce", (X, 0), (X.long(), 0), "dtype"),
    ("reduce", (X, 0, SUM), (X, 0, MAX), "reduce op"),
    ("reduce", (X, 0), (X, 1), "root"),
    ("gather", (X, [X, X], 0), (ones(5), None, 0), "shape"),
    ("gather", (X, [X, X], 0), (X.long(), None, 0), "dtype"),
    ("gather", (X, [X, X], 0), (X, [X, X], 1), "root"),
    ("scatter", (X, [X, X], 0), (ones(5), None, 0), "shape"),
    ("scatter", (X, [X, X], 0), (X.long(), None, 0), "dtype"),
    ("scatter", (X, [X, X], 0), (X, [X, X], 1), "root"),
    ("all_gather", ([X, X], X), ([ones(5), ones(5)], ones(5)), "shape"),
    ("all_gather", ([X, X], X), ([X, X], ones(3)), "shape"),
    ("all_gather", ([X, X], X), ([X, ones(3)], ones(3)), "shape"),
    ("all_gather", ([X, X], X), ([X.long(), X.long()], X.long()), "dtype"),
    ("all_gather", ([ones(1), ones(2)], ones(1)), ([ones(1), ones(3)], ones(3)), "detail"),
    ("all_gather_coalesced", ([[X], [X]], [X]), ([[X], [X]], [ones(5)]), "detail"),
    ("all_gather_coalesced", ([[X], [X]], [X]), ([[X], [X]], [X.long()]), "dtype"),
    ("all_gather_into_tensor", (ones(8), X), (ones(10), ones(5)), "shape"),
    ("all_gather_into_tensor", (ones(8), X), (ones(8), X.long()), "dtype"),
    ("reduce_scatter", (ones(2), WORLD_LISTS), (ones(3), [ones(3)] * 2), "shape"),
    ("reduce_scatter", (ones(2), WORLD_LISTS), (ones(2).long(), WORLD_LISTS), "dtype"),
    ("reduce_scatter", (ones(2), WORLD_LISTS, SUM), (ones(2), WORLD_LISTS, MAX), "reduce op"),
    (
        "reduce_scatter",
        (ones(1), [ones(1), ones(2)]),
        (ones(3), [ones(1), ones(3)]),
        "detail",
    ),
    ("reduce_scatter_tensor", (X, ones(8)), (ones(5), ones(10)), "shape"),
    ("reduce_scatter_tensor", (X, ones(8)), (X.long(), ones(8)), "dtype"),
    ("reduce_scatter_tensor", (X, ones(8), SUM), (X, ones(8), MAX), "reduce op"),
    ("all_to_all", ([X, X], [X, X]), ([X, X], [X.long(), X.long()]), "dtype"),
    ("all_to_all", ([ones(1), ones(2)], [ones(1), ones(3)]), ([ones(2), X], [ones(2), X]), "count"),
    ("all_to_all_single", (ones(2), ones(2)), (ones(2), ones(2).long()), "dtype"),
    ("all_to_all_single", (ones(2), ones(2)), (ones(4), ones(4)), "count"),
    ("all_to_all_single", (ones(3), X, [1, 2], [1, 3]), (X, X, [2, 2], [2, 2]), "count"),
    ("barrier", (), None, "op"),
    ("monitored_barrier", (), None, "op"),
    ("broadcast_object_list", ([1], 0), ([1], 1), "root"),
    ("broadcast_object_list", ([1], 0), ([None, None], 0), "length"),
    ("scatter_object_list", ([None], [1, 2], 0), ([None], [1, 2], 1), "root"),
    ("gather_object", ("a", [None] * 2, 0), ("b", [None] * 2, 1), "root"),
    ("all_gather_object", ([None] * 2, "a"), None, "op"),
    ("new_group", ([0, 1],), ([0],), "detail"),
    ("new_subgroups", (1,), (2,), "detail"),
    ("all_to_all_single", (ones(2), ones(2)), (ones(2), None), "dtype"),
    ("new_subgroups_by_enumeration", ([[0], [1]],), ([[0, 1]],), "detail"),
    ("split_group", (None, [[0], [1]]), (None, [[0, 1]]), "detail"),
]

LAWFUL = [
    ("all_reduce", (X, SUM), (X,)),
    ("all_reduce", (X.t(),), (X,)),
    ("all_reduce_coalesced", ([X, ones(2)],), ([X, ones(2)],)),
    ("broadcast", (X, 0), (torch.zeros(4), 0)),
    ("broadcast", (X, 0), (ones(2, 2), 0)),
    ("reduce", (X, 1), (X, 1)),
    ("gather", (X, [X, X], 0), (X, None, 0)),
    ("scatter", (X, None, 1), (X, [X, X], 1)),
    ("all_gather", ([X, X], X), ([X, X], X)),
    ("all_gather", ([ones(1), ones(2)], ones(1)), ([ones(1), ones(2)], ones(2))),
    ("all_gather_coalesced", ([[X], [X]], [X]), ([[X], [X]], [X])),
    ("all_gather_into_tensor", (ones(8), X), (ones(2, 4), X)),
    ("reduce_scatter", (ones(2), WORLD_LISTS), (ones(2), WORLD_LISTS)),
    ("reduce_scatter", (ones(1), [ones(1), ones(2)]), (ones(2), [ones(1), ones(2)])),
    ("reduce_scatter_tensor", (X, ones(8)), (X, ones(2, 4))),
    ("all_to_all", ([ones(1), ones(2)], [ones(1), ones(3)]), ([ones(3), X], [ones(2), X])),
    ("all_to_all_single", (ones(3), X, [1, 2], [1, 3]), (ones(7), ones(6), [3, 4], [2, 4])),
    ("barrier", (), ()),
    ("monitored_barrier", (), ()),
    ("broadcast_object_list", ([{"a": 1}], 0), ([None], 0)),
    ("scatter_object_list", ([None], ["x", "a much longer one"], 0), ([None], None, 0)),
    ("gather_object", ("short", [None] * 2, 0), ("a much longer one", None, 0)),
    ("all_gather_object", ([None] * 2, "short"), ([None] * 2, "a much longer one")),
    ("new_group", ([0, 1],), ([1, 0],)),
    ("new_group", (None,), ([0, 1],)),
    ("new_subgroups", (1,), (1,)),
    ("new_subgroups_by_enumeration", ([[0], [1]],), ([(0,), (1,)],)),
    ("split_group", (None, [[0], [1]]), (None, [[0], [1]])),
]


def name_of(row: tuple) -> str:
    return "-".join([row[0], *row[3:]])


@pytest.mark.parametrize("row", UNLAWFUL, ids=name_of)
def test_calls_that_differ_in_what_must_agree_are_found(ranks, row):
    name, one, other, what = row
    getattr(ranks[0], name)(*one)
    if other is None:
        ranks[1].all_reduce(X)
    else:
        getattr(ranks[1], name)(*other)
    assert differs(ranks.book()) == [what]


@pytest.mark.parametrize("row", LAWFUL, ids=name_of)
def test_calls_that_differ_lawfully_fit_together(ranks, row):
    name, one, other = row
    getattr(ranks[0], name)(*one)
    getattr(ranks[1], name)(*other)
    book = ranks.book()
    assert differs(book) == []
    assert book.unmet() == []


def test_every_function_of_the_table_is_tested_both_ways():
    collectives = {o.name for o in operations.OPERATIONS.values() if o.side is None}
    collectives -= {"batch_isend_irecv"}  # it is recorded as what it holds
    collectives -= {"all_gather_single", "reduce_scatter_single"}  # 2.13's names of two others
    assert {row[0] for row in UNLAWFUL} == collectives
    assert {row[0] for row in LAWFUL} == collectives
    for name in collectives:
        told = {row[3] for row in UNLAWFUL if row[0] == name}
        wanted = {"shape" if what == "size" else what for what in operations.OPERATIONS[name].agree}
        assert told >= wanted - {"shape"} or "detail" in told


def test_the_two_new_names_follow_the_rules_of_the_old_ones():
    table = operations.OPERATIONS
    assert table["all_gather_single"].agree == table["all_gather_into_tensor"].agree
    assert table["reduce_scatter_single"].agree == table["reduce_scatter_tensor"].agree


def test_every_public_communication_function_of_torch_is_in_the_table():
    words = ("reduce", "gather", "scatter", "broadcast", "all_to_all", "barrier", "send", "recv")
    words += ("new_group", "new_subgroups", "split_group")
    public = {name for name in dist.distributed_c10d.__all__ if any(w in name for w in words)}
    functions = {name for name in public if callable(getattr(dist, name)) and name.islower()}
    classes = {name for name in functions if isinstance(getattr(dist, name), type)}
    assert functions - classes - {"reduce_op"} <= set(operations.OPERATIONS)


# Pairs: what rank 0 sends, what rank 1 expects, what differs
PAIRS = [
    ("send", "recv", ones(4), ones(4), None),
    ("isend", "recv", ones(4), ones(2, 2), None),
    ("send", "irecv", ones(4), ones(2), "count"),
    ("send", "recv", ones(4), ones(2), "count"),
    ("send", "recv", ones(4), ones(4).int(), "dtype"),
]


@pytest.mark.parametrize("row", PAIRS, ids=str)
def test_a_send_fits_a_recv_of_the_same_bytes_and_dtype(ranks, row):
    send, recv, sent, expected, what = row
    getattr(ranks[0], send)(sent, 1)
    getattr(ranks[1], recv)(expected, 0)
    book = ranks.book()
    assert differs(book) == ([what] if what else [])
    assert book.unmet() == []


def test_a_tensor_does_not_fit_a_list_of_objects_nor_a_list_one_of_another_length(ranks):
    ranks[0].send_object_list([1], 1)
    ranks[1].recv(X, 0)
    ranks[0].send_object_list([1], 1)
    ranks[1].recv_object_list([None, None], 0)
    ranks[0].send_object_list([1], 1)
    ranks[1].recv_object_list([None], 0)
    assert differs(ranks.book()) == ["op", "count"]


def test_sends_meet_recvs_by_sender_receiver_and_tag_in_order(ranks):
    ranks[0].send(ones(1), 1, tag=5)
    ranks[0].send(ones(2), 1)
    ranks[0].send(ones(3), 1, tag=5)
    ranks[1].recv(ones(2), 0)
    ranks[1].recv(ones(1), 0, tag=5)
    book = ranks.book()
    assert differs(book) == []
    (left,) = book.unmet()
    assert (left.calls[0].told, left.missing) == ("send of float32 [3] to rank 1 with tag 5", (1,))


def test_what_a_recv_from_anybody_took_is_not_judged(ranks):
    ranks[0].send(ones(3), 1)
    ranks[1].recv(ones(3))
    book = ranks.book()
    assert (book.disagreements(), book.unmet()) == ([], [])


def test_different_groups_are_matched_apart(ranks):
    one, other = ("1", MEMBERS), ("2", MEMBERS)
    ranks[0].all_reduce(X, group=one)
    ranks[0].barrier(group=other)
    ranks[1].barrier(group=other)
    ranks[1].all_reduce(X, group=one)
    book = ranks.book()
    assert (book.disagreements(), book.unmet()) == ([], [])


def test_a_group_that_only_its_members_make_is_no_call_of_all(ranks):
    ranks[0].new_group([0], use_local_synchronization=True)
    assert ranks.book().unmet() == []


def test_calls_that_differ_are_found_before_the_last_member_has_come(tmp_path, monkeypatch):
    three = Ranks(tmp_path, monkeypatch, members=(0, 1, 2))
    three[0].barrier()
    three[1].all_reduce(X)
    (found,) = three.book().disagreements()
    assert (found.differs, found.missing) == ("op", (2,))


def test_the_first_of_several_disagreements_comes_first(ranks):
    for shape in (2, 3, 4):
        ranks[0].all_reduce(ones(shape))
        ranks[1].all_reduce(ones(shape + 1))
    assert [m.calls[0].shape for m in ranks.book().disagreements()] == [(2,), (3,), (4,)]


def test_roots_given_as_ranks_of_the_group_are_turned_into_global_ranks(tmp_path, monkeypatch):
    high = ("1", (2, 5))
    two = Ranks(tmp_path, monkeypatch, members=(2, 5))
    two[2].broadcast(X, group=high, group_src=1)
    two[5].broadcast(X, 5, group=high)
    assert two.book().disagreements() == []
    (call,) = two.calls(2)
    assert (call.root, call.group) == (5, (2, 5))


def test_wrong_arguments_are_left_to_torch_to_refuse(ranks):
    ranks[0].all_reduce("no tensor")
    ranks[0].all_reduce()
    assert [call.op for call in ranks.calls(0)] == [
        "all_reduce",
        "all_reduce",
    ]


def test_very_many_calls_keep_the_first_and_the_last(ranks, monkeypatch):
    monkeypatch.setattr(ledger_file, "KEEP", ledger_file.PER_CHUNK)
    monkeypatch.setattr(ledger_file, "RING", ledger_file.PER_CHUNK)
    count = 5 * ledger_file.PER_CHUNK + 7
    for rank in MEMBERS:
        for index in range(count):
            ranks[rank].all_reduce(ones(1) if index < count - 1 else ones(1 + rank))
    kept = ranks.calls(0)
    assert [call.seq for call in kept] == [
        *range(ledger_file.PER_CHUNK),
        *range(count - ledger_file.PER_CHUNK, count),
    ]
    book = ranks.book()
    assert differs(book) == ["shape"]
    assert book.unmet() == []


def test_a_rank_ahead_by_more_than_is_kept_does_not_look_as_if_others_had_missed_calls(
    ranks, monkeypatch
):
    monkeypatch.setattr(ledger_file, "KEEP", ledger_file.PER_CHUNK)
    monkeypatch.setattr(ledger_file, "RING", ledger_file.PER_CHUNK)
    for rank, count in ((0, 5), (1, 3)):
        for _ in range(count * ledger_file.PER_CHUNK):
            ranks[rank].barrier()
    found: list[Meeting] = ranks.book().unmet()
    assert {meeting.missing for meeting in found} == {(1,)}
    assert min(meeting.calls[0].index for meeting in found) >= 3 * ledger_file.PER_CHUNK


def test_the_constant_part_of_a_record_leaves_out_only_when_where_and_how_often():
    names = ledger_file.Fields._fields
    empty = [0.0, 0, 0, 0.0, 0.0, 0.0, *[0] * (len(names) - 6)]
    blank = ledger_file.constant(ledger_file.RECORD.pack(*empty, *[0] * 6))
    for place, name in enumerate([*names, *["shape"] * 6]):
        values = [*empty, *[0] * 6]
        values[place] = type(values[place])(1)
        same = ledger_file.constant(ledger_file.RECORD.pack(*values)) == blank
        leaves_out = ("called", "seq", "index", "returned", "waiting", "done", "line", "wait_line")
        assert same == (name in (*leaves_out, "file", "wait_file", "state")), name


@pytest.mark.parametrize("late", [0, 1, 5])
def test_many_like_calls_are_taken_at_once_with_the_same_result_as_one_by_one(ranks, late):
    for number in (0, 1):
        for _ in range(300 + late * number):
            ranks[number].all_reduce(X)
            ranks[number].barrier()
    both = [ranks.calls(number) for number in MEMBERS]
    quick, slow = Book(), Book()
    assert quick.skip(both) == 600
    for book, count in ((quick, 600), (slow, 0)):
        for calls in both:
            book.take(calls.after(count))
    assert quick.disagreements() == slow.disagreements() == []
    assert quick.unmet() == slow.unmet()
    assert len(quick.unmet()) == 2 * late


@pytest.mark.parametrize(
    "odd",
    [
        lambda rank: rank.all_reduce(ones(5)),
        lambda rank: rank.all_reduce(X.long()),
        lambda rank: rank.all_reduce(X, MAX),
        lambda rank: rank.broadcast(X, 1),
        lambda rank: rank.barrier(group=("7", MEMBERS)),
        lambda rank: rank.send(X, 0),
        lambda rank: rank.all_gather([X, X], X),
        lambda rank: rank.all_to_all_single(ones(2), ones(2)),
    ],
)
def test_calls_that_are_not_all_alike_are_never_taken_at_once(ranks, odd):
    for number in (0, 1):
        ranks[number].all_reduce(X)
    odd(ranks[1])
    ranks[0].all_reduce(X)
    assert Book().skip([ranks.calls(number) for number in MEMBERS]) == 0


def test_calls_that_are_open_keep_later_ones_from_being_taken_at_once(ranks):
    ranks[0].barrier()
    book = Book()
    book.take(ranks.calls(0))
    for number in (0, 1):
        ranks[number].all_reduce(X)
    assert book.skip([ranks.calls(0).after(1), ranks.calls(1)]) == 0


def test_unsorted_groups_must_have_the_same_order(ranks):
    ranks[0].new_group([0, 1], sort_ranks=False)
    ranks[1].new_group([1, 0], sort_ranks=False)
    assert differs(ranks.book()) == ["detail"]


def test_groups_are_made_in_an_order_of_their_own(ranks):
    ranks[0].new_group([0])
    ranks[0].all_reduce(X)
    ranks[1].all_reduce(X)
    ranks[1].new_group([0])
    book = ranks.book()
    assert (book.disagreements(), book.unmet()) == ([], [])


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_tensor_without_bytes_is_recorded_all_the_same(ranks):
    for number in (0, 1):
        ranks[number].all_reduce(torch.sparse_coo_tensor([[0]], [1.0], (3,)))
    book = ranks.book()
    assert (book.disagreements(), book.unmet()) == ([], [])


def test_a_call_that_torch_has_refused_takes_no_place(ranks):
    with pytest.raises(TypeError):
        ranks[0].refuse.all_reduce(X.long())
    for number in (0, 1):
        ranks[number].all_reduce(X)
    book = ranks.book()
    assert (book.disagreements(), book.unmet()) == ([], [])
    assert [call.raised for call in ranks.calls(0)] == [True, False]


def test_a_shape_that_differs_in_its_seventh_dimension_is_found(ranks):
    ranks[0].all_reduce(ones(1, 1, 1, 1, 1, 1, 2))
    ranks[1].all_reduce(ones(1, 1, 1, 1, 1, 1, 3))
    assert differs(ranks.book()) == ["shape"]


def test_ranks_that_an_iterator_gives_are_left_to_torch(ranks):
    asked = iter([0, 1])
    ranks[0].new_group(asked)
    assert list(asked) == [0, 1]


def test_a_tag_that_is_no_number_does_not_fail_here(ranks):
    ranks[0].send(X, 1, tag="seven")
    ranks[0].send(X, 1, tag=2**40)
    assert len(ranks.calls(0)) == 0


def test_each_missing_rank_is_told_with_its_own_count(tmp_path, monkeypatch):
    three = Ranks(tmp_path, monkeypatch, members=(0, 1, 2))
    for number, count in ((0, 3), (1, 1), (2, 0)):
        for _ in range(count):
            three[number].barrier()
    last = three.book().unmet()[-1]
    assert (last.missing, last.made) == ((1, 2), (1, 0))


def test_a_stream_whose_records_were_written_over_accuses_nobody(ranks, monkeypatch):
    monkeypatch.setattr(ledger_file, "KEEP", ledger_file.PER_CHUNK)
    monkeypatch.setattr(ledger_file, "RING", ledger_file.PER_CHUNK)
    alone = ("7", (0,))
    for index in range(4 * ledger_file.PER_CHUNK):
        ranks[0].all_reduce(X, group=alone)
        if index == ledger_file.PER_CHUNK + 5:
            ranks[0].all_reduce(X)
    ranks[1].all_reduce(X)
    assert ranks.book().unmet() == []
