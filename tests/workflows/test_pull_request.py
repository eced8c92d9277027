"""pull-request.yaml, run: from a changed folder to verified bundles and a report."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.conftest import Act, Done, Repository, pull_request_event

BUILT = "toy · fp16 · SM8550 +1"
TWO_CHIPS = [{"name": "soc:SM8[56]50"}]
HOSTILE = "\"; touch pwned; $(touch pwned) `touch pwned` ${{ secrets.GITHUB_TOKEN }} '%0A::error::x\n<b>**x**"


def results(done: Done, artifact: str) -> list[dict[str, Any]]:
    """What a compile job said of its targets."""
    [name] = [name for name in done.members(artifact) if name.startswith("results/")]
    targets: list[dict[str, Any]] = json.loads(done.read(artifact, name))["targets"]
    return targets


@pytest.fixture
def with_toy(repository: Repository, toy: Path) -> Repository:
    """A pull request that adds the model toy."""
    repository.pull_request(lambda folder: shutil.copytree(toy, folder / "models" / "toy"))
    return repository


@pytest.mark.slow
@pytest.mark.usefixtures("with_toy")
def test_a_new_model_is_planned_prepared_compiled_verified_and_reported(act: Act) -> None:
    done = act.run("pull-request", "pull_request", pull_request_event(labels=TWO_CHIPS))
    assert done.code == 0, done.log
    assert set(done.jobs().values()) == {"success"}
    assert BUILT in done.jobs()
    # One variant, prepared once; two chips, compiled from what was prepared.
    assert done.names() == ["part-0-plan", "part-0-toy.s16.fp16.sm8550", "prepared-0-toy.s16.fp16", "report-0"]
    targets = results(done, "part-0-toy.s16.fp16.sm8550")
    assert [(target["soc"], target["verdict"], target["reused"]) for target in targets] == [
        ("SM8550", "ok", False),
        ("SM8650", "ok", False),
    ]
    for target in targets:
        archive = f"dist/{Path(target['archive']).name}"
        with tarfile.open(fileobj=io.BytesIO(done.read("part-0-toy.s16.fp16.sm8550", archive))) as bundle:
            names = {Path(name).name for name in bundle.getnames()}
        assert {"net.bin", "net_ctx.onnx", "manifest.json"} <= names
    summary = done.summary()
    assert "toy" in summary
    assert "SM8550" in summary
    assert "SM8650" in summary
    assert done.report()["schema"] == 1
    # 3 → 8 channels: the hint of the one chip that was asked. Nobody asked for the chips without fp16 among `public`.
    assert [(hint["id"], hint["soc"]) for hint in done.report()["hints"]] == [("QH01", "SM8550")]


@pytest.mark.slow
def test_a_broken_model_fails_with_the_annotation_on_its_line(act: Act, repository: Repository, toy: Path) -> None:
    def change(folder: Path) -> None:
        shutil.copytree(toy, folder / "models" / "toy")
        model = folder / "models" / "toy" / "model.yaml"
        model.write_text(model.read_text().replace("precisions: [fp16]", "precisions: [fp17]"))
        lines = model.read_text().splitlines()
        places.append(next(number for number, line in enumerate(lines, 1) if "fp17" in line))

    places: list[int] = []
    repository.pull_request(change)
    done = act.run("pull-request", "pull_request", pull_request_event())
    assert done.code == 1
    assert f"file=models/toy/model.yaml,line={places[0]}," in done.log
    assert done.jobs() == {"Lint and plan": "failure", "Collect": "failure"}
    # The report knows what was wrong, so that the comment can say it.
    assert "fp17" in json.dumps(done.report())


@pytest.mark.slow
def test_a_change_of_a_page_builds_nothing_and_hostile_names_do_nothing(act: Act, repository: Repository) -> None:
    def change(folder: Path) -> None:
        (folder / "README.md").write_text("Another page.\n")

    # A branch may be called so; what a title and a label may be called knows no bounds.
    branch = "$(touch${IFS}pwned);`touch${IFS}pwned`"
    repository.pull_request(change, branch=branch)
    event = pull_request_event(
        title=HOSTILE,
        body=HOSTILE,
        labels=[{"name": HOSTILE}, {"name": "soc:$(touch pwned)"}, {"name": "model:'; touch pwned #"}],
        head={"ref": branch, "repo": {"full_name": "acme/forge", "fork": False}},
    )
    done = act.run("pull-request", "pull_request", event)
    assert done.code == 0, done.log
    assert done.jobs() == {"Lint and plan": "success", "Collect": "success"}
    assert done.names() == ["part-0-plan", "report-0"]
    assert not list(act.folder.parent.rglob("pwned"))


@pytest.mark.slow
def test_a_hostile_model_is_refused_at_lint(act: Act, repository: Repository, toy: Path) -> None:
    name = "$(touch pwned)`touch pwned`"

    def change(folder: Path) -> None:
        shutil.copytree(toy, folder / "models" / name)
        model = folder / "models" / name / "model.yaml"
        model.write_text(model.read_text().replace("local: model.onnx", "local: ../../../../../etc/passwd"))

    repository.pull_request(change)
    done = act.run("pull-request", "pull_request", pull_request_event())
    assert done.code == 1
    assert done.jobs() == {"Lint and plan": "failure", "Collect": "failure"}
    assert "/etc/passwd" in json.dumps(done.report())
    assert not list(act.folder.parent.rglob("pwned"))


DATA = """\
def samples(*, graph, inputs, sources, count):
    raise ValueError("no data <b>today</b>")
