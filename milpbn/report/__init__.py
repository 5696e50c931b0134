"""Reports: a result on one web page that needs neither a network connection nor scripts."""

from milpbn.report.page import report, report_page

__all__ = ["report", "report_page"]
