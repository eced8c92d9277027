"""What GitHub makes of Markdown: cmark-gfm with GitHub's extensions, then the patterns GitHub looks for in texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

# Mentions, issue references, emoji codes, bare addresses and mathematics, each within one text node.
_ACTS = re.compile(
    r"@[\w-]|(?:#|GH-)\d|:[\w+-]+:|(?:https?|ftp|mailto|xmpp):\S|www\.\S|[\w.+-]+@[\w-]+\.|\$\S", re.IGNORECASE
)
_VOID = {"br", "hr", "img", "input"}


@dataclass
class Rendered(HTMLParser):
    """A rendered text: its whole text, its tags in order, its links, and text nodes that GitHub would act on."""

    text: str = ""
    tags: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    acting: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=False)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "a":
            self.links.append(str(dict(attributes).get("href")))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data
        # GitHub leaves what is in code alone.
        if not {"code", "pre", "a"} & set(self.open) and _ACTS.search(data):
            self.acting.append(data)

    def handle_entityref(self, name: str) -> None:
        self.text += {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}[name]

    def handle_charref(self, name: str) -> None:
        self.text += chr(int(name[1:], 16) if name[0] in "xX" else int(name))

    def handle_comment(self, data: str) -> None:
        self.tags.append(f"<!--{data}-->")


def render(markdown: str) -> Rendered:
    """Markdown as GitHub's parser renders it, raw HTML kept."""
    html = cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    rendered = Rendered()
    rendered.feed(html)
    rendered.close()
    rendered.unbalanced += rendered.open
    return rendered
