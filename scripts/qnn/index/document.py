"""The documents of the index: dataclasses, and the JSON they are read from and written as.

Five kinds of file below the base address, each named by a function here::

    v1/index.json                       RootIndex: every model, for search
    v1/chips.json                       ChipsIndex: every chip by all its names (qnn.index.chips)
    v1/models/<model>.json              ModelIndex: the versions of one model
    v1/models/<model>/<version>.json    VersionIndex: every file of one version

Reading is strict about what a client needs and ignores what it does not know, so that fields can be added; a field
added later has a default here. Only a change that older clients would misread changes SCHEMA_VERSION and `v1`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from qnn.errors.index import InvalidIndex, NewerIndex
from qnn.index.strict import converter
from qnn.model.spec import Gates
from qnn.tensors import TensorSpec

SCHEMA_VERSION = 1
ROOT = "v1/index.json"
CHIPS = "v1/chips.json"

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MODEL = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,31}")
_FILE_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,199}")
_QAIRT = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){1,3}")
# Not a digit more than a file system can hold; a number beyond it is a fault or an attack.
_LARGEST_FILE = 1 << 50


@dataclass(frozen=True)
class IndexModel:
    """A model in the root document; `latest` is its newest version that is not yanked, `soc_ids` the chips that version
    has files for.
    """

    name: str
    summary: str
    task: str
    licence: str | None
    latest: str
    soc_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class RootIndex:
    """v1/index.json: every model, sorted by name."""

    schema: int
    models: tuple[IndexModel, ...]


@dataclass(frozen=True)
class IndexVersion:
    """A version in a model's document: what there is of it, without the files."""

    version: str
    published: str
    variants: tuple[str, ...]
    socs: tuple[str, ...]
    qairt: tuple[str, ...]
    files: int
    yanked: bool = False


@dataclass(frozen=True)
class ModelIndex:
    """v1/models/<model>.json: the versions of one model, oldest first. A variant is written ``bucket/precision``."""

    schema: int
    name: str
    summary: str
    task: str
    licence: str | None
    latest: str
    versions: tuple[IndexVersion, ...]


@dataclass(frozen=True)
class IndexFallback:
    """The float ONNX file of a graph, for devices without a context binary: its address, sha256 and size in bytes.

    `graph` is None where the bundle does not say which graph the file belongs to. `kind` is pypi, huggingface, url or
    github, `address` what model.yaml has for it, `member` the file inside it.
    """

    kind: str
    address: str
    sha256: str
    size: int
    graph: str | None = None
    member: str | None = None


@dataclass(frozen=True)
class IndexNumeric:
    """What verification measured of one output over all samples, and its gates; a number is left out where it has no
    meaning for the output.
    """

    name: str
    gates: Gates = field(default_factory=Gates)
    cosine: float | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    argmax: float | None = None
    equal: float | None = None


@dataclass(frozen=True)
class IndexMetric:
    """One value of the model's task metric on the worst sample; `gate` in words."""

    name: str
    float_value: float | str | bool
    htp_value: float | str | bool
    gate: str


@dataclass(frozen=True)
class IndexFileGraph:
    """One graph in a file: the paths of its context binary and of its ONNX wrapper in the archive, and the numbers."""

    name: str
    binary: str
    wrapper: str
    numerics: tuple[IndexNumeric, ...] = ()
    metrics: tuple[IndexMetric, ...] = ()


@dataclass(frozen=True)
class IndexFile:
    """One archive: for one chip, made with one QAIRT version, in one revision.

    `urls` are equal in content; one without a scheme is relative to the base address. `size` is bytes. A device needs
    a runtime of at least `minimum_runtime`. `published` is a date (YYYY-MM-DD). `yanked` is the reason, None for a
    file that may be used. `attestations` are addresses of the same form as `urls`, each of a sigstore bundle that names
    this file; `provenance` and `sbom` one such address each.
    """

    name: str
    urls: tuple[str, ...]
    size: int
    sha256: str
    soc: str
    soc_id: int
    arch: str
    vtcm_mb: int
    hvx_threads: int
    fp16: bool
    qairt: str
    build_id: str
    minimum_runtime: str
    revision: int
    published: str
    graphs: tuple[IndexFileGraph, ...]
    yanked: str | None = None
    provenance: str | None = None
    sbom: str | None = None
    attestations: tuple[str, ...] = ()


@dataclass(frozen=True)
class IndexGraph:
    """What one graph takes and gives through its ONNX wrapper; the same in every file of the variant.

    The raw binary's own dtypes and quantization are in the bundle's manifest.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class IndexVariant:
    """A bucket and a precision of the model, and every file there is of it; `dimensions` are the bucket's symbols."""

    bucket: str
    precision: str
    dimensions: Mapping[str, int]
    graphs: tuple[IndexGraph, ...]
    files: tuple[IndexFile, ...]

    @property
    def name(self) -> str:
        """``bucket/precision``"""
        return f"{self.bucket}/{self.precision}"


@dataclass(frozen=True)
class VersionIndex:
    """v1/models/<model>/<version>.json: every file of one version of a model."""

    schema: int
    model: str
    version: str
    summary: str
    task: str
    licence: str | None
    variants: tuple[IndexVariant, ...]
    licence_reason: str | None = None
    attribution: str | None = None
    fallback: tuple[IndexFallback, ...] = ()


