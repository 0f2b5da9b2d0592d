"""``report.html`` shows people what a release contains, its errors and its privacy guarantee.

The file needs no network and no script. It is written from the bundle's tables and manifest and from
the ledger's history, all of which are public. The same bundle gives the same bytes.

    svg -> marks -> chart -> bars, band, heat -> counts, density, ... -> release -+
    parts, cells               words, columns, history, audit --------------------+-> page
"""

from tasks.report.findings import findings
from tasks.report.page import REPORT, report_page

__all__ = ["REPORT", "findings", "report_page"]
