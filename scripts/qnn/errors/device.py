"""Faults of checking a bundle on a device: adb, the device, the runtime on it, and what it computed."""

from qnn.errors.base import ExitCode, ForgeError


class AdbUnusable(ForgeError):
    """What: The program `adb` is not there, does not start, or is older than platform tools 24 (adb 1.0.36).

    Why: Devices are reached through Android's own adb. Older ones mix a command's output with its errors and send files
    without saying whether they arrived.

    Mend: Install Android's platform tools (on Debian and Ubuntu the package `adb`) and put adb on PATH, or name it with
    `--adb PATH`.
    """

    id = "QF780"
    title = "adb cannot be used"
    exit_code = ExitCode.DEVICE


class NoDevice(ForgeError):
    """What: adb sees no device, or none with the serial number that was given.

    Why: The cable is loose or only charges, USB debugging is off, the device is asleep in its boot loader, or another
    adb server holds it.

    Mend: Switch on USB debugging in the developer options, plug the device in, and see `adb devices -l`. For a device
    in the network: `adb connect ADDRESS`.
    """

    id = "QF781"
    title = "no such device"
    exit_code = ExitCode.DEVICE


class DeviceNotReady(ForgeError):
    """What: adb sees the device, but in a state in which it takes no commands: unauthorized, offline, no permissions,
    recovery, sideload.

    Why: "unauthorized": this computer's key has not been accepted on the device's screen. "offline": the device does
    not answer. "no permissions": the system's rules do not let you open the USB device.

    Mend: Unlock the device and accept the question on its screen; plug it in again; `adb kill-server` and try again. On
    Linux, install the udev rules for Android devices.
    """

    id = "QF782"
    title = "the device takes no commands"
    exit_code = ExitCode.DEVICE


class SeveralDevices(ForgeError):
    """What: adb sees several devices and none was named.

    Why: A check on the wrong device is worse than none.

    Mend: Name one with `--serial`; the message lists them.
    """

    id = "QF783"
    title = "several devices and none named"
    exit_code = ExitCode.DEVICE


class DeviceLost(ForgeError):
    """What: The device was there and went away, or stopped answering, in the middle of the work.

    Why: It was unplugged, it rebooted, or the USB connection broke. A device that reboots each time the NPU is used
    has a fault in its firmware.

    Mend: Plug it in and run the same command again. Files that had arrived whole are not sent again, and what an
    interrupted run left is removed first.
    """

    id = "QF784"
    title = "the device went away"
    exit_code = ExitCode.DEVICE


class DeviceRefused(ForgeError):
    """What: The device did not do what it was asked: make a folder, take a file, give one back.

    Why: The folder is not writable for the user `shell`, a file of that name is in the way, or the device's security
    policy forbids it. The message holds the device's own words.

    Mend: Use the default folder below /data/local/tmp. `qnn-forge device clean` removes what is there.
    """

    id = "QF785"
    title = "the device refused"
    exit_code = ExitCode.DEVICE


class DeviceFull(ForgeError):
    """What: The device has no room for the bundle and the runtime libraries.

    Why: Both are copied below /data/local/tmp; libraries with everything that compiles on the device take 200 MB.

    Mend: Free room on the device. `qnn-forge device clean` removes the bundles of earlier checks.
    """

    id = "QF786"
    title = "no room left on the device"
    exit_code = ExitCode.DEVICE


class DeviceChipUnknown(ForgeError):
    """What: The device does not say which chip it has, or it is not one of the chips with an HTP that are known here.

    Why: A context binary is made for one chip. `ro.soc.model` is asked first (Android 12 and newer), then Linux's
    number of the chip. Chips of other makers and older Snapdragons have no HTP at all.

    Mend: Run the float model on the CPU instead; the message says where it is. If the chip has an HTP, please tell us
    the values in the message, so that it is added to the table.
    """

    id = "QF787"
    title = "the device's chip is not known"
    exit_code = ExitCode.CHIP


class BundleForOtherChip(ForgeError):
    """What: The bundle was made for another chip than the device has.

    Why: The number of the chip is written into a context binary, with the size of its VTCM and its Hexagon version. On
    another chip it does not load, or worse, loads and computes with the wrong memory layout.

    Mend: Get the bundle of this chip (`qnn-forge pull`, `qnn-forge build --soc`). Where there is none, run the float
    model on the CPU; the message says where it is.
    """

    id = "QF788"
    title = "a bundle for another chip"
    exit_code = ExitCode.CHIP


