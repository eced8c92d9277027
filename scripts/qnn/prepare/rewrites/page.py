"""docs/rewrites.md: every rewrite, written out from the registry.

`python -m qnn.prepare.rewrites.page docs/rewrites.md` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from qnn.prepare.rewrites.registry import rewrites

_HEAD = """\
# Rewrites

Between simplifying a graph and checking it, small exact transformations put forms that HTP refuses or computes wrongly
into forms that it computes rightly. This page is generated from the rewrites themselves by `make docs`.

Each is applied only where its pattern is found and needed, in the order below, and every application is recorded: it
stands in `prepared.json`, in the manifest of the bundle under `rewrites` and so on the report. Where the pattern is
there and the rewrite would not be exact, the graph is left as it is and that is recorded too (`not-rewritten`).
Exact means: on ONNX Runtime's CPU provider the outputs are the original's within 1e-6 of their full scale, unless the
text below says what else may change. The tests hold every rewrite to that on generated graphs, and check that what only
looks like its pattern stays.

Rewrites are for every chip, since preparing a graph knows none. They leave nodes between DequantizeLinear and
QuantizeLinear alone, unless the text says that they are for these. A rewrite is switched by its name in model.yaml, for
one graph:

```yaml
graphs:
  net:
    source: weights
    rewrites: {scaled-squares: true, clip-exp: false}
    inputs:
      x: [1, 3, 224, 224]
```

Post-processing whose sizes depend on the data (NonMaxSuppression, NonZero) has no rewrite: name the tensors before it
under `graphs.NAME.outputs`, which cuts the graph there, and do the rest in the application.
"""


def render() -> str:
    """The whole page."""
    parts = [_HEAD, "| name | default | what |", "|---|---|---|"]
    for rewrite in rewrites():
        default = "on" if rewrite.default else "off"
        parts.append(f"| [`{rewrite.name}`](#{rewrite.name}) | {default} | {rewrite.title} |")
    for rewrite in rewrites():
        parts += ["", f"## {rewrite.name}", "", f"{rewrite.title}.", "", f"Looks for {_inner(rewrite.pattern)}."]
        parts += ["", rewrite.why]
    return "\n".join(parts) + "\n"


def _inner(text: str) -> str:
    """Without the full stop, which the sentence around it brings."""
    return text.rstrip(".")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
