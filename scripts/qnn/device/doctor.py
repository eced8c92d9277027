"""What stands between a device and a bundle running on it. Facts come in, findings go out; pure but for `examine`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from qnn.chips.soc import Soc
from qnn.chips.table import load_table
from qnn.device.adb import Device
from qnn.device.facts import DeviceFacts, chip_of, read_facts
from qnn.device.paths import command, fit_root
from qnn.device.runtime import RuntimeFile, find_net_run, require_abi
from qnn.errors.device import DeviceChipUnknown, NetRunMissing, RuntimeUnusable

SCHEMA = 1


@dataclass(frozen=True)
class Finding:
    """One thing to know; `stops` when no bundle runs because of it."""

    stops: bool
    message: str
    remedy: str


@dataclass(frozen=True)
class Examined:
    """A device: its chip (None where it is not known), where qnn-net-run is, KB that earlier checks left there."""

    adb: str
    facts: DeviceFacts
    chip: Soc | None
    net_run: str | None
    left_kb: int
    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Whether nothing found here keeps a bundle from running."""
        return not any(finding.stops for finding in self.findings)


def examine(device: Device, sdk: Path | None, root: str) -> Examined:
    """Look at a device. Raises DeviceLost (QF784), DeviceHangs (QF794), UnfitDevicePath (QF792)."""
    folder = fit_root(root)
    facts = read_facts(device)
    used = device.run(f"du -sk {command(folder)} 2>/dev/null").out.split()
    chip: Soc | None = None
    unknown: DeviceChipUnknown | None = None
    try:
        chip = chip_of(facts, load_table())
    except DeviceChipUnknown as error:
        unknown = error
    try:
        found = find_net_run(None, sdk, facts.net_runs)
        net_run = "the SDK of QNN_SDK_ROOT" if isinstance(found, RuntimeFile) else found
    except NetRunMissing:
        net_run = None
    findings = judge(facts, chip, unknown, net_run)
    left = int(used[0]) if used and used[0].isdecimal() else 0
    return Examined(device.adb.version, facts, chip, net_run, left, findings)


def judge(
    facts: DeviceFacts, chip: Soc | None, unknown: DeviceChipUnknown | None, net_run: str | None
) -> tuple[Finding, ...]:
    """What is in the way, what stops first."""
    found = []
    if unknown is not None:
        found.append(Finding(True, unknown.message, unknown.remedy))
    try:
        require_abi(facts)
    except RuntimeUnusable as error:
        found.append(Finding(True, error.message, error.remedy))
    if not facts.fastrpc:
        message = "the device shows no way to the NPU: no libcdsprpc.so, no FastRPC driver"
        found.append(Finding(True, message, "run the float model on the CPU"))
    if net_run is None:
        message = "qnn-net-run is neither in QNN_SDK_ROOT nor on the device; `device run` needs it"
        found.append(Finding(False, message, "set QNN_SDK_ROOT to a QAIRT SDK, or give the file with --net-run"))
    own = sorted({library.build for library in facts.libraries if library.build})
    if own:
        message = (
            f"the firmware has QNN of its own ({', '.join(own)}), which an app must not mix with its own libraries"
        )
        remedy = "name your folder first in ADSP_LIBRARY_PATH, or get error 1008; see docs/device-errors/1008.md"
        found.append(Finding(False, message, remedy))
    if chip is not None and not chip.fp16:
        found.append(Finding(False, f"{chip.name} has no fp16", "take bundles of precision w8a16 or w8a8"))
    return tuple(sorted(found, key=lambda finding: not finding.stops))


def document(examined: Examined) -> dict[str, object]:
    """The JSON of `device doctor --json`."""
    chip = examined.chip
    return {
        "schema": SCHEMA,
        "ready": examined.ready,
        "adb": examined.adb,
        "device": asdict(examined.facts),
        "chip": None
        if chip is None
        else {
            "name": chip.name,
            "soc_id": chip.soc_id,
            "arch": chip.arch,
            "vtcm_mb": chip.vtcm_mb,
            "fp16": chip.fp16,
            "first_qairt": chip.first_qairt,
            "marketing": list(chip.marketing),
        },
        "net_run": examined.net_run,
        "left_kb": examined.left_kb,
        "findings": [asdict(finding) for finding in examined.findings],
    }
