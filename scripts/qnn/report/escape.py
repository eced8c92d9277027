"""Text from elsewhere made harmless in GitHub's Markdown. Pure.

One rule for every place (paragraph, table cell, link text, HTML such as <summary>): `escape` gives text that GitHub
shows as it is. Three things act on a text and each is answered:

- Markdown and HTML: every character with a meaning becomes a numeric character reference, which never is markup
  (CommonMark 0.31, section 2.5).
- What GitHub looks for in the finished text (mentions, issue references, emoji codes, bare addresses, mathematics):
  the character each of these needs stands in a <span> of its own, so no text node holds a whole one.
- The eye: controls, line breaks, invisible characters and direction marks are shown as \\n, \\x07, \\u202e; a text
  with right-to-left letters stands in a span of its own direction, so it cannot reorder what is round it.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

# Shown instead of what a text has beyond its limit.
ELLIPSIS = "…"
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Controls, formats (direction marks, zero width), surrogates, private use, unassigned, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_RIGHT_TO_LEFT = frozenset({"R", "AL"})
_MEANING = frozenset('\\`*_{}[]<>!|~&"#^')
# A text that begins like a list item, a rule, a heading underline or a quotation.
_STARTS_BLOCK = re.compile(r"\d{1,9}(?=[.)])|(?=[-+=>])")
# @x · #1 · a:// and :emoji: (a colon with something after it) · $ · www. · GH-1
_BREAKS = re.compile(r"@|\$|#(?=\w)|:(?=\S)|(?<=[wW])\.|(?<=[gG][hH])-")
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9._~:/?#%&=+,;@-]{1,2000}")


def visible(text: str) -> str:
    """The text in one line with everything that does not show spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(char) if unicodedata.category(char) in _HIDDEN else char for char in text)


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, the last one an ellipsis when something is left out."""
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def escape(text: str) -> str:
    """The text as GitHub Markdown that shows just `visible(text)`, wherever it stands within a line."""
    shown = visible(text)
    broken = {match.start() for match in _BREAKS.finditer(shown)}
    start = _STARTS_BLOCK.match(shown)
    guarded = None if start is None else start.end()
    parts = [
        f"<span>{_reference(char)}</span>"
        if index in broken
        else _reference(char)
        if index == guarded or char in _MEANING or _odd_space(shown, index)
        else char
        for index, char in enumerate(shown)
    ]
    safe = "".join(parts)
    if any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in shown):
        return f'<span dir="auto">{safe}</span>'
    return safe


def code(text: str) -> str:
    """The text as a name: in code type, harmless everywhere. Nothing for an empty text."""
    return f"<code>{escape(text)}</code>" if text else ""


def link(label: str, url: str | None) -> str:
    """Markdown that already is safe as a link, when the address is a plain http(s) one; else the label alone."""
    if url is None or not safe_url(url):
        return label
    return f'<a href="{url.replace("&", "&amp;")}">{label}</a>'


def safe_url(url: str) -> bool:
    """Whether an address can stand in href as it is: http or https, no blank, quote, bracket or backslash."""
    return _PLAIN_URL.fullmatch(url) is not None


def url_path(path: str) -> str:
    """A path as part of an address."""
    return quote(path, safe="/", errors="replace")


def fence(lines: list[str], language: str) -> str:
    """A code block of the lines, each made visible; its fence is longer than any the lines hold."""
    body = "\n".join(visible(line) for line in lines)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{body}\n{marks}"


def _spelled(char: str) -> str:
    number = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _reference(char: str) -> str:
    return f"&#{ord(char)};"


def _odd_space(text: str, index: int) -> bool:
    """A blank that Markdown would strip or join: at an end, beside another, or not the plain one."""
    char = text[index]
    if not char.isspace():
        return False
    return char != " " or index in (0, len(text) - 1) or text[index - 1] == " "
