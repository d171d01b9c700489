"""The conformance kit: test vectors for every client, and the examination of one."""

from sfumato.conformance.examine import FILES, Case, Failure, FileResult, examine, read_cases

__all__ = ["FILES", "Case", "Failure", "FileResult", "examine", "read_cases"]
