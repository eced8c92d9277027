"""Any text appears as it is and does nothing, in every place a report puts one."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from qnn.report.escape import clip, code, escape, fence, link, safe_url, url_path, visible
from tests.report.rendered import Rendered, render

HOSTILE = [
    "@everyone", "a@b.co", "#1", "GH-1", "gh-77", "org/repo#5", "org/repo@deadbeef1", "https://evil.example/?a=1",
    "www.evil.example", "ftp://evil.example", "mailto:a@b.co", "[x](https://evil.example)", "![x](https://evil.example/p)",
    "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "</details></summary>", "<!-- x -->",
    "<!-- qnn-forge report -->", "`code`", "``", "```\nfence\n```", "~~~", "a|b", "\\|", "a\\", "**bold**", "_it_",
    "~~gone~~", "# heading", "- item", "+ item", "* item", "1. item", "1) item", "> quote", "---", "===", ":tada:",
    "&lt;b&gt;", "&#64;x", "&copy", "$x$", "$$x$$", "[^1]", "[ ] task", "    code", "\tcode", "a  b", " a ", "a\n\nb",
    "a\r\nb", "\x00", "\x1b[31mred", "\u202eevil\u202c", "\u2066x\u2069", "a\u200bb", "\ufeff", "שלום", "مرحبا (1)",
    "\ud800", "🇩🇪👍🏽", "$(rm -rf ~)", "`id`; echo", "'; DROP", '" onload="x', "::error::x", "${{ github.token }}",
    "%0A", "日本語", "",
]  # fmt: skip

anything = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=40),
    st.text(alphabet="@#:$`|\\<>[]()!*_~&-+=.w/ gGhH1aA\n\"'", max_size=30),
)


def plain(rendered: Rendered, *allowed: str) -> None:
    """Nothing but the tags named, no links, nothing GitHub would act on, nothing left open."""
    assert set(rendered.tags) <= {"p", "span", *allowed}
    assert rendered.links == []
    assert rendered.acting == []
    assert rendered.unbalanced == []


@given(anything)
def test_a_paragraph_shows_the_text(text: str) -> None:
    rendered = render(escape(text))
    plain(rendered)
    assert rendered.text.removesuffix("\n") == visible(text)


@given(anything)
def test_a_name_is_code_and_shows_the_text(text: str) -> None:
    rendered = render(f"a {code(text)} b")
    plain(rendered, "code")
    assert rendered.text == f"a {visible(text)} b\n"


@given(anything, anything)
def test_a_table_cell_stays_one_cell(one: str, other: str) -> None:
    rendered = render(f"| a | b |\n|---|---|\n| {escape(one)} | {code(other)} |")
    plain(rendered, "table", "thead", "tbody", "tr", "th", "td", "code")
    assert rendered.tags.count("td") == 2
    assert rendered.tags.count("tr") == 2
    # Cells are trimmed round what stands in them, and an entity is no blank.
    assert visible(one) in rendered.text
    assert visible(other) in rendered.text


@given(anything)
def test_a_summary_stays_one_summary(text: str) -> None:
    rendered = render(f"<details><summary>❌ <b>{code(text)}</b>: x {escape(text)}</summary>\n\n*body*\n\n</details>\n")
    plain(rendered, "details", "summary", "b", "code", "em")
    assert rendered.tags.count("em") == 1
    assert f"❌ {visible(text)}: x {visible(text)}\n" in rendered.text


@given(anything)
def test_a_list_item_and_a_quotation_stay_what_they_are(text: str) -> None:
    rendered = render(f"- {escape(text)}\n\n> {escape(text)}\n>\n> - {escape(text)}\n")
    plain(rendered, "ul", "li", "blockquote")
    assert rendered.tags.count("li") == 2


@given(anything)
def test_another_parser_agrees(text: str) -> None:
    rendered = Rendered()
    rendered.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(f"x {escape(text)} y"))
    rendered.close()
    plain(rendered)
    assert rendered.text == f"x {visible(text)} y\n"


@given(st.lists(anything, min_size=1, max_size=3))
def test_a_code_block_shows_its_lines(lines: list[str]) -> None:
    rendered = render(f"{fence(lines, 'sh')}\n\nafter")
    plain(rendered, "pre", "code")
    assert rendered.text == "\n".join(map(visible, lines)) + "\n\nafter\n"
    assert rendered.tags == ["pre", "code", "p"]


@given(anything)
@example("a b'c")
def test_a_command_comes_back_from_a_shell_as_it_was(text: str) -> None:
    shown = visible(text)
    assert shlex.split(shlex.join(["qnn-forge", "build", shown])) == ["qnn-forge", "build", shown]


@given(st.text())
def test_visible_text_is_one_line_that_prints_and_encodes(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    shown.encode()
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\t", "a\\nb\\r\\t"),
        ("\x00\x7f", "\\x00\\x7f"),
        ("\u202e\u200b\ufeff", "\\u202e\\u200b\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
        ("שלום é 日本", "שלום é 日本"),
    ],
)
def test_what_does_not_show_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_plain_words_stay_readable() -> None:
    text = "silero-vad-6.2.3 vad: cosine 0.99 is below 0.999 (worst of 16), see docs/verification.md"
    assert escape(text) == text


def test_letters_from_right_to_left_keep_to_themselves() -> None:
    assert escape("שלום") == '<span dir="auto">שלום</span>'


def test_an_empty_name_is_nothing() -> None:
    assert code("") == ""


def test_clip() -> None:
    assert clip("abc", 3) == "abc"
    assert clip("abcd", 3) == "ab…"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)", "data:text/html,x", "https://a b", 'https://a"onclick="x', "https://a<b>", "//a.b", "",
        "https://a)b", "https://a\nb", "https://a\\b", "https://a`b", "HTTPS://A", "https://",
    ],
)  # fmt: skip
def test_an_odd_address_is_no_link(url: str) -> None:
    assert not safe_url(url)
    assert link("x", url) == "x"


def test_a_plain_address_is_a_link() -> None:
    assert link("x", "https://github.com/o/r?a=1&b=2") == '<a href="https://github.com/o/r?a=1&amp;b=2">x</a>'
    assert link("x", None) == "x"


def test_a_path_in_an_address() -> None:
    assert url_path("models/a b/ü).yaml") == "models/a%20b/%C3%BC%29.yaml"
