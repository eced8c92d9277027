"""qnn-forge plan, as a user and as CI run it: a real git repository, real models, hostile words."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from qnn.chips.load import SOCS_FILE
from qnn.cli import run
from tests.model import sample

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

CODE = "def prepare():\n    return 1\n"
# The chips that a small model is for, and those of them that a change is built for (SM8635 is no flagship, but it is
# the only one of its group here).
MODEL = sample.edited(sample.MODEL, 'socs: ["SM8*", QCS8550]', "socs: [SM8550, SM8635, SM8650, SM8750]")


@dataclass(frozen=True)
class Repository:
    """A repository like this one: two models, the chip table, code, pins, a page."""

    root: Path
    capsys: pytest.CaptureFixture[str] | None = None

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *identity, *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text
        self.write(path, text.replace(old, new, 1))

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "change")

    def plan(self, *arguments: str) -> tuple[int, str, str]:
        assert self.capsys is not None
        code = run(["plan", *arguments])
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def github(self, *arguments: str) -> dict[str, Any]:
        code, out, err = self.plan("--github", *arguments)
        assert code == 0, err
        assert out.count("\n") == 1
        found: dict[str, Any] = json.loads(out)
        return found

    def changed(self, *arguments: str) -> dict[str, Any]:
        """The plan of what was committed on this branch."""
        return self.github("--changed-from", "main", *arguments)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository on a branch that has not changed anything yet, and whose base has gone on since."""
    root = tmp_path_factory.mktemp("template")
    made = Repository(root)
    for name in ("reader", "writer"):
        sample.write_model(root / "models", {**sample.FILES, "model.yaml": MODEL.replace("reader", name)}, name)
    made.write("scripts/qnn/chips/socs.yaml", SOCS_FILE.read_text(encoding="utf-8"))
    made.write("scripts/qnn/prepare/load.py", CODE)
    made.write("constraints.txt", "onnx==1.0\nruff==1.0\n")
    made.write("docs/page.md", "words\n")
    made.git("init", "-q", "-b", "main")
    made.commit()
    made.git("branch", "change")
    made.write("models/writer/data.py", sample.DATA + "# the base went on\n")
    made.commit()
    made.git("checkout", "-q", "change")
    return root


