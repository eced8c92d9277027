"""How index documents become dataclasses: by the types of JSON, not by what Python would make of a value."""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, Any, get_args, get_origin

if TYPE_CHECKING:
    from cattrs import Converter


def converter() -> Converter:
    """Reads no text as a number, no number as a truth value, no text as a list; ignores keys it does not know."""
    from cattrs import Converter  # noqa: PLC0415 - 50 ms, only who reads an index pays

    made = Converter(omit_if_default=True)

    def lists(value: Any, kind: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError("not a list")
        # cattrs' own hook for list[...] notes the place of every wrong item
        listed: Any = GenericAlias(list, get_args(kind)[:1])
        return tuple(made.structure(value, listed))

    for kind in (str, bool, int, float):
        made.register_structure_hook(kind, _exactly)
    made.register_structure_hook(float | str | bool, _exactly)
    made.register_structure_hook_func(_is_tuple, lists)
    return made


def _exactly(value: Any, kind: Any) -> Any:
    if kind is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    elif kind is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    else:
        fits = isinstance(value, kind)
    if not fits:
        raise TypeError("not of its type")
    return value


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple
