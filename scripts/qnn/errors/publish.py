"""Faults of publishing: bundles that may not go out, targets that refuse them, answers that cannot be trusted."""

from qnn.errors.base import ExitCode, ForgeError


class PublishError(ForgeError):
    """Base of everything that can go wrong while bundles are published; never raised itself."""

    exit_code = ExitCode.PUBLISH


class NothingToPublish(PublishError):
    """What: The folders given hold no bundle archive, or none that may go to this target.

    Why: `qnn-forge build` writes one `NAME.tar.gz` a target into its output folder. A folder without any is usually
    the wrong folder, or a build in which everything failed.

    Mend: Give the output folder of a build. With `--models`, check that a model.yaml names this target under
    `publish`.
    """

    id = "QF750"
    title = "there is nothing to publish"


class NotVerified(PublishError):
    """What: A bundle was never run against the float model, or its own numbers miss its own gates.

    Why: What is published is what was checked. A build with `--verify per-arch` or `none` makes bundles that were not
    run; they are for trying things out.

    Mend: Build with `--verify all` (the default), and publish that.
    """

    id = "QF751"
    title = "a bundle that was not verified"


class LicenceForbids(PublishError):
    """What: The licence of the model does not allow everybody to pass the weights on, or nobody knows whether it does:
    there is none, it is not an SPDX expression, or it is not in the table of licences that allow it.

    Why: Publishing hands the weights to others. Licences that restrict the purpose (CC-BY-NC and its kind), forbid
    changed versions (CC-BY-ND) or have terms of their own (LicenseRef-…) are for a person to judge.

    Mend: Correct `licence.spdx` in model.yaml if it is wrong. Otherwise build for yourself, and leave `publish` out.
    docs/publish.md has the table.
    """

    id = "QF752"
    title = "the licence does not allow redistribution"


class RuntimeLibrary(PublishError):
    """What: A file to be published is, or may be, part of QAIRT: a runtime library, a Stub or Skel, a tool, a package
    of them, or native code whose origin cannot be told.

    Why: The licence of those packages allows distribution in object code only as part of an application, not on its
    own. Nothing that qnn-forge builds holds native code.

    Mend: Remove it from what is to be published; app developers make their own with `qnn-forge libs`. If Qualcomm has
    given you the right in writing, `--i-may-redistribute-qairt` lets it through.
    """

    id = "QF753"
    title = "QAIRT libraries are not published"


class ArchiveDiffers(PublishError):
    """What: An archive is not the one that the build made: its sha256 is not the one in the build's results, its
    manifest is not that of the folder beside it, or it is named for something else than it holds.

    Why: A file that was changed, cut short or mixed up after the build was not checked by anybody.

    Mend: Build again into an empty folder and publish that. Give `--results` the results of the same build.
    """

    id = "QF754"
    title = "an archive is not what was built"


class BeyondLimits(PublishError):
    """What: A file is bigger than the target takes, has a name that the target would change, or there are more files
    than the target takes at once.

    Why: GitHub takes files of under 2 GiB in a release; the Hub takes up to 50 GB, and 25,000 files in a commit.

    Mend: Publish models of this size to the Hub or to a folder, or split the model into graphs of their own.
    """

    id = "QF755"
    title = "more than the target takes"


class TargetForbidden(PublishError):
    """What: The target refuses the token: it is missing, wrong, expired, or lacks the right to write.

    Why: GitHub needs `contents: write` (GH_TOKEN or GITHUB_TOKEN, or `gh auth login`); the Hub needs a token of role
    "write" for the repository (HF_TOKEN or `hf auth login`). GitHub answers 404 to a token that may not even look.

    Mend: Provide a token with that right. In a workflow, give the job `permissions: {contents: write}`.
    """

    id = "QF756"
    title = "the target refuses the token"


class TargetMissing(PublishError):
    """What: The repository does not exist, or the token cannot see it; or no target was named.

    Why: Repositories are not made by publishing: a misspelt name would become a new, public one.

    Mend: Correct the name, or make the repository first.
    """

    id = "QF757"
    title = "the target does not exist"


class TargetLimited(PublishError):
    """What: The target answers "too many requests", and kept doing so or asks for a longer wait than a publish waits.

    Why: GitHub allows about 500 uploads an hour, the Hub a number of requests in five minutes.

    Mend: Run the same command later: it goes on from where it stood, and sends nothing twice.
    """

    id = "QF758"
    title = "the target limits the number of requests"


class TargetFault(PublishError):
    """What: The target did not answer, or answered with an error of its own, several times in a row.

    Why: The service is down or overloaded, or the network is. It was asked again with growing pauses.

    Mend: Run the same command later: it goes on from where it stood. Nothing half-finished is visible to anybody.
    """

    id = "QF759"
    title = "the target failed"


class ReadBackDiffers(PublishError):
    """What: After an upload, the target's own account of a file (size, sha256) is not that of the file that was sent.

    Why: Something between here and there changed or cut the file. Nothing was made visible.

    Mend: Run the same command again; the file is sent anew. If it stays so, look for a proxy that changes uploads.
    """

    id = "QF760"
    title = "an upload did not arrive as it was sent"


class ClientMissing(PublishError):
    """What: The program that publishes to this target is not there or too old.

    Why: GitHub is spoken to through its own command line, `gh` (2.0 or newer), which knows hosts, proxies and logins.

    Mend: Install `gh` from your distribution or https://cli.github.com; on GitHub's runners it is there.
    """

    id = "QF761"
    title = "gh is not installed"


class PublishedMeanwhile(PublishError):
    """What: Somebody else published the same model and version while this was being published, or what is there has
    changed since it was looked at.

    Why: A published file is never replaced, so the second of two publishers has to look again.

    Mend: Run the same command again: it sees what is there now and adds what is new as the next revision.
    """

    id = "QF762"
    title = "published by somebody else meanwhile"


class AnswerNotUnderstood(PublishError):
    """What: The target's answer makes no sense: no JSON, a field that is missing, an unusual status.

    Why: Something between here and the server answers in its place (a captive portal, a mirror), or the server has
    changed.

    Mend: See what answers at the address; check GH_HOST, HF_ENDPOINT and the proxy settings.
    """

    id = "QF763"
    title = "the target's answer cannot be used"


class OccupiedRepository(PublishError):
    """What: The place for this model's files holds files of something else, or a published revision is not as it was
    published.

    Why: On the Hub every model has a repository of its own, with its versions as folders. Publishing two models into
    one would mix their files and their model cards.

    Mend: Give each model its own repository: `publish.huggingface` in its model.yaml, or `--repo 'owner/{model}'`.
    """

    id = "QF764"
    title = "the repository holds something else"
