"""QH11 is about chips that a model.yaml asks for, not about what a word for many chips takes along."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from qnn.chips.table import load_table
from qnn.hints.run import integer_chips
from qnn.model.load import find_models, load_models
from qnn.model.spec import Exclusion, Targets

MODELS = Path(__file__).resolve().parents[2] / "models"


def asked(*socs: str, exclude: str = "", precisions: tuple[str, ...] = ("fp16",)) -> tuple[str, ...]:
    (model,) = load_models(find_models(["silero-vad"], MODELS))
    exclusions = (Exclusion((exclude,), "no floating point"),) if exclude else ()
    changed = dataclasses.replace(model, targets=Targets(socs, exclusions), precisions=precisions)
    return integer_chips(changed, load_table())


@pytest.mark.parametrize("socs", [["public"], ["all"], ["groups"], ["SM*"], ["flagships", "SM86*"]], ids=str)
def test_what_a_word_for_many_chips_takes_along_is_not_asked_for(socs: list[str]) -> None:
    assert asked(*socs) == ()


def test_a_chip_asked_for_by_name_or_by_a_glob_of_its_kind_is() -> None:
    assert asked("public", "SM7675") == ("SM7675",)
    assert asked("SM8650, QCS6490") == ("QCS6490",)
    assert asked("SM8650", "SM767*") == ("SM7675",)


def test_one_that_is_taken_away_excluded_or_served_is_not() -> None:
    assert asked("SM7675", "SM8650", "!SM7675") == ()
    assert asked("SM8650", "SM7675", exclude="SM7675") == ()
    assert asked("SM8650", "SM7675", precisions=("fp16", "w8a16")) == ()


def test_no_model_of_the_zoo_deserves_it() -> None:
    table = load_table()
    models = load_models(find_models((), MODELS))
    assert {model.name: chips for model in models if (chips := integer_chips(model, table))} == {}
