"""Which chip a device has: its ro.soc.model, asked through adb."""

from __future__ import annotations

import subprocess

from qnn.errors.pull import DeviceSilent, NoAdb
from qnn.sources.protocol import printable

_PROPERTY = "ro.soc.model"
_SECONDS = 30.0
_REMEDY = "see `adb devices`; name a device with --device SERIAL, or the chip with --soc"


def soc_model(serial: str | None) -> str:
    """The value of ro.soc.model, as SM8650; of the only device, or of the one with this serial number.

    Raises NoAdb (QF729) and DeviceSilent (QF730).
    """
    which = [] if serial is None else ["-s", serial]
    try:
        done = subprocess.run(
            ["adb", *which, "shell", "getprop", _PROPERTY],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        raise NoAdb(
            f"adb cannot be started: {error.strerror}",
            remedy="install Android's platform tools and put adb on PATH, or name the chip with --soc",
        ) from None
    except subprocess.TimeoutExpired:
        raise DeviceSilent(f"adb gave no answer in {_SECONDS:.0f} s", remedy=_REMEDY) from None
    value = printable(done.stdout.decode(errors="replace").strip())
    if done.returncode:
        said = printable(done.stderr.decode(errors="replace").strip())
        raise DeviceSilent(f"adb says: {said[:300] or value[:300] or 'nothing'}", remedy=_REMEDY)
    if not value:
        raise DeviceSilent(
            f"the device has no property {_PROPERTY}, which Android has since version 12", remedy=_REMEDY
        )
    return value[:100]
