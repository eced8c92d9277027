"""The device's side of adb, for the real adb to talk to: a folder stands for the device's file system.

Speaks CNXN, AUTH, OPEN, OKAY, WRTE and CLSE over TCP, the services `shell` (with and without the v2 protocol) and
`sync` (STAT, LIST, SEND, RECV, QUIT). Commands run in this machine's `sh` with the device's absolute paths turned into
paths below the folder, and with `getprop`, `date` and
`sha256sum` of its own.
"""

from __future__ import annotations

import os
import queue
import re
import socket
import stat
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_VERSION = 0x01000001  # no checksums of payloads
_MOST = 256 << 10
_CHUNK = 60 << 10
_BANNER = b"device::ro.product.name=fake;ro.product.model=Fake_Phone;ro.product.device=fake;features=shell_v2,cmd"
_ABSOLUTE = re.compile(r"(?<![\w./-])/(?=(?:data|vendor|system|odm|dsp|product|dev/fastrpc|dev/adsprpc|sys/devices)\b)")
_STDOUT, _STDERR, _EXIT = 1, 2, 3
_SIGNATURE = 2


class Unplugged(Exception):
    """The connection is gone."""


@dataclass
class FakeDevice:
    """How the device behaves.

    `state` is device, unauthorized or offline. `room` is how many bytes it still takes; `unplug_after` how many bytes
    it takes before the connection is cut; `unplug_on` a text in a command at which it is cut. `commands` is every
    command it was given, `received` every file.
    """

    root: Path
    props: dict[str, str]
    state: str = "device"
    room: int | None = None
    unplug_after: int | None = None
    unplug_on: str | None = None
    read_only: bool = False
    commands: list[str] = field(default_factory=list)
    received: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.root / "data/local/tmp").mkdir(parents=True, exist_ok=True)
        tools = self.root / "bin"
        tools.mkdir(exist_ok=True)
        lines = [f"{name}) echo '{value}';;" for name, value in self.props.items()]
        (tools / "getprop").write_text('#!/bin/sh\ncase "$1" in\n' + "\n".join(lines) + "\n*) echo;;\nesac\n")
        # A clock that only the stand-in for qnn-net-run moves: times in tests are exact.
        (tools / "date").write_text('#!/bin/sh\n[ "$1" = +%s%N ] && cat "$FAKE_DEVICE/clock"\n')
        (self.root / "clock").write_text("1764500000000000000")
        # toybox's -b means brief, not binary.
        brief = 'case "$1" in -b) shift; exec /usr/bin/sha256sum "$@" | cut -c 1-64;; esac'
        (tools / "sha256sum").write_text(f'#!/bin/sh\n{brief}\nexec /usr/bin/sha256sum "$@"\n')
        for name in ("getprop", "date", "sha256sum"):
            (tools / name).chmod(0o755)

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    @property
    def environment(self) -> dict[str, str]:
        # Nothing of the tests' own environment is the device's; NumPy starts faster with one thread.
        path = f"{self.root / 'bin'}:/usr/bin:/bin"
        return {"PATH": path, "FAKE_DEVICE": str(self.root), "OPENBLAS_NUM_THREADS": "1"}

    def local(self, command: str) -> str:
        return _ABSOLUTE.sub(f"{self.root}/", command)


@contextmanager
def plugged_in(device: FakeDevice) -> Iterator[str]:
    """The device's serial number, as `adb connect` takes it, for as long as it is there."""
    daemon = _Daemon(device)
    daemon.start()
    try:
        yield daemon.serial
    finally:
        daemon.unplug()


