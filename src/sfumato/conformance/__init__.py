"""The conformance kit: test vectors that every client must answer, and the examination of one."""

from sfumato.conformance.examine import Failure, FileResult, examine
from sfumato.conformance.vectors import FILES, Case, read_cases

__all__ = ["FILES", "Case", "Failure", "FileResult", "examine", "read_cases"]
