"""Pages: an estimate as something to look at. One file each, without a single outside address."""

from sfumato.pages.report.page import report_page

__all__ = ["report_page"]