"""


@pytest.mark.slow
def test_when_preparing_fails_the_report_says_why(act: Act, repository: Repository, toy: Path) -> None:
    def change(folder: Path) -> None:
        model = folder / "models" / "toy"
        shutil.copytree(toy, model)
        (model / "data.py").write_text(DATA)
        text = (model / "model.yaml").read_text().replace("samples: samples/", "data: data.py:samples")
        (model / "model.yaml").write_text(text)

    repository.pull_request(change)
    done = act.run("pull-request", "pull_request", pull_request_event(labels=TWO_CHIPS))
    assert done.code == 1
    assert done.jobs() == {
        "Lint and plan": "success", "prepare toy · fp16": "failure", BUILT: "failure", "Collect": "failure",
    }  # fmt: skip
    assert {target["error"]["id"][:3] for target in results(done, "part-0-toy.s16.fp16.sm8550")} == {"QF8"}
    summary = done.summary()
    assert "no data" in summary
    assert "<b>today" not in summary
    assert "logs-0-toy.s16.fp16" in done.names()


SPY = """
import os, json, pathlib
with open(os.environ["SPY"], "a") as file:
    json.dump(dict(os.environ), file)
"""


@pytest.mark.slow
def test_a_fork_sees_no_secret(act: Act, repository: Repository, toy: Path, tmp_path: Path) -> None:
    """The fork's branch changes our scripts, to write down all they are given."""

    def change(folder: Path) -> None:
        write_toy_with_spy(folder, toy)

    repository.pull_request(change)
    act.environment["SPY"] = str(tmp_path / "spied")
    head = {"ref": "change", "repo": {"full_name": "stranger/forge", "fork": True}}
    secrets = ["-s", "HF_TOKEN=canary-of-the-hub", "-s", "GITHUB_TOKEN=canary-of-the-repository"]
    event = pull_request_event(head=head, labels=[{"name": "soc:SM8650"}])
    done = act.run("pull-request", "pull_request", event, *secrets)
    assert done.code == 0, done.log
    spied = (tmp_path / "spied").read_text()
    assert spied.count('"GITHUB_RUN_ID"') >= 5, "each job of ours was spied on"
    assert "canary" not in spied


def write_toy_with_spy(folder: Path, toy: Path) -> None:
    """The model toy, and a forge.py that tells."""
    shutil.copytree(toy, folder / "models" / "toy")
    with (folder / ".github" / "scripts" / "forge.py").open("a") as script:
        script.write(SPY)


KILLER = """\
#!/bin/bash
# Stands for a runner that dies: the first build is killed, with its children, once it has finished one chip.
case " $* " in
  *" build "*) [[ -e '{marker}' ]] || {{
    touch '{marker}'
    setsid '{python}' "$@" & build=$!
    until compgen -G 'qnn-forge-work/out/dist/*.tar.gz' > /dev/null; do sleep 0.02; done
    kill -KILL -- "-$build"
    exit 137
  }} ;;
esac
exec '{python}' "$@"
"""


@pytest.mark.slow
@pytest.mark.usefixtures("with_toy")
def test_a_killed_job_goes_on_where_it_was(act: Act, tmp_path: Path) -> None:
    killer = tmp_path / "killer"
    killer.write_text(KILLER.format(marker=tmp_path / "killed", python=sys.executable))
    killer.chmod(0o755)
    act.environment["QNN_FORGE_PYTHON"] = str(killer)
    labels = [{"name": "soc:SM8[5678]50"}]
    event = pull_request_event(labels=labels)
    job = "toy · fp16 · SM8550 +3"
    first = act.run("pull-request", "pull_request", event)
    assert first.code == 1
    assert first.jobs()[job] == "failure"
    assert "logs-0-toy.s16.fp16.sm8550" in first.names()
    second = act.run("pull-request", "pull_request", event)
    assert second.code == 0, second.log
    targets = results(second, "part-0-toy.s16.fp16.sm8550")
    assert [target["verdict"] for target in targets] == ["ok"] * 4
    reused = [target["soc"] for target in targets if target["reused"]]
    assert reused[:1] == ["SM8550"]
    assert len(reused) < 4
    # What was prepared is what it was: no second cache of it.
    assert len(list((act.folder / "cache").glob("*-toy.s16.fp16-*.tar"))) == 1