class _Daemon(threading.Thread):
    def __init__(self, device: FakeDevice) -> None:
        super().__init__(daemon=True)
        self.device = device
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.serial = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._links: list[socket.socket] = []

    def run(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links.append(link)
            threading.Thread(target=_Connection(self, link).serve, daemon=True).start()

    def unplug(self) -> None:
        for end in (self._listener, *self._links):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class _Connection:
    def __init__(self, daemon: _Daemon, link: socket.socket) -> None:
        self.daemon, self.device, self._link = daemon, daemon.device, link
        self._writing = threading.Lock()
        self._streams: dict[int, _Stream] = {}
        self._next = 1

    def serve(self) -> None:
        with suppress(OSError, Unplugged):
            while True:
                header = _exactly(self._link, 24)
                name, first, second, size = struct.unpack("<4sIII", header[:16])
                self._take(name, first, second, _exactly(self._link, size))

    def send(self, name: bytes, first: int, second: int, payload: bytes = b"") -> None:
        magic = struct.unpack("<I", name)[0] ^ 0xFFFFFFFF
        header = struct.pack("<4sIIIII", name, first, second, len(payload), 0, magic)
        with self._writing, _gone():
            self._link.sendall(header + payload)

    def unplug(self) -> None:
        self.daemon.unplug()
        raise Unplugged

    def _take(self, name: bytes, first: int, second: int, payload: bytes) -> None:
        if name == b"CNXN" and self.device.state == "device":
            self.send(b"CNXN", _VERSION, _MOST, _BANNER)
        elif self.device.state == "unauthorized" and (name == b"CNXN" or (name == b"AUTH" and first == _SIGNATURE)):
            # A token to sign. No signature is good enough, and nobody accepts the key that adb sends in the end.
            self.send(b"AUTH", 1, 0, bytes(20))
        elif name == b"OPEN":
            stream = _Stream(self, self._next, first)
            self._streams[self._next] = stream
            self._next += 1
            self.send(b"OKAY", stream.own, first)
            service = payload.rstrip(b"\0").decode()
            threading.Thread(target=stream.serve, args=(service,), daemon=True).start()
        elif second in self._streams:
            self._streams[second].take(name, payload)
        elif name == b"WRTE":
            self.send(b"CLSE", 0, first)

    def forget(self, stream: _Stream) -> None:
        self._streams.pop(stream.own, None)


class _Stream:
    def __init__(self, connection: _Connection, own: int, other: int) -> None:
        self._connection, self.own, self._other = connection, own, other
        self._incoming: queue.Queue[bytes | None] = queue.Queue()
        self._granted = threading.Semaphore(0)
        self._buffer = b""
        self._closed = False

    @property
    def device(self) -> FakeDevice:
        return self._connection.device

    def take(self, name: bytes, payload: bytes) -> None:
        if name == b"WRTE":
            self._incoming.put(payload)
            self._connection.send(b"OKAY", self.own, self._other)
        elif name == b"OKAY":
            self._granted.release()
        elif name == b"CLSE":
            self._closed = True
            self._incoming.put(None)
            self._granted.release()

    def write(self, data: bytes) -> None:
        for at in range(0, len(data), _CHUNK):
            if self._closed:
                raise Unplugged
            self._connection.send(b"WRTE", self.own, self._other, data[at : at + _CHUNK])
            self._granted.acquire()

    def read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            more = self._incoming.get()
            if more is None:
                raise Unplugged
            self._buffer += more
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def serve(self, service: str) -> None:
        with suppress(Unplugged, OSError):
            kind, _, rest = service.partition(":")
            if kind.partition(",")[0] == "shell":
                self._shell(rest, v2=",v2" in f",{kind}")
            elif kind == "sync":
                _Sync(self).serve()
            self._connection.send(b"CLSE", self.own, self._other)
        self._connection.forget(self)

    def unplug(self) -> None:
        self._connection.unplug()

    def _shell(self, command: str, *, v2: bool) -> None:
        device = self.device
        device.commands.append(command)
        if device.unplug_on is not None and device.unplug_on in command:
            self.unplug()
        done = subprocess.run(
            ["sh", "-c", device.local(command)],
            cwd=device.root,
            env=device.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        out, err = (text.replace(str(device.root).encode(), b"") for text in (done.stdout, done.stderr))
        if not v2:
            self.write(out + err)
            return
        for kind, data in ((_STDOUT, out), (_STDERR, err)):
            for at in range(0, len(data), _CHUNK - 5):
                piece = data[at : at + _CHUNK - 5]
                self.write(struct.pack("<BI", kind, len(piece)) + piece)
        self.write(struct.pack("<BIB", _EXIT, 1, done.returncode & 0xFF))


class _Sync:
    """The file service of one stream."""

    def __init__(self, stream: _Stream) -> None:
        self._stream, self._device = stream, stream.device

    def serve(self) -> None:
        while True:
            name, size = struct.unpack("<4sI", self._stream.read(8))
            if name == b"QUIT":
                return
            path = self._stream.read(size).decode()
            {b"STAT": self._stat, b"LIST": self._list, b"RECV": self._recv, b"SEND": self._send}[name](path)

    def _stat(self, path: str) -> None:
        try:
            found = self._device.path(path).stat()
        except OSError:
            self._stream.write(struct.pack("<4sIII", b"STAT", 0, 0, 0))
        else:
            self._stream.write(struct.pack("<4sIII", b"STAT", found.st_mode, found.st_size, int(found.st_mtime)))

    def _list(self, path: str) -> None:
        folder, listing = self._device.path(path), b""
        for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
            name, found = entry.name.encode(), entry.stat()
            head = struct.pack("<4sIIII", b"DENT", found.st_mode, found.st_size, int(found.st_mtime), len(name))
            listing += head + name
        self._stream.write(listing + struct.pack("<4sIIII", b"DONE", 0, 0, 0, 0))

    def _recv(self, path: str) -> None:
        try:
            data = self._device.path(path).read_bytes()
        except OSError as error:
            self._fail(str(error.strerror))
            return
        pieces = (data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK))
        whole = b"".join(struct.pack("<4sI", b"DATA", len(piece)) + piece for piece in pieces)
        self._stream.write(whole + struct.pack("<4sI", b"DONE", 0))

    def _send(self, where: str) -> None:
        path, _, mode = where.rpartition(",")
        device, target = self._device, self._device.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        failed = "Read-only file system" if device.read_only else None
        with target.open("wb") if failed is None else open(os.devnull, "wb") as out:
            while True:
                name, size = struct.unpack("<4sI", self._stream.read(8))
                if name == b"DONE":
                    break
                data = self._stream.read(size)
                device.unplug_after = self._spend(device.unplug_after, size)
                if device.unplug_after == 0:
                    out.write(data[: size // 2])
                    out.flush()
                    self._stream.unplug()
                device.room = self._spend(device.room, size)
                if device.room == 0:
                    failed = "No space left on device"
                if failed is None:
                    out.write(data)
        if failed is not None:
            self._fail(f"couldn't write file: {failed}")
            return
        target.chmod(stat.S_IMODE(int(mode)) | 0o600)
        device.received.append(path)
        self._stream.write(struct.pack("<4sI", b"OKAY", 0))

    @staticmethod
    def _spend(left: int | None, size: int) -> int | None:
        return None if left is None else max(0, left - size)

    def _fail(self, why: str) -> None:
        self._stream.write(struct.pack("<4sI", b"FAIL", len(why)) + why.encode())


def _exactly(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        with _gone():
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)  # else adb waits 40 ms for each answer
            more = link.recv(min(1 << 20, size - len(data)))
        if not more:
            raise Unplugged
        data += more
    return data


@contextmanager
def _gone() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise Unplugged from None
