"""Labels of a pull request: what they mean, and that strange ones mean nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qnn.plan.labels import Labels, read_labels


def test_what_labels_mean() -> None:
    names = ["bug", "soc:SM8*", "ci:dry-run", "model: silero-* ", "soc:QCS8550", "socs:all", "model:"]
    assert read_labels(names) == Labels(
        dry_run=True, all_socs=True, models=("silero-*",), socs=("QCS8550", "SM8*")
    )  # fmt: skip
    assert read_labels(["ci:skip"]).skip
    assert read_labels([]) == Labels()


def test_what_they_do_not_mean() -> None:
    assert read_labels(["CI:SKIP", "ci:skip-not", "socs:ALL", "soc", "x" * 1000, "soc:" + "*" * 200]) == Labels()


@given(st.lists(st.text(max_size=60), max_size=8))
def test_any_order_and_number_give_the_same(names: list[str]) -> None:
    found = read_labels(names)
    assert read_labels([*reversed(names), *names]) == found
    assert found.skip == ("ci:skip" in {name.strip() for name in names})
