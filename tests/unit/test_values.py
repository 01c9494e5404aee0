"""checks/values.py: any value travels from a rank to the parent, or is told in words."""

from __future__ import annotations

import collections
import json
import math

import numpy
import pytest
import torch

from ddp_lessons.checks import values
from ddp_lessons.checks.values import Other

LARGE = 10**7


def travelled(value: object) -> object:
    """The value as the parent reads it from the record's line."""
    return values.read(json.loads(json.dumps(values.tell(value))))


def alike(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        same = one.dtype == other.dtype and one.shape == other.shape
        return same and torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(alike, one.values(), other.values()))
    return one == other or (one != one and other != other)


KEPT = [
    *(None, True, False, 0, -3, 2**63, 1.5, 0.1, math.inf, -math.inf, math.nan),
    *("", "é\n\0", "\ud800", {"float": "no number"}, {"object": "no object"}),
    *([], (), {}, [1, [2.5, [None]]], (1, ("a",), [2]), {1: [2], "a": {(1, 2): 3.0}, None: ()}),
    torch.tensor(3),
    torch.tensor([[1, 2], [3, 4]]),
    torch.zeros(0, 3),
    torch.tensor([0.1, math.nan, -math.inf]),
    torch.tensor([0.1, 1e300], dtype=torch.float64),
    torch.tensor([True, False]),
    torch.tensor([2**62 + 1, -1]),
    *(torch.ones(2, dtype=dtype) for dtype in (torch.bfloat16, torch.float16, torch.uint8)),
    [torch.ones(1), {"a": torch.zeros(2)}, (torch.tensor(1),)],
    torch.arange(20_000),
]


@pytest.mark.parametrize("value", KEPT, ids=str)
def test_a_value_arrives_as_it_was(value):
    assert alike(travelled(value), value)


def test_tensors_with_a_gradient_or_of_a_model_arrive_as_plain_ones():
    for value in (torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2))):
        assert alike(travelled(value), torch.ones(2))


def test_subclasses_of_lists_and_dicts_arrive_as_what_they_hold():
    assert travelled(collections.OrderedDict(a=1)) == {"a": 1}
    assert travelled(torch.Size([2, 3])) == (2, 3)
    assert alike(travelled(numpy.float64(2.5)), 2.5)

    class Liar(list):
        def __iter__(self):
            raise RuntimeError("asked")

        __len__ = __getitem__ = __eq__ = __iter__

    assert alike(travelled(Liar([1])), [1])


class Sub(torch.Tensor):
    def tolist(self):
        raise RuntimeError("asked")


itself: list = []
itself.append(itself)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "an object"),
        ({1, 2}, "a set"),
        (10**30, "an int"),
        (numpy.ones(2), "a ndarray"),
        (torch.ones(2).as_subclass(Sub), "a Sub"),
        (torch.ones(2).to_sparse(), "a tensor of float32, sparse_coo, on cpu"),
        (torch.ones(2, device="meta"), "a tensor of float32, strided, on meta"),
        (torch.ones(1, dtype=torch.complex64), "a tensor of complex64, strided, on cpu"),
        (torch.ones(LARGE), "too much to be a result: a tensor of 10,000,000 numbers"),
        (range(LARGE), "a range"),
        ([0] * LARGE, "too much to be a result: a list of 10,000,000 entries"),
        ("x" * LARGE, "too much to be a result: a text of 10,000,000 characters"),
        (dict.fromkeys(range(10**6)), "too much to be a result: a dict of 1,000,000 entries"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 99 else "",
)
def test_what_does_not_travel_is_told_in_words(value, words: str):
    assert travelled(value) == Other(words)
    assert values.told(travelled(value)) == words
    assert travelled([value, 1])[1] == 1


@pytest.mark.parametrize(
    "value",
    [
        itself,
        [torch.ones(20_000)] * 1_000,
        [[0] * 10_000] * 10_000,
        [["\ud800" * 1_000]] * 1_000,
        [object()] * 10_000,
        {n: [object()] * 100 for n in range(10_000)},
    ],
    ids=["itself", "tensors", "lists", "texts", "objects", "dicts"],
)
def test_no_value_is_too_much_for_a_record(value):
    assert len(json.dumps(values.tell(value))) < 1_000_000


@pytest.mark.parametrize(
    "told",
    [
        *({"tensor": 5}, {"tensor": ["int64", [2], [1]]}, {"tensor": ["no_dtype", [1], [1]]}),
        *({"tensor": ["float32", [1], ["x"]]}, {"float": "x"}, {"dict": [1]}, {"dict": [[[], 1]]}),
        *({}, {"a": 1, "b": 2}, {"tuple": 3}),
    ],
    ids=str,
)
def test_what_tell_cannot_have_told_is_no_error(told):
    assert values.read(told) == Other("a value that cannot be read")


def test_the_kind_of_a_value_that_should_be_a_tensor_is_named():
    want = torch.ones(2)
    assert values.type_fault(torch.zeros(2), want) == ""
    assert values.type_fault(torch.zeros(2, dtype=torch.int64), want) == "a tensor of int64"
    assert values.type_fault(torch.zeros(1, 2), want) == "a tensor of shape [1, 2]"
    assert values.type_fault(None, want) == "None"
    assert values.type_fault(3, want) == "an int"
    assert values.type_fault(Other("a Sub"), want) == "a Sub"


def test_integers_are_compared_exactly_and_floats_closely():
    large = torch.tensor([2**53])
    assert not values.same(large, large + 1)
    third = torch.tensor([1 / 3])
    assert values.same(third, third + 1e-7)
    assert not values.same(third, third + 1e-4)
    assert not values.same(third * math.nan, third * math.nan)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_number_that_is_none_is_found_wherever_it_stands(bad: float):
    assert values.is_finite([1, "a", None, (torch.ones(2), {"a": 2.0})])
    for value in (bad, [bad], (1, {"a": bad}), [torch.tensor([1, bad])], {"a": [(bad,)]}):
        assert not values.is_finite(value)