@pytest.fixture
def repository(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Repository:
    """A copy of the template, and the current folder."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Repository(tmp_path, capsys)


def socs(found: dict[str, Any]) -> dict[str, str]:
    """The chips of every compile job by its prepare id."""
    return {job["prepare_id"]: job["socs"] for shard in found["compile"] for job in shard["include"]}


def test_a_page_builds_nothing(repository: Repository) -> None:
    repository.edit("docs/page.md", "words", "other words")
    repository.commit()
    found = repository.changed()
    assert (found["empty"], found["jobs"], socs(found)) == (True, 0, {})
    assert found["reasons"][0] == "1 changed file builds nothing"


def test_a_changed_model_builds_that_model(repository: Repository) -> None:
    repository.write("models/reader/data.py", sample.DATA + "# more\n")
    repository.commit()
    found = repository.changed()
    assert socs(found) == {
        "reader.large.fp16": "SM8550,SM8650,SM8750", "reader.small.fp16": "SM8550,SM8650,SM8750",
        "reader.large.w8a8": "SM8550,SM8635,SM8650,SM8750", "reader.small.w8a8": "SM8550,SM8635,SM8650,SM8750",
    }  # fmt: skip
    assert found["prepare"]["include"][0] == {
        "name": "reader · large · fp16", "id": "reader.large.fp16", "model": "models/reader", "bucket": "large",
        "precision": "fp16",
    }  # fmt: skip
    assert "reader: models/reader/data.py changed" in found["reasons"]


def test_a_changed_row_builds_that_chip_for_every_model(repository: Repository) -> None:
    repository.edit(
        "scripts/qnn/chips/socs.yaml",
        "  - name: SM8635\n",
        "  - name: SM8635\n    linux_soc0: [1234]\n",
    )
    repository.commit()
    assert repository.changed()["empty"]  # no fact that matters
    text = (repository.root / "scripts/qnn/chips/socs.yaml").read_text()
    head, tail = text.split("  - name: SM8635\n")
    vtcm = tail.split("vtcm_mb: ")[1].split("\n")[0]
    repository.write(
        "scripts/qnn/chips/socs.yaml", f"{head}  - name: SM8635\n{tail.replace(f'vtcm_mb: {vtcm}', 'vtcm_mb: 64', 1)}"
    )
    repository.commit()
    found = repository.changed()
    assert socs(found) == dict.fromkeys(
        ("reader.large.w8a8", "reader.small.w8a8", "writer.large.w8a8", "writer.small.w8a8"), "SM8635"
    )
    assert f"chip SM8635: vtcm_mb {vtcm} → 64" in found["reasons"]


def test_changed_code_builds_every_model_and_comments_build_none(repository: Repository) -> None:
    repository.write("scripts/qnn/prepare/load.py", f'"""Words."""\n\n{CODE}# more words\n')
    repository.commit()
    assert repository.changed()["empty"]
    repository.write("scripts/qnn/prepare/load.py", CODE.replace("1", "2"))
    repository.commit()
    found = repository.changed()
    assert {job["model"] for job in found["prepare"]["include"]} == {"models/reader", "models/writer"}
    assert found["reasons"][0] == "code of export, prepare: scripts/qnn/prepare/load.py"


def test_a_changed_pin_builds_every_model(repository: Repository) -> None:
    repository.edit("constraints.txt", "ruff==1.0", "ruff==2.0")
    repository.commit()
    assert repository.changed()["empty"]
    repository.edit("constraints.txt", "onnx==1.0", "onnx==2.0")
    repository.commit()
    assert repository.changed()["reasons"][0] == "constraints.txt: onnx 1.0 → 2.0"


def test_a_deleted_model_builds_nothing(repository: Repository) -> None:
    shutil.rmtree(repository.root / "models" / "reader")
    repository.commit()
    found = repository.changed()
    assert (found["empty"], found["reasons"][0]) == (True, "model reader is gone: nothing to build")


def test_a_renamed_model_is_one_that_is_gone_and_one_that_is_new(repository: Repository) -> None:
    repository.git("mv", "models/reader", "models/novel")
    repository.edit("models/novel/model.yaml", "name: reader", "name: novel")
    repository.commit()
    found = repository.changed()
    assert {job["model"] for job in found["prepare"]["include"]} == {"models/novel"}
    assert "model reader is gone: nothing to build" in found["reasons"]


def test_a_broken_model_is_named_with_the_line(repository: Repository) -> None:
    repository.edit("models/reader/model.yaml", "precisions: [fp16, w8a8]", "precisions: [fp16, w8a8")
    repository.commit()
    code, out, err = repository.plan("--changed-from", "main", "--github")
    assert (code, out) == (3, "")
    assert "models/reader/model.yaml:" in err
    assert repository.plan("writer")[0] == 0  # another model's fault is another model's


def test_files_may_be_listed_instead(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("list.txt", "./models/reader/data.py\r\n\nREADME.md\n$(touch pwned)\n\x1b[31m\n")
    found = repository.github("--changed", "list.txt")
    assert {job["model"] for job in found["prepare"]["include"]} == {"models/reader"}
    assert "3 changed files build nothing" in found["reasons"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"models/writer/data.py\n\xff\xfe\n")))
    found = repository.github("--changed", "-")
    assert {job["model"] for job in found["prepare"]["include"]} == {"models/writer"}
    assert not (repository.root / "pwned").exists()


def test_hostile_names_of_files_do_nothing(repository: Repository) -> None:
    for name in ("$(touch pwned)", "a\nb.md", "--output=pwned", "models/reader/\x1b]0;x\x07.txt", "'\"`|&;"):
        repository.write(name, "x")
    repository.commit()
    code, out, err = repository.plan("--changed-from", "main")
    assert code == 0, err
    assert "\x1b" not in out
    assert not (repository.root / "pwned").exists()
    assert {job["model"] for job in repository.changed()["prepare"]["include"]} == {"models/reader"}


def test_from_a_folder_below_the_root(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository.root / "npu").mkdir()
    repository.git("mv", "models", "npu/recipes")
    repository.commit()
    repository.git("branch", "-f", "base")
    repository.write("npu/recipes/reader/data.py", sample.DATA + "# more\n")
    repository.edit("docs/page.md", "words", "other words")
    repository.commit()
    found = repository.github("--changed-from", "base", "--models-dir", "npu/recipes")
    assert {job["model"] for job in found["prepare"]["include"]} == {"npu/recipes/reader"}
    monkeypatch.chdir(repository.root / "npu")
    found = repository.github("--changed-from", "base", "--models-dir", "./recipes/")
    assert {job["model"] for job in found["prepare"]["include"]} == {"recipes/reader"}
    assert "1 changed file builds nothing" in found["reasons"]


@pytest.mark.parametrize("ref", ["nowhere", "", "--help", "-x", "HEAD:docs", "$(touch pwned)", "a\nb"])
def test_a_base_that_is_none(repository: Repository, ref: str) -> None:
    code, out, err = repository.plan(f"--changed-from={ref}", "--json")
    assert (code, out) == (11, "")
    assert "QF950" in err
    assert not (repository.root / "pwned").exists()


def test_a_base_without_common_history(repository: Repository) -> None:
    repository.git("checkout", "-q", "--orphan", "lonely")
    repository.commit()
    code, _, err = repository.plan("--changed-from", "main")
    assert code == 11
    assert "there is no common ancestor with HEAD" in err


def test_labels(repository: Repository) -> None:
    repository.edit("models/reader/model.yaml", "summary: Finds", "summary: It finds")
    repository.commit()
    assert set(socs(repository.changed("--labels", '["soc:SM8650", "bug"]')).values()) == {"SM8650"}
    assert repository.changed("--labels", '["model:writer"]')["empty"]
    assert repository.changed("--labels", '["ci:skip"]')["reasons"] == ["label ci:skip: nothing is built"]
    assert repository.changed("--labels", '["ci:dry-run"]')["dry_run"]
    assert repository.changed("--dry-run")["dry_run"]
    hostile = json.dumps(["soc:$(touch pwned)\n", "model:`x`", "</script>", "\x1b[2J", "x" * 10_000])
    found = repository.changed("--labels", hostile)
    assert found["empty"]
    assert all("\n" not in reason for reason in found["reasons"])
    assert repository.changed("--labels", "") == repository.changed()


@pytest.mark.parametrize("labels", ["[", '{"a": 1}', "[1]", "socs:all", "[" * 100_000, "null"])
def test_labels_that_are_no_list(repository: Repository, labels: str) -> None:
    code, _, err = repository.plan("--labels", labels)
    assert (code, "JSON list" in err) == (2, True)


def test_skip_is_asked_first(repository: Repository) -> None:
    repository.edit("models/reader/model.yaml", "name: reader", "name: [")
    assert repository.github("--labels", '["ci:skip"]', "--changed-from", "nowhere")["empty"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--json", "--github"),
        ("--changed-from", "main", "--changed", "list.txt"),
        ("--part", "1"),
        ("--github", "--part", "2"),
        ("--github", "--part", "0"),
        ("reader", "./other/reader"),
        ("--changed", "nowhere.txt"),
        ("--verify", "some"),
    ],
)
def test_usage_errors(repository: Repository, arguments: tuple[str, ...]) -> None:
    repository.write("list.txt", "")
    sample.write_model(repository.root / "other", {**sample.FILES, "model.yaml": MODEL})
    code, out, err = repository.plan(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_models_by_name_and_glob(repository: Repository) -> None:
    assert {job["model"] for job in repository.github("w*")["prepare"]["include"]} == {"models/writer"}
    assert len(repository.github("*", "reader")["prepare"]["include"]) == 8
    code, _, err = repository.plan("x*")
    assert (code, 'no model matches "x*"' in err) == (3, True)


def test_the_table_and_the_document_agree(repository: Repository) -> None:
    code, out, _ = repository.plan("reader", "--soc", "SM8650", "--precision", "fp16", "--bucket", "small")
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("reader · small · fp16"))
    assert row.split()[5:7] == ["SM8650", "2"]
    document = json.loads(
        repository.plan("reader", "--soc", "SM8650", "--bucket", "s*", "--precision", "f*", "--json")[1]
    )
    (job,) = document["compile"]
    assert (job["socs"], job["why"], document["targets"], document["jobs"]) == ("SM8650", ["asked for"], 1, 2)
    assert f"{document['cpu_minutes']:.1f} CPU minutes" in out


def test_one_arch_is_verified_once_and_joined_jobs_are_fewer(repository: Repository) -> None:
    whole, some = repository.github(), repository.github("--verify", "per-arch")
    assert some["cpu_minutes"] < whole["cpu_minutes"]
    joined = repository.github("--join")
    assert joined["prepare"] == {"include": []}
    assert joined["jobs"] == whole["jobs"] / 2
    assert {job["prepare_id"] for shard in joined["compile"] for job in shard["include"]} == {""}
