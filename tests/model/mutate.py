"""Changes to a valid model's data, as hypothesis strategies: what a slip of the hand or a hostile author does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.model.sample import MODEL

VALID: dict[str, Any] = yaml.safe_load(MODEL)

ODD_VALUES: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    8.0,
    0.5,
    10**12,
    "",
    "equal",
    "det",
    "fp16",
    "A b",
    "x" * 300,
    "data.py:f",
    [],
    ["fp16"],
    ["fp16", "fp16"],
    [1, "n"],
    [1, True],
    [1, True, 1.0],
    {},
    {"min": 1},
    {"min": 1, "max": 2},
    {"shape": [1]},
    {"spdx": "MIT"},
    {"socs": ["all"], "reason": "r"},
    {"Bad Name": {"local": "x"}},
]
ODD_KEYS = ["", "sorces", "x", "spdx", "reason", "data", "samples", "file", "pypi", "Bad Name", "min", "*", "metric"]


def containers(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all lists and mappings."""
    if isinstance(data, (dict, list)):
        yield path
        for step, item in data.items() if isinstance(data, dict) else enumerate(data):
            yield from containers(item, (*path, step))


def at(data: Any, path: tuple[Any, ...]) -> Any:
    """The value at a path."""
    for step in path:
        data = data[step]
    return data


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """The valid model with one to three changes: something deleted, renamed, replaced or added anywhere."""
    data = copy.deepcopy(VALID)
    for _ in range(draw(st.integers(1, 3))):
        container = at(data, draw(st.sampled_from(list(containers(data)))))
        steps = list(container) if isinstance(container, dict) else list(range(len(container)))
        change = draw(st.sampled_from(["delete", "replace", "add", "rename"]))
        if change == "add" or not steps:
            value = draw(st.sampled_from(ODD_VALUES))
            if isinstance(container, list):
                container.append(copy.deepcopy(value))
            else:
                container[draw(st.sampled_from(ODD_KEYS))] = copy.deepcopy(value)
            continue
        step = draw(st.sampled_from(steps))
        if change == "replace":
            container[step] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
        elif change == "rename" and isinstance(container, dict):
            container[draw(st.sampled_from(ODD_KEYS))] = container.pop(step)
        else:
            del container[step]
    return data
