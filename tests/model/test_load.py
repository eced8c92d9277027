"""A folder becomes a Model or a list of problems, and nothing else."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qnn.errors.base import ExitCode
from qnn.errors.model import InvalidModel, Kind, UnknownModel
from qnn.model.document import read
from qnn.model.load import find_models, lint_model, load_model, load_models
from qnn.model.spec import (
    Checks,
    Exclusion,
    Gates,
    Graph,
    InputSpec,
    Licence,
    Limits,
    MetricGate,
    Model,
    Publish,
    Source,
    SourceKind,
    Targets,
)
from tests.model.mutate import VALID, mutated
from tests.model.sample import DATA, FILES, METRIC, MODEL, edited, line_of, write_model

WHOLE = Model(
    name="reader",
    version="4.0",
    summary="Finds and reads lines of text.",
    task="text-recognition",
    licence=Licence("Apache-2.0", None, "licence", "The authors"),
    sources={
        "det": Source("det", SourceKind.PYPI, "some-package==1.4.4", "some/det.onnx", "1" * 64, 4745517),
        "det-w8a8": Source(
            "det-w8a8",
            SourceKind.HUGGINGFACE,
            "owner/repo@0123456789abcdef0123456789abcdef01234567",
            "det_int8.onnx",
            "2" * 64,
            1200000,
        ),
        "rec": Source("rec", SourceKind.URL, "https://example.org/rec.zip", "rec.onnx", "3" * 64, 10),
        "words": Source("words", SourceKind.GITHUB, "owner/repo@v1.0/words.txt", None, "4" * 64, 20),
        "licence": Source("licence", SourceKind.LOCAL, "LICENSE", None, "5" * 64, 11),
    },
    graphs=(
        Graph("det", {"fp16": "det", "w8a8": "det-w8a8"}, (InputSpec("x", (1, 3, "height", "width")),), "det"),
        Graph("rec", {"*": "rec", "w8a8": "words"}, (InputSpec("ids", (1, "length"), "int32"),), "rec"),
    ),
    buckets={
        "small": {"height": 320, "width": 320, "length": 128},
        "large": {"height": 640, "width": 640, "length": 128},
    },
    precisions=("fp16", "w8a8"),
    targets=Targets(("SM8*", "QCS8550"), (Exclusion(("SM8350",), "no fp16"),)),
    checks=Checks(
        data="data.py:samples",
        samples=2,
        metric="metric.py:evaluate",
        metric_gates={
            "rec": {
                "text": MetricGate(equal=True),
                "iou": MetricGate(minimum=0.98),
                "distance": MetricGate(maximum=3.0),
                "score": MetricGate(max_drop=0.01),
            }
        },
        gates=Gates(0.999, 1.0, 0.5, 0.9),
        output_gates={"det": {"out": Gates(max_abs=0.2)}},
    ),
    requires=("pillow==12.0.0", "numpy==2.0.0"),
    limits=Limits(8.0, 30.5),
    publish=Publish(True, "owner/repo"),
    folder=Path("reader"),
)

SMALL = """\
name: reader
version: "1"
summary: s
task: t
licence: {reason: none stated}
sources: {a: {url: "https://example.org/a.onnx", sha256: "%s", size: 1}}
graphs: {g: {source: a, inputs: {x: [], y: [1.0, 2]}}}
precisions: [fp16]
targets: {socs: [all]}
checks: {samples: given}
""" % ("a" * 64)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_whole_model(here: Path) -> None:
    write_model(here)
    assert load_model(Path("reader")) == WHOLE


def test_defaults(here: Path) -> None:
    write_model(here, {"model.yaml": SMALL, "given/a.npz": ""})
    model = load_model(Path("reader"))
    assert model.graphs == (Graph("g", {"*": "a"}, (InputSpec("x", ()), InputSpec("y", (1, 2))), "a"),)
    assert [type(item) for item in model.graphs[0].inputs[1].shape] == [int, int]
    assert model.buckets == {"default": {}}
    assert model.checks == Checks(samples_dir="given", samples=1)
    assert (model.requires, model.limits, model.publish) == ((), Limits(16.0, 20.0), Publish(False, None))
    assert model.licence == Licence(None, "none stated")


@pytest.mark.parametrize(
    ("source", "reference", "truth"),
    [
        ('{"*": rec, w8a8: words}', "", "rec"),
        ("{w8a8: words, fp16: rec}", "", "rec"),
        ("{w8a8: words, fp16: rec}", "reference: det\n    ", "det"),
    ],
)
def test_reference(here: Path, source: str, reference: str, truth: str) -> None:
    text = edited(MODEL, 'source: {"*": rec, w8a8: words}', f"{reference}source: {source}")
    write_model(here, {**FILES, "model.yaml": text})
    assert load_model(Path("reader")).graphs[1].reference == truth


def test_hints_do_not_stop(here: Path) -> None:
    text = edited(MODEL, "  text: licence\n", "")
    write_model(here, {**FILES, "model.yaml": text})
    assert {problem.kind for problem in lint_model(Path("reader"))} == {Kind.HINT}
    assert load_model(Path("reader")).licence.text is None


def test_error_shows_every_error_first_and_no_hint(here: Path) -> None:
    text = edited(edited(MODEL, "text: licence", "text: license"), 'version: "4.0"', "version: 4.0")
    write_model(here, {**FILES, "model.yaml": text})
    with pytest.raises(InvalidModel) as caught:
        load_model(Path("reader"))
    assert caught.value.exit_code is ExitCode.MODEL
    assert caught.value.lines() == [
        'reader/model.yaml:2:10 QF022 version must be text, not the number 4.0; quote it: "4.0"',
        'reader/model.yaml:7:9 QF104 there is no source "license"; did you mean "licence"?',
        "  remedy: mend these lines, then run `qnn-forge lint` to check",
        "  more: qnn-forge explain QF022 | QF104",
    ]
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.problems == caught.value.problems
    assert again.lines() == caught.value.lines()


def test_errors_of_several_models_come_together(here: Path) -> None:
    write_model(here)
    write_model(here, {**FILES, "model.yaml": MODEL + "x: 1\n"}, name="second")
    (here / "third").mkdir()
    assert load_models([Path("reader")]) == (WHOLE,)
    with pytest.raises(InvalidModel) as caught:
        load_models([Path("reader"), Path("third"), Path("second")])
    assert [(problem.place.path, problem.id) for problem in caught.value.problems] == [
        ("second/model.yaml", "QF102"),
        ("second/model.yaml", "QF020"),
        ("third/model.yaml", "QF001"),
    ]


def test_no_model_file(here: Path) -> None:
    (here / "empty").mkdir()
    [problem] = lint_model(Path("empty"))
    assert problem.line() == "empty/model.yaml QF001 there is no model.yaml here; add one, or name another folder"
    (here / "empty" / "model.yml").touch()
    assert lint_model(Path("empty"))[0].remedy == "rename model.yml"
    with pytest.raises(InvalidModel):
        load_model(Path("empty"))


def test_model_file_of_another_kind(here: Path) -> None:
    (here / "odd" / "model.yaml").mkdir(parents=True)
    assert [problem.id for problem in lint_model(Path("odd"))] == ["QF001"]
    (here / "pipe").mkdir()
    os.mkfifo(here / "pipe" / "model.yaml")
    assert [problem.id for problem in lint_model(Path("pipe"))] == ["QF001"]  # and does not wait for a writer


def test_model_file_elsewhere_is_not_read(here: Path) -> None:
    (here / "secret").write_text("password: x", encoding="utf-8")
    (here / "link").mkdir()
    (here / "link" / "model.yaml").symlink_to(here / "secret")
    [problem] = lint_model(Path("link"))
    assert problem.line() == (
        "link/model.yaml QF107 model.yaml is a symbolic link that leads out of its folder; put the file itself here"
    )


def test_paths_are_shown_from_here(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_model(here, {**FILES, "model.yaml": "a"})
    assert lint_model(folder)[0].place.path == "reader/model.yaml"
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    assert lint_model(Path("../reader"))[0].place.path == str(here / "reader/model.yaml")


class TestFindModels:
    @pytest.fixture(autouse=True)
    def _models(self, here: Path) -> None:
        for name in ("silero-vad", "ppocr-v4", ".git", "__pycache__"):
            (here / "models" / name).mkdir(parents=True)
        (here / "models" / "README.md").touch()
        (here / "mine").mkdir()
        (here / "mine" / "model.yaml").touch()

    def test_all(self) -> None:
        assert find_models([]) == (Path("models/ppocr-v4"), Path("models/silero-vad"))

    def test_by_name_folder_and_file(self) -> None:
        found = find_models(["silero-vad", "./mine", "models/ppocr-v4/model.yaml"])
        assert found == (Path("models/silero-vad"), Path("mine"), Path("models/ppocr-v4"))

    def test_each_once(self) -> None:
        assert find_models(["mine", "silero-vad", "./mine/", "models/silero-vad"]) == (
            Path("mine"),
            Path("models/silero-vad"),
        )

    def test_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir("mine")
        assert find_models(["."]) == find_models(["model.yaml"]) == (Path("."),)

    @pytest.mark.parametrize("name", ["silero-vda", "models/silero-vda", "silero-vda/model.yaml"])
    def test_the_nearest_is_suggested(self, name: str) -> None:
        with pytest.raises(UnknownModel) as caught:
            find_models([name])
        assert caught.value.message == f'there is no model "{name}"'
        assert caught.value.remedy == 'did you mean "silero-vad"?'

    def test_nothing_near(self) -> None:
        with pytest.raises(UnknownModel) as caught:
            find_models(["zzz"])
        assert caught.value.remedy == "there are ppocr-v4, silero-vad"

    def test_no_models_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir("mine")
        with pytest.raises(UnknownModel) as caught:
            find_models([])
        assert caught.value.message == "there is no folder models/ here"


def _dump(data: Any) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000))


def _scratch(factory: pytest.TempPathFactory, files: dict[str, str]) -> Path:
    return write_model(factory.getbasetemp() / "scratch", files)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_content_is_invalid_and_nothing_worse(
    tmp_path_factory: pytest.TempPathFactory, content: str | bytes
) -> None:
    folder = _scratch(tmp_path_factory, {})
    folder.mkdir(parents=True, exist_ok=True)
    raw = content if isinstance(content, bytes) else content.encode(errors="surrogatepass")
    (folder / "model.yaml").write_bytes(raw)
    with pytest.raises(InvalidModel):
        load_model(folder)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_a_changed_model_loads_or_is_invalid(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    text = _dump(data)
    folder = _scratch(tmp_path_factory, {**FILES, "model.yaml": text})
    lines = text.splitlines()
    try:
        assert isinstance(load_model(folder), Model)
    except InvalidModel as error:
        for problem in error.problems:
            assert 1 <= (problem.place.line or 0) <= len(lines)
            assert 1 <= (problem.place.column or 0) <= len(lines[(problem.place.line or 0) - 1]) + 1


def _keys(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all mapping keys."""
    if isinstance(data, dict):
        return [found for key, value in data.items() for found in ((*path, key), *_keys(value, (*path, key)))]
    if isinstance(data, list):
        return [found for index, value in enumerate(data) for found in _keys(value, (*path, index))]
    return []


