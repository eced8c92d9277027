"""Compile jobs that behave as the real compiler does on a bad day. They take the place of compile_graph in a child."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import NoReturn

from qnn.binary.info import ContextBinary
from qnn.chips.table import load_table
from qnn.toolchains.pip.jobs import compile_graph
from qnn.toolchains.pip.request import CompileJob


def segfault(_: CompileJob) -> NoReturn:
    """As a failed assertion inside the backend."""
    os.abort()


def hang(_: CompileJob) -> None:
    """As an unrolled LSTM that never ends."""
    time.sleep(3600)


def eat(_: CompileJob) -> None:
    """As a graph whose finalization needs more memory than there is."""
    hoard = bytearray(1 << 30)
    time.sleep(3600)
    del hoard


def for_another_chip(job: CompileJob) -> ContextBinary:
    """The real compiler, given another chip than the plan says: a wrong row in a chip table."""
    return compile_graph(dataclasses.replace(job, soc=load_table().lookup("SM8750")))