class RuntimeUnusable(ForgeError):
    """What: There are no QAIRT runtime libraries for the device, or the ones given are not fit for it: another system,
    no Skel of the chip's Hexagon version, a file that is not as its manifest says.

    Why: Android devices do not come with libraries that a program may use; each app brings its own. They must be one
    set: libQnnSystem.so, libQnnHtp.so, and the Stub and Skel of the chip.

    Mend: `qnn-forge libs --soc CHIP --os android` puts the set together; give it with `--libs`. Or set QNN_SDK_ROOT to
    an unpacked QAIRT SDK.
    """

    id = "QF789"
    title = "no fit runtime libraries"
    exit_code = ExitCode.DEVICE


class NetRunMissing(ForgeError):
    """What: The program qnn-net-run is neither given, nor in an SDK, nor on the device.

    Why: It loads a context binary and runs it. It is part of the full QAIRT SDK only: the packages that `qnn-forge
    libs` takes libraries from do not have it, and its licence does not let us hand it on.

    Mend: Download the QAIRT SDK from Qualcomm, unpack it and set QNN_SDK_ROOT to it, or give the file of
    bin/aarch64-android with `--net-run`.
    """

    id = "QF790"
    title = "no qnn-net-run"
    exit_code = ExitCode.DEVICE


class RuntimeTooOld(ForgeError):
    """What: The runtime libraries are of an older QAIRT than the one that made the bundle.

    Why: Context binaries load forwards, never backwards: one made by 2.48 loads on 2.51, one made by 2.51 does not load
    on 2.48 and ends in error 5000.

    Mend: Take libraries of the bundle's QAIRT or newer (`qnn-forge libs --toolchain`), or a bundle made by an older one
    (`qnn-forge pull --runtime`).
    """

    id = "QF791"
    title = "the runtime is older than the bundle"
    exit_code = ExitCode.DEVICE


class UnfitDevicePath(ForgeError):
    """What: A folder on the device, or a file name in the bundle, has characters that paths on the device cannot have.

    Why: ADSP_LIBRARY_PATH is split at `;`, LD_LIBRARY_PATH at `:`, and qnn-net-run's input list at blanks. None of the
    three has a way to quote them, so such a path is silently read as two.

    Mend: Use letters, digits, `.`, `_`, `-`, `+`, `=`, `@` and `/` only. Paths on your own machine may have any
    characters.
    """

    id = "QF792"
    title = "a path that the device would misread"
    exit_code = ExitCode.DEVICE


class NetRunFailed(ForgeError):
    """What: qnn-net-run ended with an error. The message names the QNN errors that were recognised in what it said, and
    the page of each.

    Why: QNN reports faults as bare numbers, and one fault as several of them. docs/device-errors/ has the known ones:
    the cause, how to check it, and the fix.

    Mend: Follow the page of the first error named. For one that is not known, read what qnn-net-run said (`--log FILE`
    keeps all of it).
    """

    id = "QF793"
    title = "qnn-net-run failed"
    exit_code = ExitCode.DEVICE


class DeviceHangs(ForgeError):
    """What: A command on the device did not end in the time it was given.

    Why: The NPU hangs, another process holds it, or the model needs longer.

    Mend: Run it again with a larger `--timeout`. If it stays, reboot the device.
    """

    id = "QF794"
    title = "a command on the device does not end"
    exit_code = ExitCode.DEVICE


class OutputsMissing(ForgeError):
    """What: qnn-net-run ended well, but an output file is missing, has another size than its tensor, or the binary's
    tensors cannot be matched with the golden files.

    Why: The files of one run are those of the binary that ran. Another size means that another binary or another
    qnn-net-run was used than the bundle's manifest describes.

    Mend: Run `qnn-forge device clean` and try again; run `qnn-forge verify` on the bundle.
    """

    id = "QF795"
    title = "the device gave other outputs than the bundle has"
    exit_code = ExitCode.DEVICE


class DeviceNumbersMiss(ForgeError):
    """What: An output that the device computed misses the bundle's own gates against the golden output.

    Why: The emulator agreed with the float model when the bundle was made, so the fault is on the device: libraries of
    mixed versions, a fault of its firmware, or inputs that were read as zeros. An output that is zero everywhere
    usually means the last.

    Mend: Run `qnn-forge verify` on the bundle: if it fails too, the bundle is damaged. Take libraries of exactly the
    QAIRT build that the bundle's manifest names. If it stays, please report it with the file of `--report`.
    """

    id = "QF796"
    title = "the device computes other numbers"
    exit_code = ExitCode.GATE