@dataclass(frozen=True)
class IndexChip:
    """One chip with an HTP. `soc_id` is QNN's number; `linux_soc0` values of /sys/devices/soc0/soc_id, which is
    another number space; `ro_soc_model` values of Android's property; `vtcm_mb` is MB.
    """

    name: str
    soc_id: int
    arch: str
    vtcm_mb: int
    hvx_threads: int
    fp16: bool
    first_qairt: str
    status: str
    aliases: tuple[str, ...] = ()
    ro_soc_model: tuple[str, ...] = ()
    marketing: tuple[str, ...] = ()
    linux_soc0: tuple[int, ...] = ()


@dataclass(frozen=True)
class IndexOtherChip:
    """A known chip for which nothing can be compiled, and why."""

    name: str
    reason: str
    soc_id: int | None = None
    aliases: tuple[str, ...] = ()
    marketing: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChipsIndex:
    """v1/chips.json: the alias table."""

    schema: int
    chips: tuple[IndexChip, ...]
    without_htp: tuple[IndexOtherChip, ...] = ()


Document: TypeAlias = RootIndex | ChipsIndex | ModelIndex | VersionIndex
_D = TypeVar("_D", RootIndex, ChipsIndex, ModelIndex, VersionIndex)


def model_path(model: str) -> str:
    """Where a model's document is, relative to the base. Raises InvalidIndex (QF710) for what is no model's name."""
    return f"v1/models/{_checked(_MODEL, model, 'the name of a model')}.json"


def version_path(model: str, version: str) -> str:
    """Where a version's document is, relative to the base. Raises InvalidIndex (QF710) for impossible names."""
    checked = _checked(_VERSION, version, "a version")
    return f"v1/models/{_checked(_MODEL, model, 'the name of a model')}/{checked}.json"


def to_json(document: Document) -> str:
    """The document: keys sorted, fields that have their default left out, one file, model, version or chip a line."""
    # Lines keep the history of the index readable; indentation would make it a third bigger.
    levels = 4 if isinstance(document, VersionIndex) else 2
    return _lines(converter().unstructure(document), levels) + "\n"


def from_json(text: str, kind: type[_D], where: str) -> _D:
    """A document of the given kind; `where` is the address or path it came from.

    Raises NewerIndex (QF711) for a newer schema, InvalidIndex (QF710) with every field that is wrong.
    """
    from cattrs import BaseValidationError, transform_error  # noqa: PLC0415 - 50 ms, only who reads an index pays

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(where, f"it is not JSON: {error}") from None
    version = found.get("schema") if isinstance(found, dict) else None
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise _invalid(where, "it names no schema version")
    if version > SCHEMA_VERSION:
        raise NewerIndex(
            f"{where} has schema version {version}; this qnn-forge reads version {SCHEMA_VERSION}",
            remedy="install a newer qnn-forge",
        )
    try:
        document: _D = converter().structure(found, kind)
    except BaseValidationError as error:
        raise _invalid(where, "it is not as the schema says", transform_error(error)) from None
    wrong = _faults(document)
    if wrong:
        raise _invalid(where, wrong[0], wrong[1:])
    return document


def _lines(value: object, levels: int) -> str:
    """JSON whose outer `levels` of objects and lists have an item a line."""
    if levels and isinstance(value, dict) and value:
        items = (f"{json.dumps(key)}:{_lines(value[key], levels - 1)}" for key in sorted(value))
        return "{\n" + ",\n".join(items) + "\n}"
    if levels and isinstance(value, list | tuple) and value:
        return "[\n" + ",\n".join(_lines(item, levels - 1) for item in value) + "\n]"
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _faults(document: Document) -> list[str]:
    """What the types cannot say: names that are used as paths, digests, sizes, versions that are compared."""
    match document:
        case RootIndex():
            return [
                fault
                for model in document.models
                for fault in (*_unless(_MODEL, model.name, "a model"), *_unless(_VERSION, model.latest, "a version"))
            ]
        case ModelIndex():
            names = [document.latest, *(version.version for version in document.versions)]
            wrong = [fault for name in names for fault in _unless(_VERSION, name, "a version")]
            return _unless(_MODEL, document.name, "a model") + wrong
        case VersionIndex():
            files = (file for variant in document.variants for file in variant.files)
            wrong = [fault for file in files for fault in _file_faults(file)]
            return _unless(_MODEL, document.model, "a model") + _unless(_VERSION, document.version, "a version") + wrong
        case ChipsIndex():
            return []


def _file_faults(file: IndexFile) -> list[str]:
    wrong = _unless(_FILE_NAME, file.name, "a file")
    wrong += _unless(_SHA256, file.sha256, f"the sha256 of {file.name}")
    for version in (file.qairt, file.minimum_runtime):
        wrong += _unless(_QAIRT, version, f"the QAIRT version of {file.name}")
    if not 0 < file.size <= _LARGEST_FILE:
        wrong.append(f"{file.size} cannot be the size of {file.name}")
    if file.revision < 1:
        wrong.append(f"{file.revision} cannot be the revision of {file.name}")
    if not file.urls:
        wrong.append(f"{file.name} has no address")
    return wrong


def _unless(pattern: re.Pattern[str], text: str, what: str) -> list[str]:
    return [] if pattern.fullmatch(text) else [f"{text!r:.80} cannot be {what}"]


def _checked(pattern: re.Pattern[str], text: str, what: str) -> str:
    if not pattern.fullmatch(text):
        raise InvalidIndex(f"{text!r:.80} cannot be {what}", remedy="correct the name; see qnn-forge search")
    return text


def _invalid(where: str, reason: str, details: list[str] | None = None) -> InvalidIndex:
    return InvalidIndex(
        f"{where}: {reason}",
        remedy="try again; if it stays, report it to whoever keeps the index, and check the address given with --from",
        details=(details or [])[:20],
    )
