"""Detect the format of a file from its first bytes."""

import re
import zipfile
from contextlib import suppress
from enum import Enum
from typing import BinaryIO

from sfumato.errors import InvalidTable

__all__ = ["PEEK_SIZE", "FileKind", "detect_kind", "require_workbook"]

PEEK_SIZE = 64  # bytes; enough for every signature below


class FileKind(Enum):
    """The formats that can be read, and the ones that contain them."""

    CSV = "CSV text"
    JSON_LINES = "JSON lines"
    PARQUET = "Parquet file"
    ARROW_FILE = "Arrow file"
    ARROW_STREAM = "Arrow stream"
    ZIP = "zip archive or Excel workbook"
    SPSS = "SPSS file"
    STATA = "Stata file"
    GZIP = "gzip file"
    BZIP2 = "bz2 file"
    ZSTD = "zstd file"


_SIGNATURES = (
    # A Parquet file continues with binary data, and a column may be called PAR1.
    (rb"PAR1(?=.*[\0-\x08\x0e-\x1f]|\Z)", FileKind.PARQUET),
    (rb"ARROW1\0\0", FileKind.ARROW_FILE),
    (rb"\xff{4}...\0", FileKind.ARROW_STREAM),
    (rb"PK(\x03\x04|\x05\x06)", FileKind.ZIP),
    (rb"\$FL[23]@\(#\)", FileKind.SPSS),
    (rb"<stata_dta>", FileKind.STATA),
    (rb"[\x68-\x73][\x01\x02]\x01\0", FileKind.STATA),  # up to Stata 12: version, byte order
    (rb"\x1f\x8b", FileKind.GZIP),
    (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", FileKind.BZIP2),
    (rb"\x28\xb5\x2f\xfd", FileKind.ZSTD),
    (rb'(\xef\xbb\xbf)?\s*\{\s*("|\}|$)', FileKind.JSON_LINES),
)

_AS_CSV = "Save it as CSV"

# Other formats, and what to do with them.
_OTHER_SIGNATURES = (
    (rb"\xff\xfe|\xfe\xff", "UTF-16 text", "Save it as UTF-8"),
    (
        rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an old Excel file (.xls) or a workbook with a password",
        "Save it as .xlsx without a password, or as CSV",
    ),
    (rb"\xfd7zXZ\0", "compressed with xz", "Decompress it, or compress it with gzip"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "Extract the table from it"),
    (
        rb"\0{12}\xc2\xea\x81\x60\xb3\x14\x11\xcf",
        "a SAS file (.sas7bdat)",
        "Export it as CSV, for example with PROC EXPORT",
    ),
    (rb"HEADER RECORD\*{7}LIB", "a SAS transport file", "Export it as CSV"),
    (rb"SQLite format 3\0", "an SQLite database", "Export the table as CSV"),
    (rb"%PDF-", "a PDF document", "Get the table as CSV or .xlsx"),
    (rb"FEA1\0", "a Feather file of version 1", "Write it as Feather version 2, or as Parquet"),
    (rb"Obj\x01", "an Avro file", "Write it as Parquet or CSV"),
    (rb"ORC[\0-\x08\x0e-\x1f\x80-\xff]", "an ORC file", "Write it as Parquet or CSV"),
    (rb"\x89HDF\r\n", "an HDF5 file", "Write it as Parquet or CSV"),
    (rb"(RDX[23]\n)?X\n\0\0\0", "an R data file", "Write it with write.csv"),
    (
        rb'(\xef\xbb\xbf)?\s*\[\s*([\[\{"\]]|$)',
        "a JSON array",
        "It must be JSON lines, one object per line",
    ),
    (rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype html|html|\?xml|table)\b", "HTML or XML", _AS_CSV),
)


def detect_kind(name: str, first_bytes: bytes) -> FileKind:
    """Return the format of a file. Raise an error for a format that cannot be read."""
    for pattern, kind in _SIGNATURES:
        if re.match(pattern, first_bytes, re.DOTALL):
            return kind
    for pattern, format_name, advice in _OTHER_SIGNATURES:
        if re.match(pattern, first_bytes, re.DOTALL):
            raise _unreadable(name, format_name, advice)
    if b"\0" in first_bytes:
        if _is_utf16(first_bytes):
            raise _unreadable(name, "UTF-16 text", "Save it as UTF-8")
        raise InvalidTable(
            f"{name} is neither UTF-8 text nor in another format that can be read. {_AS_CSV}."
        )
    return FileKind.CSV


def _unreadable(name: str, format_name: str, advice: str) -> InvalidTable:
    return InvalidTable(f"{name} is {format_name}, which cannot be read. {advice}.")


def _is_utf16(first_bytes: bytes) -> bool:
    """Whether every other byte is zero, as in Latin text without a byte-order mark."""
    even = first_bytes[0::2]
    odd = first_bytes[1::2]
    return not any(even) or not any(odd)


def require_workbook(name: str, file: BinaryIO) -> None:
    """Raise an error if a zip archive is not an Excel workbook (.xlsx). The file is seekable."""
    members: set[str] = set()
    with suppress(zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        members.update(zipfile.ZipFile(file).namelist())
    if not members:
        raise InvalidTable(f"{name} is not a valid zip file or workbook (truncated or corrupt).")
    file.seek(0)
    if "xl/workbook.xml" in members:
        return
    if "xl/workbook.bin" in members:
        raise _unreadable(name, "a binary workbook (.xlsb)", "Save it as .xlsx")
    if "content.xml" in members:
        raise _unreadable(name, "an OpenDocument file (.ods)", "Save it as .xlsx or CSV")
    if "word/document.xml" in members:
        raise _unreadable(name, "a Word document", "Get the table as CSV or .xlsx")
    raise _unreadable(name, "a zip archive", "Extract the table from it")