KEYS = _keys(VALID)

# Keys whose absence leaves a model that is valid as it is.
OPTIONAL = {
    ("sources", "rec", "file"),
    ("licence", "attribution"),
    ("graphs", "det", "reference"),
    ("graphs", "rec", "inputs", "ids", "dtype"),
    ("buckets", "small"),
    ("buckets", "large"),
    ("targets", "exclude"),
    ("checks", "count"),
    ("checks", "gates"),
    *(("checks", "gates", gate) for gate in ("cosine", "max_abs", "max_rel", "argmax")),
    ("checks", "outputs"),
    *(("checks", "metrics", "rec", value) for value in ("text", "iou", "distance", "score")),
    ("requires",),
    ("limits",),
    ("limits", "memory_gb"),
    ("limits", "minutes"),
    ("publish",),
    ("publish", "github"),
    ("publish", "huggingface"),
}
# Without these a hint speaks.
ADVISED = {("licence", "text"), ("checks", "metrics")}


@pytest.mark.parametrize("path", KEYS, ids=lambda path: ".".join(map(str, path)))
def test_deleting_any_key_is_noticed_where_it_was(tmp_path: Path, path: tuple[Any, ...]) -> None:
    data = yaml.safe_load(MODEL)
    container = data
    for step in path[:-1]:
        container = container[step]
    del container[path[-1]]
    text = _dump(data)
    found = lint_model(write_model(tmp_path, {**FILES, "model.yaml": text}))
    errors = [problem for problem in found if problem.kind is Kind.ERROR]
    assert bool(errors) == (path not in OPTIONAL | ADVISED)
    assert bool(found) == (path not in OPTIONAL)
    document = read(text.encode(), "m.yaml").document
    assert document is not None
    for problem in errors:
        if "no key" in problem.message or "but no" in problem.message or "none of" in problem.message:
            assert problem.place.line == document.at_key(path[:-1]).line


