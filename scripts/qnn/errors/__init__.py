"""Every error a user can meet, one module a kind; each kind has its own exit code (see base.ExitCode).

Ids: QF0xx/QF1xx model YAML (rules in qnn.model.rules) · QF2xx chips · QF3xx sources · QF4xx graphs ·
QF5xx toolchain · QF6xx read-back and verify gates · QF7xx bundles · QF8xx model code · QF9xx this machine.
"""

from qnn.errors.base import ExitCode, ForgeError, Place

__all__ = ["ExitCode", "ForgeError", "Place"]
