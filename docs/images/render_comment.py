"""Make docs/images/pr-comment.png: the comment of a real build, as a pull request shows it.

    qnn-forge build --soc SM8550,SM8650 --keep-going --json > build.json
    qnn-forge report build.json --format comment > comment.md
    python docs/images/render_comment.py comment.md docs/images/pr-comment.png speech-embedding

A model named last is shown unfolded, as after a click.
GitHub's own Markdown parser (cmarkgfm, in the extra `dev`) makes the HTML, Chromium (Debian: `apt-get install chromium
fonts-noto-color-emoji`) the picture. The look is ours, near to GitHub's. Not part of the package: only this folder's
picture is made with it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

WIDTH = 960
SCALE = 1.4

PAGE = """<!doctype html>
<meta charset="utf-8">
<style>
* { box-sizing: border-box; }
body { margin: 0; padding: 20px; background: #fff; color: #1f2328;
  font: 14px/1.5 "Liberation Sans", Arial, "Noto Color Emoji", sans-serif; }
.box { border: 1px solid #d1d9e0; border-radius: 6px; overflow: hidden; }
.head { display: flex; align-items: center; gap: 8px; padding: 9px 16px; background: #f6f8fa;
  border-bottom: 1px solid #d1d9e0; color: #59636e; }
.head b { color: #1f2328; }
.face { width: 22px; height: 22px; border-radius: 5px; background: #24292f; color: #fff;
  font: bold 11px/22px sans-serif; text-align: center; }
.bot { border: 1px solid #d1d9e0; border-radius: 2em; padding: 0 7px; font-size: 12px; }
.body { padding: 4px 16px 16px; }
h3 { margin: 16px 0 12px; font-size: 20px; line-height: 1.25; }
p, table, blockquote, pre, details, ul { margin: 0 0 14px; }
a { color: #0969da; text-decoration: none; }
code { padding: .15em .4em; border-radius: 5px; background: #eff1f3;
  font: 12px "DejaVu Sans Mono", "Liberation Mono", monospace; }
a code { color: #0969da; }
pre { padding: 12px 14px; border-radius: 6px; background: #f6f8fa; }
pre code { padding: 0; background: none; }
blockquote { padding: 0 14px; border-left: 4px solid #d1d9e0; color: #59636e; }
blockquote > :last-child { margin-bottom: 0; }
blockquote p { margin-bottom: 4px; }
ul { padding-left: 24px; }
summary { cursor: pointer; }
details[open] > summary { margin-bottom: 12px; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: 5px 11px; border: 1px solid #d1d9e0; white-space: nowrap; }
tbody tr:nth-child(2n) { background: #f6f8fa; }
td:not([align]), th:not([align]) { text-align: left; }
</style>
<div class="box">
<div class="head"><span class="face">qf</span><b>github-actions</b><span class="bot">bot</span>commented just now</div>
<div class="body">BODY</div>
</div>
<script>document.title = document.documentElement.scrollHeight</script>
"""


def html(markdown: str, unfold: str) -> str:
    """The page that shows a comment, with one more model unfolded."""
    folded = re.compile(rf"<details>(<summary>. <b><code>{re.escape(unfold)}</code>)")
    markdown = folded.sub(r"<details open>\1", markdown)
    body = cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    return PAGE.replace("BODY", body)


def chromium(page: Path, profile: Path, *options: str) -> str:
    """What a headless Chromium prints for a page."""
    quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", *quiet, f"--user-data-dir={profile}"]
    done = subprocess.run(
        ["chromium", *fixed, *options, page.as_uri()], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout


def main(markdown: Path, picture: Path, unfold: str = "") -> None:
    """Render a comment's Markdown into a PNG as high as the page."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "comment.html"
        page.write_text(html(markdown.read_text(encoding="utf-8"), unfold), encoding="utf-8")
        dump = chromium(page, Path(folder) / "measure", "--dump-dom", f"--window-size={WIDTH},200")
        found = re.search(r"<title>(\d+)</title>", dump)
        if found is None:
            sys.exit("the page has no height")
        chromium(
            page,
            Path(folder) / "draw",
            f"--screenshot={picture.resolve()}",
            f"--window-size={WIDTH},{found[1]}",
            f"--force-device-scale-factor={SCALE}",
            "--hide-scrollbars",
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
