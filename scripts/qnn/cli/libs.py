"""qnn-forge libs: runtime libraries for a chip, from the official packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qnn.cli.console import err, out, print_json
from qnn.cli.options import json_option, store_option

if TYPE_CHECKING:
    from qnn.libs.build import Built, Request
    from qnn.libs.fetch import Depot

_MB = 1_000_000


def _digest(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001 - click's
    if value is not None and (len(value) != 64 or set(value.lower()) - set("0123456789abcdef")):
        raise click.BadParameter("a sha256 has 64 hexadecimal digits")
    return value


@click.command("libs")
@click.option("--soc", "socs", required=True, multiple=True, metavar="NAME", help="The chip; repeat for more.")
@click.option("--os", "os_name", required=True, type=click.Choice(["android", "linux", "windows"]))
@click.option("--arch", type=click.Choice(["aarch64", "x86_64"]), default="aarch64", show_default=True)
@click.option("--toolchain", metavar="QAIRT", help="As 2.51 or 2.50.40.  [default: the installed one, or the newest]")
@click.option("--with", "extras", multiple=True, type=click.Choice(["prepare"]), help="Also what compiles on device.")
@click.option("--out", "folder", type=click.Path(path_type=Path), default=Path(), help="Folder.  [default: .]")
@click.option("--sha256", callback=_digest, metavar="HEX", help="Digest of the package, in place of the known one.")
@click.option(
    "--maven",
    envvar="QNN_FORGE_MAVEN",
    metavar="URL",
    help="Maven repository for Android.  [default: $QNN_FORGE_MAVEN or Maven Central]",
)
@click.option("--allow-4k-pages", is_flag=True, help="Android: accept libraries for devices with 4 KB pages only.")
@click.option("--dry-run", is_flag=True, help="Download and write nothing; say what would be.")
@store_option
@json_option
def libs(  # noqa: PLR0913, PLR0917 - one a click option
    socs: tuple[str, ...],
    os_name: str,
    arch: str,
    toolchain: str | None,
    extras: tuple[str, ...],
    folder: Path,
    sha256: str | None,
    maven: str | None,
    allow_4k_pages: bool,
    dry_run: bool,
    store: Path,
    as_json: bool,
) -> None:
    """Put the runtime libraries for a chip into qnn-libs-<qairt>-<os>-<arch>.tar.gz.

    They come from the onnxruntime-qnn wheel of that platform (Linux, Windows; through pip) or from the AAR
    com.qualcomm.qti:qnn-runtime (Android), are checked as one set, and are for your apps: their licence forbids
    publishing them on their own, and qnn-forge publish refuses them.

    \b
    qnn-forge libs --soc SM8650 --os android --toolchain 2.50
    qnn-forge libs --soc SC8380XP --os windows --out libs
    qnn-forge libs --soc QCS9100 --os linux --with prepare
    """
    from qnn.chips.table import load_table  # noqa: PLC0415 - not needed for --help
    from qnn.libs.build import Request, build_libraries  # noqa: PLC0415
    from qnn.libs.fetch import MAVEN_CENTRAL, Depot  # noqa: PLC0415
    from qnn.libs.packages import Arch, Os, Platform, find_package  # noqa: PLC0415

    platform = Platform(Os(os_name), Arch(arch))
    if platform == Platform(Os.ANDROID, Arch.X86_64):
        raise click.UsageError("there are no QAIRT libraries for Android on x86_64: leave --arch out")
    table = load_table()
    chips = tuple(dict.fromkeys(table.lookup(name) for name in socs))
    package = find_package(platform, toolchain, _installed(), sha256)
    request = Request(platform, chips, package, "prepare" in extras, 4096 if allow_4k_pages else 16384)
    depot = Depot(store / "downloads", maven or MAVEN_CENTRAL)
    if dry_run:
        _foretell(request, depot, folder, as_json=as_json)
        return
    if not depot.holds(package):
        size = f" ({package.size / _MB:.0f} MB)" if package.size else ""
        err().print(f"downloading {package}{size}", markup=False)
    built = build_libraries(request, depot, folder)
    if as_json:
        print_json(_document(built))
    else:
        _print(built)


def _installed() -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("onnxruntime-qnn")
    except PackageNotFoundError:
        return None


def _foretell(request: Request, depot: Depot, folder: Path, *, as_json: bool) -> None:
    from qnn.libs.build import chips_label  # noqa: PLC0415
    from qnn.libs.manifest import archive_name, notes  # noqa: PLC0415

    package, held = request.package, depot.holds(request.package)
    target = folder / f"{archive_name(package, request.platform)}.tar.gz"
    remarks = notes(request.platform, package, None)
    if as_json:
        print_json(
            {
                "schema": 1,
                "dry_run": True,
                "archive": str(target),
                "package": str(package),
                "qairt": package.qairt,
                "sha256": package.sha256,
                "downloaded": held,
                "chips": [chip.name for chip in request.chips],
                "notes": list(remarks),
            }
        )
        return
    console = out()
    console.print(f"would write {target} for {chips_label(request.chips)}", markup=False)
    console.print(f"from {package}, {'downloaded already' if held else 'still to be downloaded'}", markup=False)
    console.print(f"sha256 {package.sha256 or 'not known; the repository checksum would be used'}", markup=False)
    for remark in remarks:
        console.print(f"note: {remark}", markup=False)


def _document(built: Built) -> dict[str, object]:
    from qnn.libs.manifest import document  # noqa: PLC0415

    archive = {"path": str(built.archive), "sha256": built.sha256, "size": built.size, "written": built.fresh}
    return {"schema": 1, "archive": archive, "manifest": document(built.made)}


def _print(built: Built) -> None:
    from qnn.libs.build import chips_label  # noqa: PLC0415
    from qnn.libs.manifest import TERMS, notes  # noqa: PLC0415

    console, made = out(), built.made
    state = "" if built.fresh else ", unchanged"
    console.print(f"{built.archive}  {built.size / _MB:.1f} MB{state}", markup=False)
    console.print(f"  sha256 {built.sha256}", markup=False)
    console.print(f"  QAIRT {made.build_id}, {made.platform}, {chips_label(made.chips)}", markup=False)
    console.print(f"  from {made.package}, held against: {made.assurance}", markup=False)
    for file in made.files:
        console.print(f"  {file.wanted.target}  {file.size} bytes", markup=False)
    for name, who in made.outside:
        if not name.lower().startswith(("api-ms-win-", "ext-ms-win-")):
            console.print(f"  needs {name} from {who}", markup=False)
    for remark in (*notes(made.platform, made.package, made.assurance), TERMS):
        console.print(f"note: {remark}", markup=False)