@pytest.mark.parametrize("path", KEYS, ids=lambda path: ".".join(map(str, path)))
def test_renaming_any_key_is_noticed_on_its_line(tmp_path: Path, path: tuple[Any, ...]) -> None:
    data = yaml.safe_load(MODEL)
    container = data
    for step in path[:-1]:
        container = container[step]
    renamed = {f"{key}q" if key == path[-1] else key: value for key, value in container.items()}
    container.clear()
    container.update(renamed)
    text = _dump(data)
    found = lint_model(write_model(tmp_path, {**FILES, "model.yaml": text}))
    free = path[:2] == ("checks", "metrics") or path[:2] == ("checks", "outputs") or "inputs" in path
    free = free and path[-1] in ("text", "iou", "distance", "score", "out", "x", "ids")  # names that are the author's
    free = free or path in {("buckets", "small"), ("buckets", "large")}
    if free:
        assert found == ()
        return
    line = line_of(text, f"{path[-1]}q:" if path[-1] != "*" else "'*q':")
    named_by_author = path[0] in ("sources", "graphs", "buckets") and len(path) in (2, 3)
    assert line in [problem.place.line for problem in found] or (named_by_author and found)


class _Quoting(yaml.SafeDumper):
    """Quotes every text: PyYAML leaves 08 bare, which is no number to YAML 1.1, and is one to YAML 1.2."""


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))

