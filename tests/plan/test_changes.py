"""From changed files to what has to be built: each kind of file, and that everything else builds nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnn.build import keys as build_keys
from qnn.build.keys import KEY_MODULES, KEY_PACKAGES, Keys, stage_modules
from qnn.chips.load import SOCS_FILE
from qnn.model.load import load_model
from qnn.plan.changes import ChangedFile, Changes, Texts, changes_of, needs_texts
from qnn.plan.targets import Target, Variant
from qnn.toolchains.pip.toolchain import PipToolchain
from tests.plan.samples import PARTS, TABLE

MODELS = Path(__file__).parents[2] / "models"
SOCS = SOCS_FILE.read_text(encoding="utf-8")
CHIPS = "scripts/qnn/chips/socs.yaml"


def changes(*files: ChangedFile | str, present: tuple[str, ...] = ("toy", "other"), models: str = "models") -> Changes:
    listed = [ChangedFile(file) if isinstance(file, str) else file for file in files]
    return changes_of(listed, models, present, PARTS)


def edited(path: str, before: str | None, after: str | None) -> ChangedFile:
    return ChangedFile(path, Texts(before, after))


def test_a_file_of_a_model_builds_that_model() -> None:
    found = changes("models/toy/model.yaml", "models/toy/samples/000.npz", "models/toy/README.md")
    assert found.models == {"toy": "models/toy/README.md, models/toy/model.yaml, models/toy/samples/000.npz changed"}
    assert (found.everything, found.chips, found.idle) == ((), {}, 0)


def test_many_files_of_a_model_are_not_all_named() -> None:
    found = changes(*(f"models/toy/samples/{number:03d}.npz" for number in range(9)))
    assert found.models["toy"].endswith("samples/002.npz and 6 more changed")


def test_a_model_that_is_gone_is_a_remark() -> None:
    found = changes("models/old/model.yaml")
    assert found == Changes(notes=("model old is gone: nothing to build",))


def test_the_folder_of_models_may_be_anywhere() -> None:
    assert set(changes("npu/recipes/toy/data.py", models="npu/recipes").models) == {"toy"}
    assert set(changes("npu/recipes/toy/data.py", models="./npu/recipes/").models) == {"toy"}
    assert set(changes("toy/data.py", models=".").models) == {"toy"}
    assert set(changes("../recipes/toy/data.py", models="../recipes").models) == {"toy"}
    assert changes("models2/toy/data.py").models == {}


@pytest.mark.parametrize(
    "path",
    [
        "README.md", "docs/planning.md", "tests/plan/test_changes.py", "benchmarks/plan.py", "models/README.md",
        "models/_template/model.yaml", "models/.hidden/x", ".github/workflows/ci.yaml", "scripts/qnn/cli/plan.py",
        "scripts/qnn/chips/without_htp.yaml", "scripts/qnn/prepare.py.md", "other/scripts/qnn/prepare/load.py",
        "$(touch x)", "a\nb", "models", "", "scripts/qnn/preparedness.py",
    ],
)  # fmt: skip
def test_other_files_build_nothing(path: str) -> None:
    assert changes(path) == Changes(idle=1)


def test_code_of_a_stage_rebuilds_everything_and_names_the_stage() -> None:
    found = changes(edited("scripts/qnn/prepare/load.py", "a = 1\n", "a = 2\n"))
    assert found == Changes(everything=("code of prepare: scripts/qnn/prepare/load.py",))
    assert changes("scripts/qnn/tensors.py").everything == ("code of compile: scripts/qnn/tensors.py",)
    assert changes("scripts/qnn/__init__.py").everything == ("code of bundle: scripts/qnn/__init__.py",)
    assert changes("scripts/qnn/toolchains/pip/__init__.py").everything != ()


def test_code_that_makes_keys_rebuilds_everything() -> None:
    reasons = changes("scripts/qnn/build/keys.py").everything
    assert reasons == ("code that makes the keys of all stages: scripts/qnn/build/keys.py",)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1\n", "a = 1  # one\n"),
        ('"""Old."""\na = 1\n', '"""New.\n\nLonger.\n"""\n\n\na = 1\n'),
        ("def f():\n    return 1\n", 'def f():\n    """Says one."""\n    # one\n    return 1\n'),
    ],
)
def test_comments_and_docstrings_build_nothing(before: str, after: str) -> None:
    assert changes(edited("scripts/qnn/prepare/load.py", before, after)) == Changes(idle=1)


@pytest.mark.parametrize(
    ("before", "after"), [("a = 1\n", "a = '1'\n"), ("a = 1\n", "a = (\n"), ("a = 1\n", "\0"), (None, ""), ("", None)]
)
def test_anything_else_in_code_counts(before: str | None, after: str | None) -> None:
    assert changes(edited("scripts/qnn/prepare/load.py", before, after)).everything != ()


def test_pins_of_packages_that_count() -> None:
    before = "# pins\nonnx==1.22.0\nonnxruntime_qnn==2.6.0\nruff==0.1\n"
    after = "# the pins\nonnx==1.22.0\nonnxruntime-qnn==2.7.0\nruff==0.2\n"
    found = changes(edited("constraints.txt", before, after))
    assert found.everything == ("constraints.txt: onnxruntime-qnn 2.6.0 → 2.7.0",)
    assert changes(edited("constraints.txt", before, before.replace("ruff==0.1", ""))) == Changes(idle=1)
    assert changes(edited("constraints.txt", None, "onnx==1\n")).everything == ("constraints.txt: onnx none → 1",)
    assert changes("constraints.txt").everything == ("constraints.txt changed (what in it is not known)",)


def test_ranges_of_packages_that_count() -> None:
    before = '[project]\nversion = "1"\ndependencies = ["onnx>=1.19", "click>=8"]\n'
    assert changes(edited("pyproject.toml", before, before.replace("click>=8", "click>=9"))) == Changes(idle=1)
    found = changes(edited("pyproject.toml", before, before.replace("onnx>=1.19", "onnx >=1.20,<2")))
    assert found.everything == ("pyproject.toml: onnx >=1.19 → >=1.20,<2",)
    assert changes(edited("pyproject.toml", before, "[project\n")).everything != ()


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("vtcm_mb: 8", "vtcm_mb: 2", "vtcm_mb 8 → 2"),
        ("arch: v75", "arch: v79", "arch v75 → v79"),
        ("hvx_threads: 4", "hvx_threads: 6", "hvx_threads 4 → 6"),
        ("fp16: true", "fp16: false", "fp16 true → false"),
        ("status: public", "status: compiler-only", "status public → compiler-only"),
    ],
)
def test_a_row_of_the_chip_table_rebuilds_that_chip(old: str, new: str, difference: str) -> None:
    head, tail = SOCS.split("  - name: SM8650\n")
    assert old in tail.split("  - name:")[0]
    after = f"{head}  - name: SM8650\n{tail.replace(old, new, 1)}"
    assert changes(edited(CHIPS, SOCS, after)) == Changes(chips={57: f"chip SM8650: {difference}"})
    renamed = SOCS.replace("  - name: SM8650\n", "  - name: SM8651\n")
    assert changes(edited(CHIPS, SOCS, renamed)).chips == {57: "chip SM8651: name SM8650 → SM8651"}


def test_words_about_a_chip_rebuild_nothing() -> None:
    after = SOCS.replace("# Every Snapdragon chip", "# All chips").replace("8 Gen 3", "8 Gen Three")
    after = after.replace("date: 2026-11-30", "date: 2026-12-01")
    assert after != SOCS
    assert changes(edited(CHIPS, SOCS, after)) == Changes()


def test_new_and_lost_rows() -> None:
    row = "  - name: SM8650\n" + SOCS.split("  - name: SM8650\n")[1].split("  - name:")[0]
    without = SOCS.replace(row, "")
    assert changes(edited(CHIPS, without, SOCS)).chips == {57: "chip SM8650 is new"}
    assert changes(edited(CHIPS, SOCS, without)) == Changes(notes=("chip SM8650 is gone from the table",))


@pytest.mark.parametrize("text", ["socs: [", "chips: []", "socs: [{name: a}]", "- a\n"])
def test_a_table_that_cannot_be_compared_rebuilds_everything(text: str) -> None:
    assert changes(edited(CHIPS, text, SOCS)).everything != ()
    assert changes(edited(CHIPS, SOCS, text)).everything != ()
    assert changes(CHIPS).everything == (f"{CHIPS} changed (which rows is not known)",)


def test_only_files_that_are_looked_into_are_read() -> None:
    wanted = [CHIPS, "constraints.txt", "pyproject.toml", "scripts/qnn/prepare/load.py"]
    others = ["models/toy/data.py", "README.md", "scripts/qnn/model/model.schema.json", "tests/scripts/qnn/a.py"]
    assert [path for path in wanted + others if needs_texts(path)] == wanted


PATHS = st.one_of(
    st.text(max_size=40),
    st.builds("models/{}".format, st.text(max_size=20)),
    st.builds("scripts/qnn/prepare/{}.py".format, st.text(max_size=20)),
    st.sampled_from(["models/toy/model.yaml", "models/old/data.py", "scripts/qnn/prepare/load.py", CHIPS]),
)


@given(st.lists(PATHS, max_size=12), st.randoms())
def test_the_order_of_files_and_hostile_paths_make_no_difference(paths: list[str], random: object) -> None:
    shuffled = list(paths)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = changes(*paths)
    assert changes(*shuffled, *paths) == found
    assert set(found.models) <= {"toy", "other"}
    for text in (*found.models.values(), *found.notes, *found.everything):
        assert not any(character in text for character in "\n\r\x1b\x00\u202e")


def test_the_modules_of_stages_are_those_the_keys_are_made_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage that takes other modules into its key than `stage_modules` says would be planned wrongly."""
    monkeypatch.setattr(build_keys, "code_digest", lambda modules, _: "|".join(sorted(set(modules))))
    toolchain = PipToolchain()
    keys = Keys(toolchain, Path())
    target = Target(Variant(load_model(MODELS / "silero-vad"), "default", "fp16"), TABLE.lookup("SM8650"))
    (graph,) = target.variant.model.graphs
    exported = replace(graph, sources={}, reference=None, export="export.py:net")
    made = [
        keys.exported(target.variant, exported), keys.reference(target.variant, exported),
        keys.prepared(target.variant, graph), keys.samples(target.variant, graph),
        keys.reference(target.variant, graph), keys.ranges(target.variant, graph, 1),
        keys.compiled(target, graph), keys.package(target), keys.measured(target, graph),
        keys.metrics(target, graph), keys.bundle(target, verified=True),
    ]  # fmt: skip
    said = stage_modules(toolchain.code_modules)
    taken: dict[str, set[str]] = {}
    for key in made:
        taken.setdefault(key.stage, set()).update(key.code.split("|"))
    assert taken == {stage: set(modules) - {"qnn"} for stage, modules in said.items() if "chain" not in stage}
    assert set(KEY_MODULES) <= {"qnn.build.keys", "qnn.store.code", "qnn.store.digest"}
    assert {name for name, _ in toolchain.identity.packages} <= KEY_PACKAGES
