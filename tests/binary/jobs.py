"""Jobs that run in a child host: compile the graphs of make_data with the installed compiler."""

from __future__ import annotations

from pathlib import Path

from tests.binary import make_data


def compile_samples(target: Path) -> None:
    """``float.bin`` and ``quantized.bin`` for SM8650 (id 57, 8 MB) in the folder `target`."""
    make_data.compile_to(
        target / "float.bin",
        make_data.float_graph(),
        soc_model="57",
        vtcm_mb="8",
        htp_graph_finalization_optimization_mode="3",
        enable_htp_fp16_precision="1",
    )
    make_data.compile_to(target / "quantized.bin", make_data.quantized_graph(), soc_model="57", vtcm_mb="8")
