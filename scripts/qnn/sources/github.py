"""Assets of GitHub releases, over the same https code as any URL."""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from qnn.errors.sources import AddressUnusable
from qnn.model.spec import Source
from qnn.sources.https import Credential, download
from qnn.sources.protocol import Order, describe
from qnn.sources.shelf import Shelved

_LOCATOR = re.compile(
    r"(?P<owner>[A-Za-z0-9][A-Za-z0-9-]*)/(?P<repo>[A-Za-z0-9._-]+)@(?P<tag>[^\s@\\]+)/(?P<asset>[^\s/\\]+)"
)
# A release download redirects to a storage host with a signed address: the token is for these two only.
_TOKEN_HOSTS = frozenset({"github.com", "api.github.com"})


class GithubFetcher:
    """`github: owner/repo@tag/asset`. GITHUB_TOKEN in the environment is sent to GitHub itself, to nobody else."""

    def address(self, source: Source) -> str:
        """The asset's URL, so that a `url` source of the same asset is the same download. Raises AddressUnusable."""
        return f"url:{_url(source)}"

    def obtain(self, order: Order) -> Shelved:
        """The release asset; asked for again by ETag if it is in the slot already: assets can be replaced."""
        token = os.environ.get("GITHUB_TOKEN", "").strip()
        credential = Credential(f"Bearer {token}", _TOKEN_HOSTS) if token else None
        return download(order, _url(order.source), credential)


def _url(source: Source) -> str:
    found = _LOCATOR.fullmatch(source.locator)
    if found is None or {".", "..", ""} & {found["repo"], *found["tag"].split("/"), found["asset"]}:
        raise AddressUnusable(
            f"{describe(source)}: the address is not of the form owner/repo@tag/asset",
            remedy="name the release's tag and the asset's file name, as in owner/repo@v1.0/model.onnx",
        )
    tag, asset = quote(found["tag"], safe="/"), quote(found["asset"], safe="")
    return f"https://github.com/{found['owner']}/{found['repo']}/releases/download/{tag}/{asset}"
