"""qnn-net-run's command line, where it puts outputs, and how long it took. Pure.

Options as its help and Qualcomm's public guides have them: --retrieve_context loads a context binary;
--use_native_input_files reads inputs in the graph's own dtypes (without it every file is read as float32);
--use_native_output_files writes outputs so, as ``<tensor>_native.raw``; --num_inferences goes over the list until that
many were done, --keep_num_outputs says how many of them are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from qnn.device.paths import adsp_path, command, library_path
from qnn.errors.device import OutputsMissing

WARM_UPS = 10
_RESULT = re.compile(r"Result_(\d+)")
_UNFIT = re.compile(r"[^A-Za-z0-9]")
_TIMES = re.compile(r"qnn-forge-ns:(\d+) (\d+)")
_STATISTIC = re.compile(r"Execute Stats \((Average|Min|Max)\):(.*?)(?=Execute Stats|\Z)", re.DOTALL)
_NET_RUN_US = re.compile(r"NetRun:\s+(\d+)\s*us")
_ACCELERATOR_US = re.compile(r"QNN accelerator \(execute\) time\):\s+(\d+)\s*us")


@dataclass(frozen=True)
class Place:
    """Where things are on the device: the bundle's folder, the libraries' folder, the program, this run's outputs."""

    bundle: str
    libraries: str
    program: str
    output: str


def check_line(place: Place, binary: str, input_list: str) -> str:
    """The command that runs every golden input once and writes all outputs."""
    return _line(place, binary, input_list, [])


def timed_line(place: Place, binary: str, input_list: str, inferences: int) -> str:
    """The command that runs `inferences` of them, as fast as the chip can, and tells start and end in nanoseconds."""
    options = ["--num_inferences", str(inferences), "--keep_num_outputs", "1"]
    options += ["--perf_profile", "burst", "--profiling_level", "basic"]
    line = _line(place, binary, input_list, options)
    # In one command, so that nothing but the program lies between; the status stays the program's.
    return f'from=$(date +%s%N)\n{line}\nstatus=$?\necho "qnn-forge-ns:$from $(date +%s%N)"\n(exit $status)'


def _line(place: Place, binary: str, input_list: str, options: list[str]) -> str:
    words = [place.program, "--backend", f"{place.libraries}/libQnnHtp.so", "--retrieve_context", binary]
    words += ["--input_list", input_list, "--output_dir", place.output]
    words += ["--use_native_input_files", "--use_native_output_files", *options]
    libraries, adsp = library_path([place.libraries]), adsp_path(place.libraries)
    return (
        f"cd {command(place.bundle)} && "
        f"LD_LIBRARY_PATH={command(libraries)} ADSP_LIBRARY_PATH={command(adsp)} {command(*words)}"
    )


def output_files(paths: Iterable[str], names: Iterable[str], sample: int, graph: str) -> dict[str, str]:
    """Tensor name → path of its file in ``Result_<sample>``, from all paths that were fetched.

    The program replaces characters in names that it does not like in paths; which ones is not documented. So a name
    without a file of its own is compared by letters and digits and must fit exactly one. Raises OutputsMissing (QF795).
    """
    exact: dict[str, list[str]] = {}
    there: dict[str, list[str]] = {}
    for path in paths:
        parts = PurePosixPath(path).parts
        at = next((number for number, part in enumerate(parts) if _RESULT.fullmatch(part)), None)
        if at is None or parts[at] != f"Result_{sample}" or not path.endswith(".raw"):
            continue
        stem = "/".join(parts[at + 1 :]).removesuffix(".raw").removesuffix("_native")
        exact.setdefault(stem, []).append(path)
        there.setdefault(_UNFIT.sub("", stem), []).append(path)
    found = {name: exact.get(name) or there.get(_UNFIT.sub("", name), []) for name in names}
    wrong = sorted(name for name, files in found.items() if len(files) != 1)
    if wrong:
        raise OutputsMissing(
            f"{graph}: qnn-net-run wrote no file for {', '.join(wrong)} of sample {sample}",
            remedy="run `qnn-forge device clean` and try again; give --log FILE to see what it said",
            details=sorted(path for files in there.values() for path in files)[:20],
        )
    return {name: files[0] for name, files in found.items()}


def elapsed(text: str) -> int | None:
    """Nanoseconds between the two times of `timed_line`; None where the device's `date` tells none."""
    found = _TIMES.search(text)
    return None if found is None else int(found[2]) - int(found[1])


@dataclass(frozen=True)
class Latency:
    """What one graph takes, in microseconds, after `warm_ups` inferences.

    `mean_us` is the difference of a run of warm-ups and one of warm-ups and `runs` more, by the device's clock, over
    `runs`: with reading inputs, without starting and loading. None where the difference is lost in how much starting
    varies. `average_us`, `min_us`, `max_us` and `accelerator_us` are qnn-net-run's own profile of all inferences of the
    longer run; None without the SDK's qnn-profile-viewer.
    """

    runs: int
    warm_ups: int = WARM_UPS
    mean_us: float | None = None
    average_us: int | None = None
    min_us: int | None = None
    max_us: int | None = None
    accelerator_us: int | None = None


def latency(runs: int, short: int | None, long: int | None, profile: str) -> Latency:
    """From the two elapsed times in nanoseconds and the text of qnn-profile-viewer ("" without one)."""
    mean = None if short is None or long is None or long <= short else round((long - short) / runs / 1000, 1)
    blocks = {match[1]: match[2] for match in _STATISTIC.finditer(profile)}

    def number(block: str, pattern: re.Pattern[str]) -> int | None:
        match = pattern.search(blocks.get(block, ""))
        return None if match is None else int(match[1])

    return Latency(
        runs,
        mean_us=mean,
        average_us=number("Average", _NET_RUN_US),
        min_us=number("Min", _NET_RUN_US),
        max_us=number("Max", _NET_RUN_US),
        accelerator_us=number("Average", _ACCELERATOR_US),
    )
