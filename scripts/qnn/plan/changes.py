"""From changed files to what has to be built, and why. Pure.

Three kinds of files make a difference: those of a model's folder, rows of the chip table, and what is part of a
stage's key, which is code (comments and docstrings left out) and the pins of a few packages. Every other file builds
nothing. Paths are relative to the root of the repository, with `/`.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from qnn.model.text import short
from qnn.store.code import meaning

_CODE = "scripts/"
_CHIPS = "scripts/qnn/chips/socs.yaml"
_CONSTRAINTS = "constraints.txt"
_PROJECT = "pyproject.toml"
# What of a chip decides how its bundles come out, or whether there are any.
_CHIP_FACTS = ("name", "arch", "vtcm_mb", "hvx_threads", "fp16", "status")
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;#]+)")
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_SHOWN = 3


@dataclass(frozen=True)
class Texts:
    """A file before and after the change; None where it was not there."""

    before: str | None
    after: str | None


@dataclass(frozen=True)
class ChangedFile:
    """One changed file. `texts` is None when its contents are not known: then the worst is assumed of it."""

    path: str
    texts: Texts | None = None


@dataclass(frozen=True)
class KeyParts:
    """What is part of the keys of stages (qnn.build.keys).

    `stages` are the modules of each stage (``package.*`` stands for all of a package), `keys` the modules that make
    the keys themselves, `packages` the Python packages whose versions count.
    """

    stages: Mapping[str, Sequence[str]]
    keys: Collection[str]
    packages: Collection[str]


@dataclass(frozen=True)
class Changes:
    """What has to be built.

    `everything` are reasons to build all models. `models` has the reason for each changed model, by its folder's name;
    `chips` the reason for each changed chip, by soc_id. `idle` is how many files build nothing; `notes` are remarks on
    changes that build nothing though they look as if they did.
    """

    everything: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    chips: Mapping[int, str] = field(default_factory=dict)
    idle: int = 0
    notes: tuple[str, ...] = ()


def needs_texts(path: str) -> bool:
    """Whether `changes_of` looks into a file, so that its contents before and after the change are needed."""
    return path in (_CHIPS, _CONSTRAINTS, _PROJECT) or _module(path) is not None


def changes_of(files: Sequence[ChangedFile], models: str, present: Collection[str], parts: KeyParts) -> Changes:
    """What the changed files ask for.

    `models` is the folder of models, relative to the root; `present` are the names of the folders in it now.
    """
    everything: list[str] = []
    touched: dict[str, list[str]] = {}
    chips: dict[int, str] = {}
    notes: list[str] = []
    idle = 0
    for file in sorted(set(files), key=lambda file: file.path):
        folder = _model_folder(file.path, models)
        if folder is not None:
            touched.setdefault(folder, []).append(file.path)
        elif file.path == _CHIPS:
            rows = _chip_rows(file.texts)
            everything += rows.everything
            chips.update(rows.chips)
            notes += rows.notes
        else:
            found = list(_reasons(file, parts))
            everything += found
            idle += not found
    notes += [f"model {short(name)} is gone: nothing to build" for name in touched if name not in present]
    models_changed = {name: _files(paths) for name, paths in touched.items() if name in present}
    return Changes(tuple(everything), models_changed, chips, idle, tuple(notes))


def _model_folder(path: str, models: str) -> str | None:
    """The model's folder name when the path is inside one."""
    root = posixpath.normpath(models)
    inside = path if root == "." else path.removeprefix(f"{root}/")
    if inside == path and root != ".":
        return None
    name, slash, _ = inside.partition("/")
    return name if slash and name and not name.startswith((".", "_")) else None


def _files(paths: Sequence[str]) -> str:
    """``models/toy/data.py, models/toy/model.yaml changed``"""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(short(path) for path in paths[:_SHOWN])}{more} changed"


