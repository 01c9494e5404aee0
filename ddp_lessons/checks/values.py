"""Results on their way from a rank to the parent: any value as JSON, and back, and compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddp_lessons.text import short

if TYPE_CHECKING:
    import torch

MOST = 20_000  # numbers of one tensor that are carried


@dataclass(frozen=True)
class Other:
    """A value that has no JSON form: what it was, in words."""

    what: str

    def __repr__(self) -> str:
        return self.what


def tell(value: Any) -> Any:
    """The JSON form of a value; tensors keep their dtype and shape."""
    import torch

    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, torch.Tensor):
        dense = value.layout == torch.strided and not value.is_complex()
        if value.numel() > MOST or not dense:
            return {"object": f"a tensor of shape {list(value.shape)}"}
        flat = [tell(x) for x in value.detach().cpu().reshape(-1).tolist()]
        return {"tensor": [str(value.dtype).removeprefix("torch."), list(value.shape), flat]}
    if isinstance(value, list):
        return [tell(item) for item in value[:MOST]]
    if isinstance(value, tuple):
        return {"tuple": [tell(item) for item in value[:MOST]]}
    if isinstance(value, dict):
        return {"dict": [[tell(key), tell(item)] for key, item in value.items()]}
    return {"object": f"a {type(value).__name__}"}


def read(told: Any) -> Any:
    """The value that tell() told. Tensors are on the CPU."""
    import torch

    if isinstance(told, list):
        return [read(item) for item in told]
    if not isinstance(told, dict):
        return told
    ((kind, content),) = told.items()
    if kind == "float":
        return float(content)
    if kind == "tensor":
        dtype, shape, flat = content
        return torch.tensor([read(x) for x in flat], dtype=getattr(torch, dtype)).reshape(shape)
    if kind == "tuple":
        return tuple(read(item) for item in content)
    if kind == "dict":
        return {read(key): read(item) for key, item in content}
    return Other(content)


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
        return kind or f"a {type(value).__name__}"
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
