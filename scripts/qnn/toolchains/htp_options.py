"""What can be chosen in the HTP configuration files, and what a chip allows of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from qnn.chips.soc import Soc
from qnn.errors.htp_config import InvalidHtpOption

# The SDK's accuracy evaluator (QAIRT 2.2x to 2.4x) and the ONNX Runtime QNN provider accept these names.
PERF_PROFILES = (
    "balanced",
    "burst",
    "default",
    "extreme_power_saver",
    "high_performance",
    "high_power_saver",
    "low_balanced",
    "low_power_saver",
    "power_saver",
    "sustained_high_performance",
    "system_settings",
)
PD_SESSIONS = ("signed", "unsigned")
_WORDS = {"perf_profile": PERF_PROFILES, "pd_session": PD_SESSIONS}
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
# QNN HTP API reference: polling is recommended between 0 and 10000 µs.
_MAX_POLLING_US = 10000
# Qualcomm's qairt Python API (backends/htp/config.py): at most 64 graphs share weights.
MAX_SHARING_GRAPHS = 64


@dataclass(frozen=True)
class HtpOptions:
    """Choices for the configuration; None leaves the key out, so that the tool's own default holds.

    Per graph: `optimization` is the O mode (1 fastest to compile, 3 fastest to run); `vtcm_mb` defaults to the chip's
    and may be less; `fp16` computes float graphs in half precision, by default where the chip can; `hvx_threads`
    takes effect when a graph is compiled, not when it runs; `dlbc` and `dlbc_weights` compress activations and weights
    on the bus; `weights_packing` packs weights. Of the device: power profile, RPC and HMX times in microseconds, the
    kind of process domain. Of the context: `weight_sharing` stores weights that several graphs share once;
    `extended_udma` needs v81.
    """

    optimization: int = 3
    vtcm_mb: int | None = None
    fp16: bool | None = None
    hvx_threads: int | None = None
    dlbc: bool = False
    dlbc_weights: bool = False
    weights_packing: bool = False
    perf_profile: str = "burst"
    rpc_control_latency: int = 100
    rpc_polling_time: int | None = None
    hmx_timeout_us: int | None = None
    pd_session: str | None = None
    weight_sharing: bool = False
    extended_udma: bool = False
    device_id: int = 0
    core_id: int = 0


OPTION_NAMES = tuple(field.name for field in fields(HtpOptions))
_BOOLEAN_NAMES = frozenset({"fp16", "dlbc", "dlbc_weights", "weights_packing", "weight_sharing", "extended_udma"})


def parse_options(pairs: Sequence[str]) -> HtpOptions:
    """Options from ``name=value`` texts. Raises InvalidHtpOption (QF520) for unknown names, repeats, bad values."""
    values: dict[str, Any] = {}  # each value is parsed by its own field's kind
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise _invalid(f"'{pair}' is not of the form name=value")
        if name not in OPTION_NAMES:
            near = difflib.get_close_matches(name, OPTION_NAMES, 1)
            raise _invalid(f"there is no option '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
        if name in values:
            raise _invalid(f"'{name}' is given twice")
        values[name] = _value(name, text.strip())
    return HtpOptions(**values)


def require_possible(options: HtpOptions, soc: Soc, graph_count: int) -> None:
    """Raise InvalidHtpOption (QF520) listing everything the options ask that cannot be on this chip."""
    problems = (*_out_of_range(options), *_beyond_chip(options, soc), *_pointless(options, graph_count))
    if problems:
        raise InvalidHtpOption(
            f"{len(problems)} option(s) do not fit {soc.name}",
            remedy="change the options named here; without options the chip's own values are used",
            details=problems,
        )


def _out_of_range(options: HtpOptions) -> Iterator[str]:
    if options.optimization not in (1, 2, 3):
        yield f"optimization is {options.optimization}; it goes from 1 to 3"
    for name, words in _WORDS.items():
        value = getattr(options, name)
        if value is not None and value not in words:
            yield f"{name} is '{value}'; known are {', '.join(words)}"
    for name in ("vtcm_mb", "hvx_threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            yield f"{name} is {value}; it is at least 1"
    for name in ("rpc_control_latency", "rpc_polling_time", "hmx_timeout_us", "device_id", "core_id"):
        value = getattr(options, name)
        if value is not None and value < 0:
            yield f"{name} is {value}; it cannot be negative"
    if options.rpc_polling_time is not None and options.rpc_polling_time > _MAX_POLLING_US:
        yield f"rpc_polling_time is {options.rpc_polling_time} µs; at most {_MAX_POLLING_US} is supported"


def _beyond_chip(options: HtpOptions, soc: Soc) -> Iterator[str]:
    if options.vtcm_mb is not None and options.vtcm_mb > soc.vtcm_mb:
        yield f"vtcm_mb is {options.vtcm_mb}; {soc.name} has {soc.vtcm_mb}"
    if options.hvx_threads is not None and options.hvx_threads > soc.hvx_threads:
        yield f"hvx_threads is {options.hvx_threads}; {soc.name} has {soc.hvx_threads}"
    if options.fp16 and not soc.fp16:
        yield f"fp16 is on; {soc.name} has no fp16"
    if options.rpc_polling_time and soc.arch_number < 69:
        yield f"rpc_polling_time is set; {soc.name} is {soc.arch}, and RPC polling begins with v69"
    if options.extended_udma and soc.arch_number < 81:
        yield f"extended_udma is on; {soc.name} is {soc.arch}, and it begins with v81"


def _pointless(options: HtpOptions, graph_count: int) -> Iterator[str]:
    if options.dlbc_weights and not options.dlbc:
        yield "dlbc_weights has an effect only together with dlbc"
    if options.weight_sharing and not 2 <= graph_count <= MAX_SHARING_GRAPHS:
        yield f"weight_sharing is for 2 to {MAX_SHARING_GRAPHS} graphs in one binary; there are {graph_count}"


def _value(name: str, text: str) -> int | bool | str:
    if name in _WORDS:
        if text not in _WORDS[name]:
            raise _invalid(f"{name} is '{text}'; known are {', '.join(_WORDS[name])}")
        return text
    if name in _BOOLEAN_NAMES:
        if text.lower() not in _BOOLEANS:
            raise _invalid(f"{name} is '{text}'; write true or false")
        return _BOOLEANS[text.lower()]
    try:
        return int(text)
    except ValueError:
        raise _invalid(f"{name} is '{text}'; it is a whole number") from None


def _invalid(message: str) -> InvalidHtpOption:
    return InvalidHtpOption(message, remedy=f"the options are {', '.join(OPTION_NAMES)}")
