"""Each rule speaks where it should, says it well, and is quiet otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression

from qnn.errors.model import Kind
from qnn.model.load import lint_model
from qnn.model.rules.addresses import BY_ID
from qnn.model.rules.exports import TORCH
from qnn.model.rules.identity import USUAL
from qnn.model.rules.registry import RULES
from tests.model import test_document
from tests.model.faults import FAULTS, GOLDEN, report
from tests.model.sample import FILES, MODEL, edited, line_of, write_model


def test_what_lint_says_of_every_fault(tmp_path: Path) -> None:
    assert report(tmp_path) == GOLDEN.read_text(encoding="utf-8")


def test_every_rule_has_a_fault_that_shows_it() -> None:
    shown = set(re.findall(r" (QF\d{3}) ", GOLDEN.read_text(encoding="utf-8")))
    shown |= {line[-5:] for _, _, lines in test_document.FAULTS for line in lines}
    assert {rule.id for rule in RULES} - shown == {"QF001"}, "QF001 is shown in test_load"


def test_names_of_faults_differ() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_a_model_without_faults_is_quiet(tmp_path: Path) -> None:
    assert lint_model(write_model(tmp_path)) == ()


def test_rules_are_sorted_and_their_ids_differ() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(r"QF[01]\d\d", name) for name in ids)


def test_schema_ties_every_address_rule_to_a_pattern() -> None:
    text = (Path(__file__).parents[2] / "scripts/qnn/model/model.schema.json").read_text(encoding="utf-8")
    assert set(re.findall(r'"x-rule": "(QF\d+)"', text)) == set(BY_ID)


def test_usual_licences_are_spelt_as_in_spdx() -> None:
    assert [canonicalize_license_expression(name) for name in USUAL] == list(USUAL)


def test_symbolic_link_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s", encoding="utf-8")
    folder = write_model(tmp_path)
    (folder / "LICENSE").unlink()
    (folder / "LICENSE").symlink_to(tmp_path / "secret")
    [problem] = lint_model(folder)
    assert (problem.id, problem.place.line, problem.place.column) == ("QF107", line_of(MODEL, "local: LICENSE"), 12)
    assert problem.message == 'the path "LICENSE" cannot be used: it leads out of its folder by a symbolic link'


def test_symbolic_link_inside_the_folder_is_fine(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    (folder / "LICENSE").rename(folder / "COPYING")
    (folder / "LICENSE").symlink_to("COPYING")
    assert lint_model(folder) == ()


def test_python_behind_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("not python (", encoding="utf-8")
    folder = write_model(tmp_path)
    (folder / "helper.py").symlink_to(tmp_path / "outside.py")
    assert lint_model(folder) == ()


def test_a_folder_reached_by_another_name_keeps_its_own(tmp_path: Path) -> None:
    write_model(tmp_path)
    (tmp_path / "other").symlink_to(tmp_path / "reader")
    assert lint_model(tmp_path / "other") == ()


@pytest.mark.parametrize("path", ["x" * 300, "a/" * 190 + "b", "café/ü", "nul\u00a0"])
def test_odd_paths_are_only_missing(tmp_path: Path, path: str) -> None:
    text = edited(MODEL, "local: LICENSE", f'local: "{path}"')
    [problem] = lint_model(write_model(tmp_path, {**FILES, "model.yaml": text}))
    assert problem.id == "QF108"


def test_every_fault_is_reported_at_once(tmp_path: Path) -> None:
    text = edited(MODEL, 'version: "4.0"', "version: 4.0")
    text = edited(text, "task: text-recognition", "task: text-recognition\ntask: other")
    text = edited(text, "reference: det\n", "reference: det2\n")
    text = edited(text, "count: 2", "count: no")
    text = edited(text, "text: equal", "text: same")
    text = edited(text, "pillow==12.0.0", "pillow")
    found = lint_model(write_model(tmp_path, {**FILES, "model.yaml": text, "metric.py": "x ="}))
    assert [(problem.place.line, problem.id) for problem in found] == [
        (1, "QF150"),
        (2, "QF022"),
        (5, "QF007"),
        (line_of(text, "reference: det2"), "QF104"),
        (line_of(text, "count: no"), "QF013"),
        (line_of(text, "text: same"), "QF023"),
        (line_of(text, "requires"), "QF113"),
    ]


def test_skipping_needs_a_hint_that_speaks(tmp_path: Path) -> None:
    same = edited(MODEL, "large: {height: 640, width: 640", "large: {height: 320, width: 320")
    skipped = same + 'lint: {skip: [{id: QF123, reason: "for now"}]}\n'
    assert [problem.id for problem in lint_model(write_model(tmp_path, {**FILES, "model.yaml": same}))] == ["QF123"]
    assert lint_model(write_model(tmp_path, {**FILES, "model.yaml": skipped})) == ()


def test_hints_are_the_rules_that_advise() -> None:
    hints = {rule.id for rule in RULES if rule.kind is Kind.HINT}
    assert hints == {"QF105", "QF117", "QF122", "QF123", "QF132", "QF134", "QF138", "QF155", "QF157", "QF172"}


def test_the_torch_that_is_proposed_is_the_one_we_know() -> None:
    constraints = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8")
    assert TORCH in constraints.splitlines()
