"""The conformance kit: what every client must answer, and a way to ask one."""

from sfumato.conformance.vectors import file_bytes, write_vectors

__all__ = ["file_bytes", "write_vectors"]
