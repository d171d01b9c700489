"""The report page: an estimate on one page that works offline."""
