"""Jobs in the place of the doctor's own: each behaves as a broken toolchain can."""

import os


def abort(_: object) -> None:
    print("terminate called without an active exception", flush=True)
    os.abort()
