"""Faults of the HTP configuration files for the full SDK's tools."""

from qnn.errors.base import ExitCode, ForgeError


class InvalidHtpOption(ForgeError):
    """What: An option of `qnn-forge htp-config` does not exist, has a value of the wrong kind, or asks of the chip what
    it does not have.

    Why: The SDK's tools ignore keys they do not know and accept impossible values (16 MB of VTCM compile for a chip
    with 2 MB), so a mistake here would only show on the device, as a slow or refused binary.

    Mend: Use an option and a value of the list in the message (`qnn-forge htp-config --help` has all of them).
    """

    id = "QF520"
    title = "an HTP option is wrong"
    exit_code = ExitCode.TOOLCHAIN


class UnknownGraphName(ForgeError):
    """What: A graph name was given that the model or context binary does not have, or no name, or one name twice.

    Why: In the HTP configuration a graph name that matches nothing is silently ignored: the graph is compiled with
    defaults (4 MB of VTCM with older SDKs), and nothing says so.

    Mend: Use one of the names in the message. The SDK's converter names a graph after the ONNX file, with every
    character that is not a letter, digit or underscore replaced by an underscore; `qnn-forge inspect` shows the names
    in a context binary.
    """

    id = "QF521"
    title = "a graph name matches no graph"
    exit_code = ExitCode.TOOLCHAIN


class InvalidHtpConfig(ForgeError):
    """What: An HTP configuration document does not follow the schema: a misspelt or misplaced key, or a value of the
    wrong type.

    Why: The SDK's tools ignore what they do not understand, so qnn-forge checks every document against schemas of its
    own (scripts/qnn/toolchains/htp_config.schema.json and htp_backend_extensions.schema.json).

    Mend: Correct the keys named in the message. If qnn-forge wrote the document itself, this is a defect: report it.
    """

    id = "QF522"
    title = "an HTP configuration does not follow its schema"
    exit_code = ExitCode.TOOLCHAIN
