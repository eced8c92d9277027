"""What `adb devices -l` says, and which device is meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qnn.errors.device import AdbUnusable, DeviceNotReady, NoDevice, SeveralDevices
from qnn.sources.protocol import printable

# The first adb whose `shell` keeps errors apart from output and passes on exit codes (platform tools 24, 2016).
_OLDEST = (1, 0, 36)
_VERSION = re.compile(r"Android Debug Bridge version (\d+)\.(\d+)\.(\d+)")
READY = "device"
_HELP = {
    "unauthorized": "unlock the device and accept this computer's key on its screen",
    "authorizing": "unlock the device and accept this computer's key on its screen",
    "offline": "plug the device in again, or `adb kill-server`; it does not answer",
    "no permissions": "install the udev rules for Android devices, or see `adb devices -l`",
}


@dataclass(frozen=True)
class Attached:
    """One line: the serial number, the state (`device` is the one that takes commands), the model where it is told."""

    serial: str
    state: str
    model: str = ""

    def __str__(self) -> str:
        return f"{self.serial} ({', '.join(part for part in (self.state, self.model) if part)})"


def parse_devices(text: str) -> tuple[Attached, ...]:
    """The devices of `adb devices -l`, in its order; lines about its server are skipped.

    ``R5CT10 device usb:1-2 product:… model:SM_S928B device:… transport_id:3``; the state may have a blank in it
    (``no permissions; see …``).
    """
    found = []
    for line in text.splitlines():
        words = printable(line.replace("\t", " ")).split()
        if len(words) < 2 or line.startswith(("List of devices", "*", "adb server")):
            continue
        rest = " ".join(words[1:])
        state = "no permissions" if rest.startswith("no permissions") else words[1]
        model = next((word.removeprefix("model:") for word in words[2:] if word.startswith("model:")), "")
        found.append(Attached(words[0], state, model))
    return tuple(found)


def choose(devices: Sequence[Attached], serial: str | None) -> Attached:
    """The device with this serial number, or the only one that is ready.

    Raises NoDevice (QF781), DeviceNotReady (QF782), SeveralDevices (QF783).
    """
    lines = [str(one) for one in devices]
    if serial is not None:
        named = [one for one in devices if one.serial == serial]
        if not named:
            raise NoDevice(
                f"adb sees no device {serial!r:.100}", remedy="see `adb devices -l`; plug it in", details=lines
            )
        return _ready(named[0])
    ready = [one for one in devices if one.state == READY]
    if len(ready) == 1:
        return ready[0]
    if ready:
        raise SeveralDevices(
            f"adb sees {len(ready)} devices", remedy="name one with --serial", details=[str(one) for one in ready]
        )
    if devices:
        return _ready(devices[0])
    raise NoDevice("adb sees no device", remedy="plug one in with USB debugging on, or `adb connect ADDRESS`")


def require_version(text: str, program: str) -> str:
    """The version that `adb version` tells. Raises AdbUnusable (QF780) for an old one, or for what is no adb."""
    found = _VERSION.search(text)
    if found is None:
        raise AdbUnusable(f"{program} does not say which adb it is", remedy="name Android's adb with --adb PATH")
    version = tuple(int(part) for part in found.groups())
    shown = ".".join(map(str, version))
    if version < _OLDEST:
        raise AdbUnusable(
            f"adb {shown} is too old; it must be {'.'.join(map(str, _OLDEST))} or newer",
            remedy="install Android's current platform tools, or name a newer adb with --adb PATH",
        )
    return shown


def _ready(one: Attached) -> Attached:
    if one.state == READY:
        return one
    raise DeviceNotReady(
        f"the device {one.serial} is in the state '{one.state}'",
        remedy=_HELP.get(one.state, "bring the device to its normal state; see `adb devices -l`"),
    )
