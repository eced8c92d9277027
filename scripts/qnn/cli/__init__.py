"""The command line. A command's module is imported only when that command is called, so start-up stays short."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import traceback
from pathlib import Path

import click

from qnn import __version__
from qnn.cli.console import print_error
from qnn.errors.base import ExitCode, ForgeError
from qnn.errors.system import InternalFault, from_os_error

# command → (module:attribute, one line of help). The help stands here so that `qnn-forge --help` imports nothing.
_COMMANDS = {
    "build": ("qnn.cli.build:build", "Build verified bundles for chips from models."),
    "device": ("qnn.cli.device:device", "Check bundles on a phone, through adb."),
    "doctor": ("qnn.cli.doctor:doctor", "Say what can be done on this machine and what is in the way."),
    "explain": ("qnn.cli.explain:explain", "Explain an error or lint id (QFnnn)."),
    "faults": ("qnn.cli.faults:faults", "List, show and measure the known faults of the compiler."),
    "hints": ("qnn.cli.hints:hints", "Say what would make graphs faster on the NPU."),
    "htp-config": ("qnn.cli.htp_config:htp_config", "Write the HTP configuration files for a chip."),
    "info": ("qnn.cli.info:info", "Say what the index has of a model."),
    "inspect": ("qnn.cli.inspect:inspect", "Say what a context binary holds."),
    "libs": ("qnn.cli.libs:libs", "Put together the runtime libraries for a chip."),
    "lint": ("qnn.cli.lint:lint", "Check model YAML files and report every problem."),
    "localize": ("qnn.cli.localize:localize", "Find the first wrong tensor of a graph, and the node to blame."),
    "pin": ("qnn.cli.pin:pin", "Fill in sha256 and size of a model's sources."),
    "plan": ("qnn.cli.plan:plan", "Say what would be built, why, and what it costs."),
    "prepare": ("qnn.cli.prepare:prepare", "Make ready what does not depend on the chip."),
    "provenance": ("qnn.cli.provenance:provenance", "Write what an attestation of bundles says."),
    "publish": ("qnn.cli.publish:publish", "Publish the bundles of a build."),
    "pull": ("qnn.cli.pull:pull", "Get the one published bundle that loads on a chip."),
    "range": ("qnn.cli.range:range_", "Say what leaves fp16's range and whether it does harm."),
    "report": ("qnn.cli.report:report", "Report results as a step summary, a comment or JSON."),
    "search": ("qnn.cli.search:search", "Find models in the index."),
    "soc": ("qnn.cli.soc:soc", "List, show and check the chips of the chip table."),
    "store": ("qnn.cli.store:store", "Look at, prune, check and carry the store of stage outputs."),
    "verify": ("qnn.cli.verify:verify", "Check a bundle again, from nothing but itself."),
    "yank": ("qnn.cli.publish:yank", "Withdraw published files in the index."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(_COMMANDS.items())])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib  # noqa: PLC0415 - only a mistyped command needs it

        name = args[0]
        if not name.startswith("-") and name not in _COMMANDS:
            near = difflib.get_close_matches(name, _COMMANDS, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{name}'.{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="qnn-forge")
def cli() -> None:
    """Make verified Hexagon (HTP) context binaries for Snapdragon chips, each from one model YAML.

    \b
    Exit codes: 0 done · 2 usage · 3 model YAML · 4 chip · 5 source · 6 graph · 7 toolchain · 8 gate ·
    9 bundle · 10 model code · 11 machine · 12 publishing · 13 device · 20 to 22 what pull decided
    """


def main() -> None:
    """Entry point: every ForgeError becomes its message and its exit code; nobody sees a traceback."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line; returns the exit code."""
    try:
        result = cli.main(arguments, prog_name="qnn-forge", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted; what was finished is kept, the same command goes on from there", err=True)
        return int(ExitCode.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        return int(ExitCode.USAGE)
    except BrokenPipeError:
        # The reader (head, less) went away: that is no fault of ours, and Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except Exception as error:  # noqa: BLE001 - the last line of defence; what is unknown here is a defect, see QF999
        fault = _fault(error)
        print_error(fault)
        return int(fault.exit_code)
    return result if isinstance(result, int) else int(ExitCode.OK)


def _fault(error: Exception) -> ForgeError:
    if isinstance(error, ForgeError):
        return error
    return from_os_error(error) if isinstance(error, OSError) else _internal(error)


def _internal(error: Exception) -> InternalFault:
    with tempfile.NamedTemporaryFile("w", prefix="qnn-forge-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    return InternalFault(
        f"{type(error).__name__}: {error}",
        remedy="report it with the log and the command you ran",
        log=Path(log.name),
    )
