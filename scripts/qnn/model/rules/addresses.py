"""Rules of the form of addresses and pins. The patterns are the schema's; here is what to say when they fail."""

from __future__ import annotations

import re
from abc import abstractmethod

from qnn.model.rules.base import Rule
from qnn.model.text import short


class AddressRule(Rule):
    """A rule that the schema ties to a pattern by `x-rule`."""

    @classmethod
    @abstractmethod
    def explain(cls, value: str) -> tuple[str, str]:
        """The message and the remedy for a text that does not fit the pattern."""


class PypiAddress(AddressRule):
    """What: The address of a PyPI source is not `name==version`.

    Why: Any other version specifier lets the file change from one day to the next. Extras, markers and addresses
    have no meaning for a source: only the package's own file is taken.

    Mend: Write the name and one exact version: `rapidocr-onnxruntime==1.4.4`.
    """

    id = "QF109"
    title = "a PyPI source that is not name==version"

    @classmethod
    def explain(cls, value: str) -> tuple[str, str]:
        return f'"{short(value)}" is not name==version', "name one exact version, without spaces, extras or ranges"


class HubAddress(AddressRule):
    """What: The address of a Hugging Face source is not `owner/repository@commit` with the full 40-digit commit.

    Why: A branch such as `main`, and a tag, can be moved to other weights. A short commit can become ambiguous.

    Mend: Open the repository's "Files" page, choose History, and copy the full commit.
    """

    id = "QF110"
    title = "a Hugging Face source without a full commit"

    @classmethod
    def explain(cls, value: str) -> tuple[str, str]:
        repository, at, revision = value.partition("@")
        remedy = "write owner/repository@ and the 40 hex digits of the commit"
        if not at:
            return f'"{short(value)}" names no commit', remedy
        if re.fullmatch(r"[0-9a-fA-F]{4,40}", revision):
            return f'"{short(revision)}" is not the full commit in lower case', remedy
        if repository.count("/") == 1:
            return f'"{short(revision)}" is a branch or a tag, which can move', remedy
        return f'"{short(value)}" is not owner/repository@commit', remedy


class UrlAddress(AddressRule):
    """What: The address of a URL source is not a plain https address of a file.

    Why: Without TLS anyone between can change the file. A user name or token in the address would be published with
    the model.yaml.

    Mend: Use the https:// address, without user name, spaces or fragment.
    """

    id = "QF111"
    title = "a URL source that is not https"

    @classmethod
    def explain(cls, value: str) -> tuple[str, str]:
        scheme, _, rest = value.partition("://")
        if scheme.lower() != "https":
            return f'"{short(value)}" does not start with https://', "use the https address"
        if "@" in rest.partition("/")[0]:
            return "the address holds a user name", "use an address that needs none"
        return f'"{short(value)}" is not the address of a file', "write https://host/path without spaces or #"


class GithubAddress(AddressRule):
    """What: The address of a GitHub source is not `owner/repository@tag/asset`, or its tag is one that moves, such
    as `latest` or `nightly`.

    Why: Behind a moving tag the asset changes, and the build breaks or, worse, does not.

    Mend: Name the release's own tag, such as `v1.12.0`, and the file name of the asset.
    """

    id = "QF112"
    title = "a GitHub source without a fixed tag"

    @classmethod
    def explain(cls, value: str) -> tuple[str, str]:
        _, at, rest = value.partition("@")
        tag, slash, _ = rest.rpartition("/")
        if at and slash and re.fullmatch(r"[A-Za-z]+", tag):
            return f'the tag "{short(tag)}" moves', "name the release's own tag, such as v1.2.0"
        return f'"{short(value)}" is not owner/repository@tag/asset', "name the repository, the tag and the asset"


class Requirement(AddressRule):
    """What: An entry of `requires` is not `name==version`.

    Why: data.py and metric.py decide what is measured. With a newer version of what they import the same model could
    pass today and fail tomorrow.

    Mend: Pin one exact version: `pillow==12.0.0`. Ranges, extras, markers, addresses and pip options are not allowed.
    """

    id = "QF113"
    title = "a requirement that is not name==version"

    @classmethod
    def explain(cls, value: str) -> tuple[str, str]:
        return f'"{short(value)}" is not name==version', "pin one exact version, without spaces, extras or ranges"


BY_ID = {rule.id: rule for rule in (PypiAddress, HubAddress, UrlAddress, GithubAddress, Requirement)}
