"""Read models: find their folders, check them, and turn model.yaml into a `Model`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.errors.base import Place
from qnn.errors.model import InvalidModel, Kind, Problem, UnknownModel
from qnn.model.beside import leaves
from qnn.model.construct import construct
from qnn.model.document import MAX_BYTES, Document, read
from qnn.model.nearest import suggest
from qnn.model.rules.paths import StaysInside
from qnn.model.rules.registry import check
from qnn.model.rules.subject import Subject
from qnn.model.rules.syntax import NoModelFile
from qnn.model.spec import Model
from qnn.model.validate import validate

MODEL_FILE = "model.yaml"
MODELS_FOLDER = Path("models")


def load_model(folder: Path) -> Model:
    """The model in a folder. Raises InvalidModel (QF100) with every error that lint finds; hints are not looked at."""
    checked = _check(folder)
    errors = [problem for problem in checked.problems if problem.kind is Kind.ERROR]
    if errors:
        raise InvalidModel(errors)
    assert checked.document is not None
    assert isinstance(checked.document.data, dict)
    return construct(checked.document.data, folder)


def load_models(folders: Sequence[Path]) -> tuple[Model, ...]:
    """The models in several folders. Raises one InvalidModel (QF100) with the errors of all."""
    models: list[Model] = []
    problems: list[Problem] = []
    for folder in folders:
        try:
            models.append(load_model(folder))
        except InvalidModel as invalid:
            problems += invalid.problems
    if problems:
        raise InvalidModel(problems)
    return tuple(models)


def lint_model(folder: Path) -> tuple[Problem, ...]:
    """Every problem of a model, errors and hints, in the order of the file. Raises nothing."""
    return tuple(sorted(_check(folder).problems, key=lambda problem: problem.order))


def find_models(named: Sequence[str], models: Path = MODELS_FOLDER) -> tuple[Path, ...]:
    """The folders of the models named: by name under `models`, by folder, or by the path of a model.yaml.

    Without names all folders under `models`, sorted. Each folder comes once. A folder need not hold a model.yaml;
    reading it says so. Raises UnknownModel (QF101) for a name that leads nowhere, with the nearest names.
    """
    folders = [_find(name, models) for name in named] if named else _all(models)
    once = {os.path.realpath(folder): folder for folder in reversed(folders)}
    return tuple(folder for folder in folders if once.pop(os.path.realpath(folder), None) is not None)


@dataclass(frozen=True)
class _Checked:
    document: Document | None
    problems: tuple[Problem, ...]


def _check(folder: Path) -> _Checked:
    file = folder / MODEL_FILE
    shown = _shown(file)
    if leaves(folder, MODEL_FILE):
        message = "model.yaml is a symbolic link that leads out of its folder"
        return _Checked(None, (StaysInside.problem(Place(shown), message, "put the file itself here"),))
    try:
        raw = _bytes(file)
    except OSError as error:
        return _Checked(None, (_unreadable(folder, shown, error),))
    reading = read(raw, shown)
    if reading.document is None:
        return _Checked(None, reading.problems)
    structural = (*reading.problems, *validate(reading.document))
    return _Checked(reading.document, (*structural, *check(Subject(reading.document, folder))))


def _bytes(file: Path) -> bytes:
    if not file.is_file():  # a pipe or device would block, or never end
        raise FileNotFoundError
    with file.open("rb") as opened:
        return opened.read(MAX_BYTES + 1)


def _unreadable(folder: Path, shown: str, error: OSError) -> Problem:
    if not isinstance(error, FileNotFoundError):
        reason = error.strerror or type(error).__name__
        return NoModelFile.problem(Place(shown), f"the file cannot be read: {reason}", "mend its permissions")
    near = [name for name in ("model.yml", "Model.yaml", "models.yaml") if (folder / name).is_file()]
    remedy = f"rename {near[0]}" if near else "add one, or name another folder"
    return NoModelFile.problem(Place(shown), "there is no model.yaml here", remedy)


def _shown(path: Path) -> str:
    """A path as messages show it: from the current folder if it is below that, else in full."""
    full, here = os.path.abspath(path), os.getcwd()
    return os.path.relpath(full, here) if os.path.commonpath([full, here]) == here else full


def _all(models: Path) -> list[Path]:
    if not models.is_dir():
        raise UnknownModel(
            f"there is no folder {models}/ here",
            remedy="change to the root of the repository, or name a model's folder",
        )
    return sorted(entry for entry in models.iterdir() if entry.is_dir() and not entry.name.startswith((".", "_")))


def _find(name: str, models: Path) -> Path:
    for folder in _candidates(name, models):
        if folder.is_dir():
            return folder
    known = [folder.name for folder in _all(models)] if models.is_dir() else []
    wanted = Path(name).parent.name if Path(name).name == MODEL_FILE else Path(name).name
    remedy = suggest(wanted, known, f"there are {', '.join(known) or 'no models here'}")
    raise UnknownModel(f'there is no model "{name}"', remedy=remedy)


def _candidates(name: str, models: Path) -> Iterator[Path]:
    path = Path(name)
    if path.name == MODEL_FILE:
        yield path.parent
    if len(path.parts) == 1 and name not in (".", ".."):
        yield models / name
    yield path
