"""What a device says of itself: one command, and what its answer means. The command is text, the rest is pure."""

from __future__ import annotations

from dataclasses import dataclass

from qnn.chips.soc import Soc
from qnn.chips.table import ChipTable
from qnn.device.adb import Device
from qnn.errors.chips import AmbiguousChip, ChipWithoutHtp, UnknownChip
from qnn.errors.device import DeviceChipUnknown
from qnn.sources.protocol import printable

_PROPERTIES = (
    ("soc_model", "ro.soc.model"),
    ("board", "ro.board.platform"),
    ("abi", "ro.product.cpu.abi"),
    ("android", "ro.build.version.release"),
    ("api", "ro.build.version.sdk"),
    ("model", "ro.product.model"),
)
# Where firmware keeps its own QNN: a program may not rely on it, but it explains what gets mixed up.
_LIBRARIES = (
    "/vendor/lib64/libQnn*.so",
    "/odm/lib64/libQnn*.so",
    "/system_ext/lib64/libQnn*.so",
    "/vendor/lib/rfsa/adsp/libQnn*Skel.so",
    "/odm/lib/rfsa/adsp/libQnn*Skel.so",
    "/vendor/dsp/cdsp/libQnn*Skel.so",
)
_NET_RUNS = ("/data/local/tmp/qnn-net-run", "/data/local/tmp/qnn/qnn-net-run", "/vendor/bin/qnn-net-run")
_FASTRPC = ("/vendor/lib64/libcdsprpc.so", "/dev/fastrpc-cdsp", "/dev/adsprpc-smd")
# v2.51.0.260929181845: version and time of build, as every QAIRT library has it inside.
_BUILD = "v[0-9]{1,2}[.][0-9]{1,3}[.][0-9]{1,3}[.][0-9]{12}"


@dataclass(frozen=True)
class FoundLibrary:
    """A QAIRT library in the device's firmware; `build` is empty where none is told."""

    path: str
    build: str = ""


@dataclass(frozen=True)
class DeviceFacts:
    """What was read; a fact that the device does not tell is empty.

    `soc_model` is ro.soc.model, `soc0` Linux's number of the chip, `api` Android's API level. `fastrpc` are the files
    through which a program reaches the NPU, as far as they are there.
    """

    soc_model: str = ""
    soc0: str = ""
    board: str = ""
    abi: str = ""
    android: str = ""
    api: str = ""
    model: str = ""
    libraries: tuple[FoundLibrary, ...] = ()
    net_runs: tuple[str, ...] = ()
    fastrpc: tuple[str, ...] = ()


def probe() -> str:
    """The command whose output `parse` reads: a line ``key=value`` a fact."""
    lines = [f"printf '{key}=%s\\n' \"$(getprop {name})\"" for key, name in _PROPERTIES]
    lines.append("printf 'soc0=%s\\n' \"$(cat /sys/devices/soc0/soc_id 2>/dev/null)\"")
    lines.append(
        f'for f in {" ".join(_LIBRARIES)}; do [ -f "$f" ] && '
        f'printf \'library=%s %s\\n\' "$f" "$(grep -aoE -m 1 \'{_BUILD}\' "$f" 2>/dev/null | head -n 1)"; done'
    )
    lines.append(f'for f in {" ".join(_NET_RUNS)}; do [ -f "$f" ] && printf \'net_run=%s\\n\' "$f"; done')
    lines.append(f'for f in {" ".join(_FASTRPC)}; do [ -e "$f" ] && printf \'fastrpc=%s\\n\' "$f"; done')
    return "\n".join([*lines, "true"])


def read_facts(device: Device) -> DeviceFacts:
    """Ask a device. Raises DeviceLost (QF784), DeviceHangs (QF794), DeviceRefused (QF785)."""
    return parse(device.do(probe(), "say what it is").out)


def parse(text: str) -> DeviceFacts:
    """The facts from the probe's output; unknown lines are skipped."""
    single: dict[str, str] = {}
    several: dict[str, list[str]] = {"library": [], "net_run": [], "fastrpc": []}
    names = {"soc0", *(key for key, _ in _PROPERTIES)}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        value = printable(value.strip())[:200]
        if key in several:
            several[key].append(value)
        elif key in names:
            single[key] = value
    libraries = (value.partition(" ") for value in several["library"])
    return DeviceFacts(
        **single,
        libraries=tuple(FoundLibrary(path, build) for path, _, build in libraries),
        net_runs=tuple(several["net_run"]),
        fastrpc=tuple(several["fastrpc"]),
    )


def chip_of(facts: DeviceFacts, table: ChipTable) -> Soc:
    """The device's chip. Raises DeviceChipUnknown (QF787) where it is not told or not in the table, or has no HTP."""
    told = facts.soc_model or (f"soc0:{facts.soc0}" if facts.soc0 else "")
    details = [f"ro.soc.model {facts.soc_model or 'empty'}, soc0 {facts.soc0 or 'not told'}, board {facts.board}"]
    if not told:
        raise _unknown("the device does not say which chip it has", details)
    try:
        return table.lookup(told)
    except (UnknownChip, AmbiguousChip, ChipWithoutHtp) as error:
        raise _unknown(f"the device's chip: {error.message}", [*details, *error.details]) from None


def _unknown(message: str, details: list[str]) -> DeviceChipUnknown:
    return DeviceChipUnknown(
        message, remedy="run the float model on the CPU; if the chip has an HTP, report these values", details=details
    )
