"""Rules of what a model is: its name, its licence, where it may be published."""

from __future__ import annotations

import os
from collections.abc import Iterator

from qnn.errors.model import Kind, Problem
from qnn.model.licences import restriction
from qnn.model.nearest import suggest
from qnn.model.rules.base import Rule
from qnn.model.rules.subject import Subject
from qnn.model.text import short

# The licences that weights usually have, to suggest one and to spare the import of packaging's SPDX list (5 ms), which
# decides on all others. A test holds these to that list.
USUAL = (
    "Apache-2.0",
    "MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC-BY-4.0",
    "CC-BY-NC-4.0",
    "CC-BY-SA-4.0",
    "CC-BY-NC-SA-4.0",
    "CC0-1.0",
    "GPL-3.0-only",
    "GPL-3.0-or-later",
    "LGPL-3.0-only",
    "LGPL-3.0-or-later",
    "AGPL-3.0-only",
    "MPL-2.0",
    "ISC",
    "Unlicense",
)


class NameIsFolder(Rule):
    """What: `name` is not the name of the folder that model.yaml stands in.

    Why: The command line, the pull request checks and the index find a model by its folder. With two names for one
    model, one of them is wrong somewhere.

    Mend: Rename the folder or change `name`.
    """

    id = "QF102"
    title = "the name is not the folder's"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        name, folder = subject.text("name"), os.path.basename(os.path.realpath(subject.folder))
        if name is not None and name != folder:
            message = f'name is "{short(name)}" but the folder is "{short(folder)}"'
            yield cls.problem(subject.at_value("name"), message, "rename one of them")


class KnownLicence(Rule):
    """What: `licence.spdx` is not an SPDX licence expression, or not in its official spelling.

    Why: Bundles, manifests and the index state the licence by this expression; tools and lawyers look it up.

    Mend: Take the identifier from https://spdx.org/licenses/. Several are joined by AND or OR. A licence that SPDX
    does not list is `LicenseRef-NAME` with its `text`. If there is none at all, give a `reason` instead.
    """

    id = "QF103"
    title = "not an SPDX licence"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        spdx = subject.text("licence", "spdx")
        if not spdx or spdx in USUAL:
            return
        from packaging.licenses import (  # noqa: PLC0415 - start-up
            InvalidLicenseExpression,
            canonicalize_license_expression,
        )

        place = subject.at_value("licence", "spdx")
        try:
            official = canonicalize_license_expression(spdx)
        except InvalidLicenseExpression:
            remedy = suggest(spdx.replace(" ", "-"), USUAL, "take the identifier from https://spdx.org/licenses/")
            yield cls.problem(place, f'"{short(spdx)}" is not an SPDX licence expression', remedy)
            return
        if official != spdx:
            yield cls.problem(place, f'"{short(spdx)}" is spelt otherwise in SPDX', f'write "{short(official)}"')


class LicenceForPublishing(Rule):
    """What: The model is to be published, but its licence has no SPDX expression, or one of its own
    (`LicenseRef-…`) without a text.

    Why: Publishing hands the weights to others. Without a licence that says so, nobody may, and those who take them
    could not know what they may do.

    Mend: Find the licence of the weights and name it, or delete `publish`. The model can be built without it.
    """

    id = "QF116"
    title = "published without a licence"

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        if not _published(subject):
            return
        place = subject.at_key("publish")
        if subject.has("licence", "reason") and not subject.has("licence", "spdx"):
            message = "the model is to be published, but no licence allows it"
            yield cls.problem(place, message, "name the licence of the weights, or delete publish")
        own = "LicenseRef-" in (subject.text("licence", "spdx") or "")
        if own and not subject.has("licence", "text"):
            message = "the model is to be published under a licence that only it has, without the licence's text"
            yield cls.problem(place, message, "add the text as a source and name it in licence.text")


class LicenceTextForPublishing(Rule):
    """What: The model is to be published, but `licence.text` names no source with the licence's text.

    Why: Most licences, MIT and Apache-2.0 among them, ask that their text goes along with every copy. A bundle is a
    copy.

    Mend: Add the licence file as a source and name it in `licence.text`.
    """

    id = "QF117"
    title = "published without the licence's text"
    kind = Kind.HINT

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        spdx = subject.text("licence", "spdx")
        if _published(subject) and spdx and "LicenseRef-" not in spdx and not subject.has("licence", "text"):
            message = f"{short(spdx)} asks that its text goes along, and licence.text names none"
            yield cls.problem(subject.at_key("licence"), message, "add the text as a source and name it there")


class RestrictedLicence(Rule):
    """What: The licence of the weights forbids commercial use or changed versions, or asks for the source of services
    (AGPL).

    Why: Whoever takes such a model for one like the others may break its licence without knowing. So `qnn-forge build`
    and `qnn-forge plan` leave it out, and CI does, unless `--allow-restricted` is given.

    Mend: Look for the same task under a free licence. If there is none, keep the model and skip this hint with the
    reason why it is worth having.
    """

    id = "QF157"
    title = "a licence that restricts use"
    kind = Kind.HINT

    @classmethod
    def check(cls, subject: Subject) -> Iterator[Problem]:
        found = restriction(subject.text("licence", "spdx"))
        if found:
            place = subject.at_value("licence", "spdx")
            yield cls.problem(place, found, "it is built with --allow-restricted only")


def _published(subject: Subject) -> bool:
    return subject.value("publish", "github") is True or subject.text("publish", "huggingface") is not None