_NAME = st.from_regex(r"[a-z][a-z0-9_-]{0,6}", fullmatch=True)
_SYMBOL = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
_LINE = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20)


@st.composite
def _models(draw: st.DrawFn) -> dict[str, Any]:
    """The data of a valid model."""
    sources = draw(st.lists(_NAME, min_size=1, max_size=3, unique=True))
    symbols = draw(st.lists(_SYMBOL, max_size=3, unique=True))
    size = st.integers(1, 2**31 - 1)
    shape = st.lists(size | st.sampled_from(symbols), max_size=4) if symbols else st.lists(size, max_size=4)
    graphs: dict[str, dict[str, Any]] = {
        name: {
            "source": draw(st.sampled_from(sources)),
            "inputs": draw(st.dictionaries(_LINE, shape, min_size=1, max_size=2)),
        }
        for name in draw(st.lists(_NAME, min_size=1, max_size=2, unique=True))
    }
    used = {
        item for graph in graphs.values() for shape in graph["inputs"].values() for item in shape if item in symbols
    }
    data: dict[str, Any] = {
        "name": "reader",
        "version": draw(st.from_regex(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,5}", fullmatch=True)),
        "summary": draw(_LINE),
        "task": "t",
        "licence": {"reason": draw(_LINE)},
        "sources": {
            name: {"url": "https://example.org/a", "sha256": "0" * 64, "size": draw(st.integers(1, 10**9))}
            for name in sources
        },
        "graphs": graphs,
        "precisions": ["fp16"],
        "targets": {"socs": draw(st.sampled_from([["all"], ["SM8650"], ["SM8*", "public"]]))},
        "checks": {"data": "data.py:samples", "count": draw(st.integers(1, 9))},
    }
    if used:
        data["buckets"] = {
            name: {symbol: draw(size) for symbol in used}
            for name in draw(st.lists(_NAME, min_size=1, max_size=2, unique=True))
        }
    return data


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(_models(), st.sampled_from([True, False]))
def test_a_generated_model_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any], flow: bool
) -> None:
    text = yaml.dump(data, Dumper=_Quoting, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=flow)
    model = load_model(_scratch(tmp_path_factory, {"model.yaml": text, "data.py": DATA, "metric.py": METRIC}))
    assert (model.version, model.summary, model.licence.reason) == (
        data["version"],
        data["summary"],
        data["licence"]["reason"],
    )
    assert {name: (source.locator, source.size) for name, source in model.sources.items()} == {
        name: (source["url"], source["size"]) for name, source in data["sources"].items()
    }
    assert {
        graph.name: (graph.source_for("fp16"), {spec.name: list(spec.shape) for spec in graph.inputs})
        for graph in model.graphs
    } == {name: (graph["source"], graph["inputs"]) for name, graph in data["graphs"].items()}
    assert model.buckets == data.get("buckets", {"default": {}})
    assert model.checks.samples == data["checks"]["count"]
