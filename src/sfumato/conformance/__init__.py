"""The conformance kit: test vectors, and code that tests a client against them."""

from sfumato.conformance.examine import FILES, Case, Failure, FileResult, examine, read_cases

__all__ = ["FILES", "Case", "Failure", "FileResult", "examine", "read_cases"]