def _reasons(file: ChangedFile, parts: KeyParts) -> Iterator[str]:
    """Why a file outside of models and chips rebuilds everything, if it does."""
    if file.path in (_CONSTRAINTS, _PROJECT):
        read = _pins if file.path == _CONSTRAINTS else _ranges
        if file.texts is None:
            yield f"{file.path} changed (what in it is not known)"
            return
        before, after = (read(text or "", parts.packages) for text in (file.texts.before, file.texts.after))
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                yield f"{file.path}: {name} {short(before.get(name, 'none'))} → {short(after.get(name, 'none'))}"
        return
    module = _module(file.path)
    if module is None or not _means_something(file.texts):
        return
    if module in parts.keys:
        yield f"code that makes the keys of all stages: {short(file.path)}"
    stages = [stage for stage, patterns in parts.stages.items() if any(_covers(item, module) for item in patterns)]
    if stages:
        yield f"code of {', '.join(stages)}: {short(file.path)}"


def _module(path: str) -> str | None:
    """``scripts/qnn/prepare/load.py`` → ``qnn.prepare.load``"""
    if not path.startswith(f"{_CODE}qnn/") or not path.endswith(".py"):
        return None
    return path.removeprefix(_CODE).removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _covers(pattern: str, module: str) -> bool:
    package = pattern.removesuffix(".*")
    return module == package or (package != pattern and module.startswith(f"{package}."))


def _means_something(texts: Texts | None) -> bool:
    """Whether a change of Python code is more than comments, docstrings and blank lines."""
    if texts is None or texts.before is None or texts.after is None:
        return True
    try:
        return meaning(texts.before) != meaning(texts.after)
    except (SyntaxError, ValueError):  # ValueError: a NUL in the source
        return True


def _pins(text: str, packages: Collection[str]) -> dict[str, str]:
    found = (_PIN.match(line) for line in text.splitlines())
    return {_same(match[1]): match[2] for match in found if match and _same(match[1]) in packages}


def _ranges(text: str, packages: Collection[str]) -> dict[str, str]:
    """Requirements of the project by package; one that cannot be read counts as it stands."""
    try:
        listed = tomllib.loads(text).get("project", {}).get("dependencies", [])
    except tomllib.TOMLDecodeError:
        return {"the file": "unreadable"}
    found: dict[str, str] = {}
    for requirement in listed if isinstance(listed, list) else []:
        match = _REQUIREMENT.match(str(requirement))
        if match and _same(match[0]) in packages:
            found[_same(match[0])] = str(requirement)[match.end() :].strip() or "any"
    return found


def _same(package: str) -> str:
    """How PyPI compares names."""
    return re.sub(r"[-_.]+", "-", package).lower()


@dataclass(frozen=True)
class _Rows:
    everything: tuple[str, ...]
    chips: Mapping[int, str]
    notes: tuple[str, ...]


def _chip_rows(texts: Texts | None) -> _Rows:
    """Which chips of the table changed in a way that matters."""
    if texts is None:
        return _Rows((f"{_CHIPS} changed (which rows is not known)",), {}, ())
    try:
        before, after = (_facts(text) if text else {} for text in (texts.before, texts.after))
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as fault:
        return _Rows((f"{_CHIPS} changed and cannot be compared row by row ({type(fault).__name__})",), {}, ())
    chips = {
        soc_id: f"chip {row['name']} is new" if soc_id not in before else _differences(before[soc_id], row)
        for soc_id, row in after.items()
        if before.get(soc_id) != row
    }
    gone = sorted(row["name"] for soc_id, row in before.items() if soc_id not in after)
    return _Rows((), chips, tuple(f"chip {name} is gone from the table" for name in gone))


def _facts(text: str) -> dict[int, dict[str, str]]:
    loader = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
    document: Any = yaml.load(text, Loader=loader)  # noqa: S506 - BaseLoader makes only strings
    return {int(row["soc_id"]): {fact: str(row[fact]) for fact in _CHIP_FACTS} for row in document["socs"]}


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    changed = (f"{fact} {before[fact]} → {after[fact]}" for fact in _CHIP_FACTS if before[fact] != after[fact])
    return f"chip {after['name']}: {', '.join(changed)}"
