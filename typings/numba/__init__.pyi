"""The part of numba that Atoll uses; numba itself ships no types."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")

@overload
def njit(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def njit(
    signature: str | list[str] | None = ...,
    /,
    *,
    boundscheck: bool = ...,
    cache: bool = ...,
    error_model: str = ...,
    fastmath: bool | set[str] = ...,
    forceinline: bool = ...,
    inline: str = ...,
    locals: dict[str, Any] = ...,
    nogil: bool = ...,
    parallel: bool = ...,
    _nrt: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def prange(start: int, stop: int = ..., step: int = ..., /) -> range: ...
def get_num_threads() -> int: ...
def set_num_threads(count: int, /) -> None: ...
