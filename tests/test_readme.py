"""The README stays true: its commands exist, its links lead somewhere, its model is the one in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
import yaml

from qnn.cli import cli

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def code_of(page: Path, program: str) -> list[str]:
    """What follows the program's name in code spans, and in blocks at a line's start or after a prompt."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"(?:`|^\$ |^    ){program} ([^`\n|#]+)", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_options_exist(page: Path) -> None:
    context = click.Context(cli)
    for line in code_of(page, "qnn-forge"):
        words = line.split()
        if words[0].startswith("-"):
            continue
        command = cli.get_command(context, words[0])
        assert command is not None, line
        if isinstance(command, click.Group) and len(words) > 1:
            command = command.get_command(context, words[1].split("|")[0]) or command
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        used = {word.strip("'\",.;:)").partition("=")[0] for word in words if word.startswith("--")}
        assert used <= known, line


def test_makefile_has_the_quick_start_s_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [words.split()[0] for words in code_of(ROOT / "README.md", "make")]
    assert {"build", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_model_shown_is_the_model_built() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    document = yaml.safe_load(shown.replace(", …}", "}"))
    real = yaml.safe_load((ROOT / "models" / "silero-vad" / "model.yaml").read_text(encoding="utf-8"))
    for key in ("name", "version", "summary", "task", "licence", "graphs", "precisions", "targets"):
        assert document[key] == real[key], key
    assert document["sources"]["weights"] == real["sources"]["weights"]
    assert document["checks"]["metrics"] == real["checks"]["metrics"]
