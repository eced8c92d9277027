"""Talking to one device through the adb program: run a command, send a file, fetch a folder.

adb is a separate program with a server of its own; nothing of a device is trusted, and every call has a time limit.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.device.attached import READY, choose, parse_devices, require_version
from qnn.errors.base import ForgeError
from qnn.errors.device import AdbUnusable, DeviceFull, DeviceHangs, DeviceLost, DeviceRefused
from qnn.sources.protocol import printable

_SHORT_SECONDS = 60.0
# The slowest USB 2 devices take 10 MB/s; libraries and the largest context binaries are a few hundred MB.
_COPY_SECONDS = 900.0
# A command's last line. Without it the connection broke: adb itself gives no exit code then, or 0.
_STATUS = re.compile(r"\nqnn-forge-status:(\d{1,3})\r?\n?\Z")
_FULL = ("no space left on device", "not enough space", "disk quota exceeded")
# adb's own words for a connection that broke; its list of devices may lag behind.
_GONE = (
    "device offline",
    "error: closed",
    "connect failed: closed",
    "protocol fault",
    "connection reset",
    "couldn't read from device",
    "read copy response: eof",
)
_SAID_LINES = 8


@dataclass(frozen=True)
class Said:
    """What a command on the device printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines of both, for a message."""
        lines = [printable(line.rstrip()) for line in f"{self.out}\n{self.err}".splitlines() if line.strip()]
        return tuple(line[:300] for line in lines[-_SAID_LINES:])


@dataclass(frozen=True)
class Adb:
    """The adb program, and the version it says it has."""

    program: str
    version: str

    def devices(self) -> str:
        """The text of `adb devices -l`. Starts adb's server where none runs. Raises AdbUnusable (QF780)."""
        done = _call([self.program, "devices", "-l"], _SHORT_SECONDS)
        if done is None or done.returncode:
            said = "" if done is None else printable(done.stderr.decode(errors="replace").strip())[:300]
            raise AdbUnusable(
                f"adb cannot list devices: {said or 'it does not answer'}", remedy="try `adb kill-server`, then again"
            )
        return done.stdout.decode(errors="replace")

    def device(self, serial: str | None) -> Device:
        """The device of this serial number, or the only one. Raises QF781 to QF783."""
        return Device(self, choose(parse_devices(self.devices()), serial).serial)


def find_adb(program: str | None) -> Adb:
    """The adb on PATH, or the one named. Raises AdbUnusable (QF780)."""
    name = program or "adb"
    try:
        done = _call([name, "version"], _SHORT_SECONDS)
    except OSError as error:
        raise AdbUnusable(
            f"{name} cannot be started: {error.strerror}",
            remedy="install Android's platform tools (Debian's package is called adb), or name the file with --adb",
        ) from None
    if done is None:
        raise AdbUnusable(f"{name} does not answer", remedy="name another adb with --adb PATH")
    return Adb(name, require_version(done.stdout.decode(errors="replace"), name))


@dataclass(frozen=True)
class Device:
    """One device that was ready when it was chosen."""

    adb: Adb
    serial: str

    def run(self, line: str, *, seconds: float = _SHORT_SECONDS) -> Said:
        """Run a command line in the device's shell and return what it said, whatever its exit code.

        Raises DeviceLost (QF784) when the device goes away before the end, DeviceHangs (QF794) after `seconds`.
        """
        done = self._adb("shell", f"{line}\nprintf '\\nqnn-forge-status:%d\\n' $?", seconds=seconds)
        if done is None:
            self._require_there()
            raise DeviceHangs(
                f"a command on the device did not end in {seconds:.0f} s",
                remedy="run it again with a larger --timeout; reboot the device if it stays",
                details=[line[:300]],
            )
        out = done.stdout.decode(errors="replace")
        status = _STATUS.search(out)
        if status is None:
            self._require_there()
            raise _lost(self.serial, printable(done.stderr.decode(errors="replace").strip())[:300])
        return Said(int(status[1]), out[: status.start()], done.stderr.decode(errors="replace"))

    def do(self, line: str, doing: str) -> Said:
        """Run a command that must succeed. Raises DeviceRefused (QF785), DeviceFull (QF786) and as `run` does."""
        said = self.run(line)
        if said.code:
            raise self._fault(doing, said.lines)
        return said

    def push(self, local: Path, remote: str) -> None:
        """Send a file. Raises DeviceLost (QF784), DeviceRefused (QF785), DeviceFull (QF786), DeviceHangs (QF794)."""
        self._copy(f"take {local.name}", "push", str(local.absolute()), remote)

    def pull(self, remote: str, local: Path) -> None:
        """Fetch a folder into `local`, which must exist. Raises as `push` does."""
        self._copy(f"give {remote}", "pull", remote, str(local.absolute()))

    def _copy(self, doing: str, *arguments: str) -> None:
        done = self._adb(*arguments, seconds=_COPY_SECONDS)
        if done is None:
            self._require_there()
            raise DeviceHangs(f"the device did not {doing} in {_COPY_SECONDS:.0f} s", remedy="reboot the device")
        if done.returncode:
            said = (done.stdout + b"\n" + done.stderr).decode(errors="replace")
            raise self._fault(doing, Said(done.returncode, said, "").lines)

    def _adb(self, *arguments: str, seconds: float) -> subprocess.CompletedProcess[bytes] | None:
        return _call([self.adb.program, "-s", self.serial, *arguments], seconds)

    def _fault(self, doing: str, lines: Sequence[str]) -> ForgeError:
        """Why something failed: the device went away, is full, or refused."""
        self._require_there()
        said = "\n".join(lines).lower()
        if any(words in said for words in _GONE):
            return _lost(self.serial, lines[-1])
        if any(words in said for words in _FULL):
            return DeviceFull(
                f"the device has no room to {doing}",
                remedy="free room on it; `qnn-forge device clean` removes the files of earlier checks",
                details=lines,
            )
        return DeviceRefused(
            f"the device did not {doing}", remedy="read what it said; the default folder is fit", details=lines
        )

    def _require_there(self) -> None:
        states = {one.serial: one.state for one in parse_devices(self.adb.devices())}
        if states.get(self.serial) != READY:
            raise _lost(self.serial, f"adb now says: {states.get(self.serial, 'no such device')}")


def _lost(serial: str, why: str) -> DeviceLost:
    return DeviceLost(
        f"the device {serial} went away in the middle of the work",
        remedy="plug it in and run the same command again; files that arrived are not sent again",
        details=[why] if why else [],
    )


def _call(command: list[str], seconds: float) -> subprocess.CompletedProcess[bytes] | None:
    """The finished command; None when it did not end in time. Raises OSError where it cannot be started."""
    try:
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return None
