"""Bundle archives through `verify` and `pull`, index documents through `pull`, `search` and `info`, context binaries
through `inspect`.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tests.binary.conftest import DATA as BINARIES
from tests.fuzz.mutate import ODD_TEXT, bytes_of, data_of, nested, text_of
from tests.fuzz.outcome import BadOutcome, Outcome, judged
from tests.index.examples import manifest
from tests.pull.conftest import Shop, write_bundle

_NAME = manifest("SM8650").name
_TYPES = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, b"x")
_DOCUMENTS = ("v1/index.json", "v1/chips.json", "v1/models/toy.json", "v1/models/toy/1.0.json")
_WORDS = (*ODD_TEXT, ",", ":", "{", "}", "[", "]", '"', "null", "true", "NaN", "1e999", "-", "9" * 5000, "\\ud800")
Members = dict[str, bytes]


def attempt_verify(random: Random, scratch: Path) -> list[Outcome]:
    """One damaged archive, or the folder of one, held against itself."""
    members = _members(scratch)
    if random.randrange(3) == 0:
        return [judged(["verify", str(_folder(random, members, scratch))], scratch)]
    path = scratch / "bundle.tar.gz"
    path.write_bytes(_archive(random, members))
    return [judged(["verify", "--json", str(path)], scratch)]


def attempt_pull(random: Random, scratch: Path) -> list[Outcome]:
    """One damaged archive, published as it is: nothing of it is left in the output folder when it is refused."""
    shop = Shop(scratch / "shop")
    data = _archive(random, _members(scratch))
    path = shop.index / "files" / f"{_NAME}.tar.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    shop.enter(manifest("SM8650"), path)
    return [_pulled(shop.index, scratch)]


def attempt_index(random: Random, scratch: Path) -> list[Outcome]:
    """One damaged document of an index, through each command that reads it."""
    shop = Shop(scratch / "shop")
    shop.publish(size=1000)
    document = shop.index / random.choice(_DOCUMENTS)
    document.write_bytes(_json(random, document.read_text()))
    commands = (["search", "--json"], ["search", "toy"], ["info", "toy"], ["info", "toy", "--json"])
    found = [judged([*random.choice(commands), "--from", str(shop.index)], scratch)]
    return [*found, _pulled(shop.index, scratch)]


def attempt_inspect(random: Random, scratch: Path) -> list[Outcome]:
    """One damaged context binary; its first kilobytes, where what is read stands, are damaged more often."""
    data = random.choice(_binaries())
    near = random.choice((600, 1500, 5000, len(data)))
    path = scratch / "net.bin"
    path.write_bytes(bytes_of(random, data[:near]) + (data[near:] if random.randrange(4) else b""))
    extra = random.choice(([], ["--json"], ["--for", "sherpa-onnx"]))
    return [judged(["inspect", str(path), *extra], scratch)]


def _pulled(index: Path, scratch: Path) -> Outcome:
    out = scratch / "out"
    pulled = judged(["pull", "toy", "--soc", "SM8650", "--from", str(index), "--out", str(out)], scratch)
    left = sorted(path.name for path in out.iterdir()) if out.exists() else []
    if left != ([_NAME] if pulled.code in (0, 20) else []):
        raise BadOutcome(f"exit code {pulled.code} leaves {left}\n{pulled.err}")
    return pulled


@cache
def _binaries() -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(BINARIES.glob("*.bin")))


def _members(scratch: Path) -> Members:
    """The files of a sound bundle with a real context binary, by path in the archive."""
    write_bundle(scratch / "made", manifest("SM8650"), content=_binaries()[0])
    folder = scratch / "made" / _NAME
    return {f"{_NAME}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}


def _json(random: Random, text: str) -> bytes:
    match random.randrange(6):
        case 0:
            return bytes_of(random, text.encode())
        case 1:
            return text_of(random, text, _WORDS).encode(errors="surrogatepass")
        case 2:
            opening, closing = random.choice((("[", "]"), ('{"a":', "}")))
            at = random.randint(0, len(text))
            return (text[:at] + nested(random, opening, closing) + text[at:]).encode()
        case _:
            return json.dumps(data_of(random, json.loads(text))).encode()


def _folder(random: Random, members: Members, scratch: Path) -> Path:
    """A bundle's folder with a damaged manifest, or with a damaged file."""
    name = random.choice(sorted(members))
    manifest_name = f"{_NAME}/manifest.json"
    if random.randrange(4):
        members[manifest_name] = _json(random, members[manifest_name].decode())
    else:
        members[name] = bytes_of(random, members[name])
    for path, data in members.items():
        (scratch / "given" / path).parent.mkdir(parents=True, exist_ok=True)
        (scratch / "given" / path).write_bytes(data)
    return scratch / "given" / _NAME


def _archive(random: Random, members: Members) -> bytes:
    """A damaged archive: its bytes, the tar inside, or one of its members."""
    kind = random.randrange(5)
    if kind == 0:
        manifest_name = f"{_NAME}/manifest.json"
        members[manifest_name] = _json(random, members[manifest_name].decode())
        return gzip.compress(_tar(members.items()), 1)
    if kind == 1:
        return gzip.compress(_changed_tar(random, members), 1)
    packed = gzip.compress(_tar(members.items()), 1)
    if kind == 2:
        return bytes_of(random, packed)
    if kind == 3:
        return gzip.compress(bytes_of(random, _tar(members.items())), 1)
    return bytes_of(random, packed[:200]) + packed[200:]


def _tar(members: Any) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def _changed_tar(random: Random, members: Members) -> bytes:
    """A tar with one header that no bundle has."""
    out = io.BytesIO()
    form = random.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        odd = random.choice(sorted(members))
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            if name == odd:
                _odd_member(random, member)
            tar.addfile(member, io.BytesIO(data.ljust(min(member.size, 1 << 20), b"\0")))
    return out.getvalue()


def _odd_member(random: Random, member: tarfile.TarInfo) -> None:
    match random.randrange(5):
        case 0:
            member.type, member.linkname = random.choice(_TYPES), random.choice(("/etc/passwd", "..", _NAME, ""))
        case 1:
            member.name = random.choice(
                ("", ".", "..", "/", _NAME, f"{_NAME}/../../x", f"/{_NAME}", f"{_NAME}//x", "x")
            )
        case 2:
            odd = random.choice(ODD_TEXT).encode(errors="replace").decode().replace("\0", "0")
            member.name = f"{_NAME}/{odd}" if random.randrange(2) else f"{odd}/x"
        case 3:
            member.pax_headers = {random.choice(("path", "size", "GNU.sparse.map", "linkpath", "x")): "9" * 30}
        case _:
            member.size = random.choice((0, 1, member.size + 1, 1 << 20))
            member.mtime = random.choice((-1, 0, 1 << 33))
