"""Facts of a machine on which everything works, and what to change about them."""

from __future__ import annotations

from qnn.doctor.facts import Facts, Library, Machine, StorePlace, Toolchain, Worked
from qnn.doctor.gather import LIBRARIES
from qnn.doctor.judge import TRIAL_SOC_ID

BUILD = "v2.51.0.260929181845"
GB = 10**9


def machine() -> Machine:
    return Machine("Linux", "x86_64", ("glibc", "2.36"), "3.11.9", 8, 32 * GB, 24 * GB, memory_limited=False)


def toolchain() -> Toolchain:
    return Toolchain("1.32.0", "2.7.0", "2.51.0", tuple(Library(name, 5_000_000, None) for name in LIBRARIES))


def sound() -> Facts:
    return Facts(
        version="0.1.0",
        machine=machine(),
        toolchain=toolchain(),
        store=StorePlace("/home/me/.cache/qnn-forge", exists=True, fault=None, free=50 * GB),
        trial=Worked(BUILD, TRIAL_SOC_ID, 0.0004, 0.7),
        kits=(),
    )
