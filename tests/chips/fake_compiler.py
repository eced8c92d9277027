"""A compiler that answers from a recording, and one that misbehaves, in the place of qnn.chips.probe:probe."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

from qnn.chips.probe import Answer, Probe, ProbeGraph, Refusal, Settings
from qnn.chips.sweep import Observation

# What onnxruntime-qnn 2.7.0 (QAIRT 2.51.0) said of the ids it accepts, of 1 to 200; fp16 is whether the float graph
# compiled. Every other id was refused.
RECORDING = Path(__file__).with_name("compiler_2.51.0.csv")
BUILD_ID = "v2.51.0.260929181845"
REFUSAL = Refusal("This session contains graph nodes that are assigned to the default CPU EP")


def recorded() -> dict[int, Observation]:
    """The recording by soc_id, 1 to 200."""
    with RECORDING.open(encoding="utf-8", newline="") as stream:
        accepted = {int(row["soc_id"]): row for row in csv.DictReader(stream)}
    observations = {soc_id: Observation(soc_id, REFUSAL) for soc_id in range(1, 201)}
    for soc_id, row in accepted.items():
        settings = Settings(row["name"], int(row["hvx_threads"]), int(row["vtcm_bytes"]))
        answer = Answer(soc_id, int(row["dsp_arch"]), settings, BUILD_ID)
        observations[soc_id] = Observation(soc_id, answer, answer if row["fp16"] == "yes" else REFUSAL)
    return observations


def answer_of(observation: Observation) -> Answer:
    """The quantized graph's answer, which must be one."""
    assert isinstance(observation.quantized, Answer)
    return observation.quantized


def with_settings(observation: Observation, **changes: str | int | None) -> Observation:
    """The same observation with other settings noted in the quantized graph's binary."""
    answer = answer_of(observation)
    return replace(
        observation,
        quantized=replace(answer, settings=replace(answer.settings, **changes)),  # type: ignore[arg-type]
    )


def probe(request: Probe) -> Answer | Refusal:
    """Answer as recorded; die for id 57's fp16 graph and for id 13."""
    if request.soc_id == 13 or (request.soc_id == 57 and request.graph is ProbeGraph.FP16):
        print("free(): invalid pointer", flush=True)
        os.abort()
    Path("left behind").write_text(str(request.soc_id))
    if len(os.listdir()) != 1:
        return Refusal("the folder was not empty")
    observation = recorded()[request.soc_id]
    reply = observation.quantized if request.graph is ProbeGraph.QUANTIZED else observation.fp16
    assert isinstance(reply, Answer | Refusal)
    return reply
