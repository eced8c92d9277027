"""Planning 1,000 models × 65 SoCs × 3 precisions: `qnn-forge plan` in each of its forms. Limits: 2 s, 300 MB.

Every model has a folder and a model.yaml of its own, with a source for each precision, and is for 65 chips by one of
five expressions. What the largest matrix of all parts holds is counted in the JSON; GitHub takes 256 jobs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.process_cost import cost_of

MODELS = 1000
LIMIT_SECONDS, LIMIT_MB, LIMIT_MATRIX = 2.0, 300, 256
# All but two of the table's 67 chips, written in different ways.
_TARGETS = (
    "socs: [all]\n  exclude:\n    - {socs: [IPQ9650, QMX115], reason: no display}",
    'socs: ["*"]\n  exclude:\n    - {socs: ["IPQ*", "QMX*"], reason: no display}',
    "socs: [all]\n  exclude:\n    - {socs: [IPQ9650], reason: a router}\n    - {socs: [QMX115], reason: a modem}",
    'socs: ["S*", "Q*", "C*", "X*", "IQX*"]\n  exclude:\n    - {socs: [QMX115], reason: a modem}',
    'socs: [all]\n  exclude:\n    - {socs: ["IPQ*"], reason: a router}\n    - {socs: ["QMX*"], reason: a modem}',
)
_YAML = """\
# yaml-language-server: $schema=../../scripts/qnn/model/model.schema.json
name: {name}
version: "1.{number}"
summary: Model {number} of a benchmark; nothing of it is ever built.
task: speech-recognition
licence:
  spdx: Apache-2.0
  text: licence
  attribution: The authors of the benchmark
sources:
  float:
    huggingface: owner/{name}@0123456789abcdef0123456789abcdef01234567
    file: onnx/encoder.onnx
    sha256: "{sha:064x}"
    size: {size}
  w8a8:
    huggingface: owner/{name}@0123456789abcdef0123456789abcdef01234567
    file: onnx/encoder_w8a8.onnx
    sha256: "{sha:064x}"
    size: {quarter}
  w8a16:
    huggingface: owner/{name}@0123456789abcdef0123456789abcdef01234567
    file: onnx/encoder_w8a16.onnx
    sha256: "{sha:064x}"
    size: {quarter}
  recording:
    url: https://example.org/recordings/{number}.wav
    sha256: "{sha:064x}"
    size: 320000
  licence: {{local: LICENSE, sha256: "{sha:064x}", size: 11358}}
graphs:
  encoder:
    source: {{fp16: float, w8a8: w8a8, w8a16: w8a16}}
    reference: float
    inputs:
      features: [1, 80, 500]  # five seconds
precisions: [fp16, w8a8, w8a16]
targets:
  {targets}
checks:
  data: data.py:samples
  count: 2
  gates: {{cosine: 0.99}}
  outputs:
    encoder:
      encoder_out: {{cosine: 0.999, max_abs: 0.2}}
  metric: metric.py:evaluate
  metrics:
    encoder:
      text: equal
limits: {{memory_gb: 8, minutes: 20}}
publish: {{github: true}}
"""


def write_models(folder: Path, count: int) -> None:
    """So many model folders, each with a model.yaml that passes lint but for the files that it names beside it."""
    for number in range(count):
        name = f"model-{number:04d}"
        size = 2_000_000 + number * 97_000  # 2 to 99 MB
        (folder / name).mkdir(parents=True)
        (folder / name / "model.yaml").write_text(
            _YAML.format(
                name=name,
                number=number,
                sha=number + 1,
                size=size,
                quarter=size // 4,
                targets=_TARGETS[number % len(_TARGETS)],
            )
        )


def main() -> list[str]:
    """Run every form five times: the median wall time and the largest memory count."""
    lines = ["| `qnn-forge plan`, 1,000 models × 65 SoCs × 3 precisions | wall s | peak MB |", "|---|---:|---:|"]
    with tempfile.TemporaryDirectory(prefix="qnn-forge-bench-") as folder:
        scratch = Path(folder)
        write_models(scratch / "models", MODELS)
        for options in ((), ("--github", "--part", "1"), ("--json",)):
            runs = [_run(scratch, options) for _ in range(5)]
            wall, peak = sorted(wall for wall, _ in runs)[2], max(peak for _, peak in runs) / 1e6
            title = " ".join(options) or "the table"
            lines.append(f"| {title} (limits {LIMIT_SECONDS:.0f} s, {LIMIT_MB} MB) | {wall:.2f} | {peak:.0f} |")
        plan = json.loads((scratch / "output.txt").read_text())
    return [*lines, "", _matrices(plan)]


def _run(scratch: Path, options: Sequence[str]) -> tuple[float, int]:
    """(wall seconds, largest memory in bytes) of one `qnn-forge plan`; its output is left in output.txt.

    The kernel's own count of a child's peak begins with its parent's, so the memory is sampled instead.
    """
    cost = cost_of([str(Path(sys.executable).with_name("qnn-forge")), "plan", *options], cwd=scratch)
    return cost.wall, cost.peak_bytes


def _matrices(plan: dict[str, Any]) -> str:
    keys = [(job["part"], job.get("shard", "prepare")) for job in (*plan["prepare"], *plan["compile"])]
    sizes = Counter(keys)
    return (
        f"{plan['targets']:,} targets (fp16 on a chip without it is none), {plan['jobs']:,} jobs, {plan['parts']} parts"
        f" with {len(sizes)} matrices; the largest has {max(sizes.values())} jobs (limit {LIMIT_MATRIX})."
    )


if __name__ == "__main__":
    print("\n".join(main()))
