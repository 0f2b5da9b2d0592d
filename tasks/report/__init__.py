"""``report.html``: the contents of a release, its errors and its privacy guarantee, for people.

One file that needs no network and no script.  It is written from the bundle's own tables and
manifest and the ledger's history, all public; the same bundle gives the same bytes.

    svg -> marks -> chart -> bars, band, heat -> counts, density, ... -> release -+
    parts, cells               words, columns, history, audit --------------------+-> page
"""

from tasks.report.findings import findings
from tasks.report.page import REPORT, report_page

__all__ = ["REPORT", "findings", "report_page"]
