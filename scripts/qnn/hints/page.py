"""docs/hints.md, made from the rules: `python -m qnn.hints.page docs/hints.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from qnn.hints.registry import RULES

_HEAD = """\
# Hints for speed

`qnn-forge hints MODEL` looks at a graph as it is compiled for a chip and says what costs time there and could be
changed. It reads the prepared graph, the QNN operators the compiler made of it (and from which ONNX nodes), the facts
in the binary, and the samples. Hints are never errors: exit code 0 whatever is found, and no build waits for them.

```
qnn-forge hints magika
qnn-forge hints ppocr-v4 --soc SM8650 --json > hints.json
qnn-forge report results.json hints.json --format comment
```

Without `--soc` each variant is looked at on one of its chips, a flagship where there is one. Given to `qnn-forge
report` beside the results of a build, the document of `--json` puts the hints into the summary and the comment.

A hint says what was seen, in numbers; it does not say how many milliseconds it costs. The emulator's cycles are not the
chip's time, so nothing here is measured on a device: try a change and measure it on a phone (docs/device.md).

"""


def page() -> str:
    """The page's Markdown."""
    parts = [f"## {rule.id}: {rule.title}\n\n{rule.why}\n\n**What to change:** {rule.change}\n" for rule in RULES]
    index = "".join(f"- [{rule.id}](#{_anchor(f'{rule.id}: {rule.title}')}): {rule.title}\n" for rule in RULES)
    return _HEAD + index + "\n" + "\n".join(parts)


def _anchor(heading: str) -> str:
    """GitHub's anchor of a heading."""
    return "".join(c for c in heading.lower() if c.isalnum() or c in " -").replace(" ", "-")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
