"""Memory of the compiler's process: large blocks come from the heap, which keeps what is freed."""

from __future__ import annotations

import subprocess
import sys

# Prints how many bytes of one block of 64 MB malloc got by a mapping of its own (mallinfo2's hblkhd), before and after.
SCRIPT = """
import ctypes
from qnn.toolchains.pip.heap import keep_freed_memory

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd a b c d e".split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]

def mapped():
    before = libc.mallinfo2().hblkhd
    assert libc.malloc(64 << 20)
    return libc.mallinfo2().hblkhd - before

print(mapped() >= 64 << 20)
keep_freed_memory()
print(mapped())
"""


def test_large_blocks_are_not_mapped_one_by_one() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0"]
