"""Self-contained HTML pages about a run and about a whole reproduction, and the tables and figures on them."""

from ncap.report.overview import write_overview as write_overview
from ncap.report.run_page import write_report as write_report

__all__ = ["write_overview", "write_report"]
