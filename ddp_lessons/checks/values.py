"""Results on their way from a rank to the parent: any value as JSON, and back, and compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddp_lessons.text import short

if TYPE_CHECKING:
    import torch

# Characters of the JSON form of one value. A record holds 1 MB, and what no longer fits takes up to
# 15 characters, {"object": "…"}, where its list had set aside 8.
MOST = 430_000
ENTRY = 8
DEEPEST = 20  # lists in lists
TOO_MUCH = "too much to be a result"


@dataclass(frozen=True)
class Other:
    """A value that has no JSON form: what it was, in words."""

    what: str

    def __repr__(self) -> str:
        return self.what


def tell(value: Any, most: int = MOST) -> Any:
    """The JSON form of a value; tensors keep their dtype and shape. Of what has none, and of what
    is too big or too deep to be a result, only words are told. No method that a class of the
    reader's defines is called: it may answer to anything with anything."""
    return _tell(value, [most], 0)


def _tell(value: Any, left: list[int], depth: int) -> Any:
    """`left`: how many characters may still be told, of everything together."""
    import torch

    def taken(characters: int) -> bool:
        fits = characters <= left[0]
        left[0] -= characters if fits else 0
        return fits

    def inner(items: Any) -> list[Any]:
        return [_tell(item, left, depth + 1) for item in items]

    kind = type(value)
    if value is None or kind is bool:
        return value
    if issubclass(kind, int) and int.bit_length(value) <= 64 and taken(len(int.__repr__(value))):
        return int.__int__(value)
    if issubclass(kind, float) and taken(20):
        plain = float.__float__(value)
        return plain if math.isfinite(plain) else {"float": repr(plain)}
    if issubclass(kind, str) and taken(6 * str.__len__(value)):
        return str.__str__(value)
    tensor = kind in (torch.Tensor, torch.nn.Parameter) and _is_plain(value)
    if tensor and 3 * value.numel() <= left[0]:
        numbers = value.detach().cpu().reshape(-1).tolist()
        flat = [x if math.isfinite(x) else {"float": repr(x)} for x in numbers]
        if taken(sum(len(repr(x)) + 2 for x in flat)):
            return {"tensor": [str(value.dtype).removeprefix("torch."), list(value.shape), flat]}
    for base in (list, tuple, dict):
        entries = (1 + (base is dict)) * base.__len__(value) if issubclass(kind, base) else 0
        if issubclass(kind, base) and depth < DEEPEST and taken(ENTRY * entries):
            told = inner(dict.items(value) if base is dict else base.__iter__(value))
            return told if base is list else {base.__name__: told}
    words = _described(value)
    return {"object": words if taken(len(words)) else "…"}


def _is_plain(value: torch.Tensor) -> bool:
    """Whether a tensor has numbers that a list can hold."""
    import torch

    somewhere = value.layout == torch.strided and value.device.type != "meta"
    return somewhere and not value.is_complex() and not value.is_quantized


def _described(value: Any) -> str:
    """A value in a few words, none of them its own."""
    import torch

    kind = type(value)
    if kind in (torch.Tensor, torch.nn.Parameter):
        if _is_plain(value):
            return f"{TOO_MUCH}: a tensor of {value.numel():,} numbers"
        dtype, layout = (str(one).removeprefix("torch.") for one in (value.dtype, value.layout))
        return f"a tensor of {dtype}, {layout}, on {value.device}"
    for base in (list, tuple, dict):
        if issubclass(kind, base):
            return f"{TOO_MUCH}: a {base.__name__} of {base.__len__(value):,} entries"
    if issubclass(kind, str):
        return f"{TOO_MUCH}: a text of {str.__len__(value):,} characters"
    return _a(type.__dict__["__name__"].__get__(kind))  # a metaclass may have one of its own


def _a(name: str) -> str:
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name[:50]}"


def read(told: Any) -> Any:
    """The value that tell() told. Tensors are on the CPU. What tell() cannot have told is an Other:
    an answer may have broken what tell() uses."""
    if isinstance(told, list):
        return [read(item) for item in told]
    if not isinstance(told, dict):
        return told
    try:
        ((kind, content),) = told.items()
        return _read(kind, content)
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return Other("a value that cannot be read")


def _read(kind: str, content: Any) -> Any:
    import torch

    if kind == "float":
        return float(content)
    if kind == "tensor":
        dtype, shape, flat = content
        return torch.tensor([read(x) for x in flat], dtype=getattr(torch, dtype)).reshape(shape)
    if kind == "tuple":
        return tuple(read(item) for item in content)
    if kind == "dict":
        return dict(read(pair) for pair in content)
    return Other(str(content))


def told(value: Any, width: int = 90) -> str:
    """One line for a value, for a reader: a tensor as its numbers."""
    return short(_plain(value), width)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def type_fault(value: Any, want: torch.Tensor) -> str:
    """How the kind of a value differs from that of a tensor: type, dtype or shape; "" if it does
    not."""
    import torch

    if not isinstance(value, torch.Tensor):
        kind = "None" if value is None else told(value) if isinstance(value, Other) else ""
        return kind or _a(type(value).__name__)
    if value.dtype != want.dtype:
        return f"a tensor of {str(value.dtype).removeprefix('torch.')}"
    if value.shape != want.shape:
        return f"a tensor of shape {list(value.shape)}"
    return ""


def same(value: torch.Tensor, want: torch.Tensor, tolerance: float = 1e-6) -> bool:
    """Whether two tensors of one shape hold the same numbers: integers exactly, floats within
    `tolerance`, absolute and relative. NaN equals nothing."""
    import torch

    if not want.dtype.is_floating_point:
        return torch.equal(value, want)
    return torch.allclose(value, want, rtol=tolerance, atol=tolerance)


def is_finite(value: Any) -> bool:
    """Whether no NaN or infinity stands anywhere in a value."""
    import torch

    if isinstance(value, torch.Tensor):
        return bool(torch.isfinite(value).all())
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(is_finite(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(is_finite(item) for item in value)
    return True
