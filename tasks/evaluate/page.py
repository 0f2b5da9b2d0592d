"""An evaluation as one HTML page."""

from tasks.evaluate.compare import Evaluation
from tasks.evaluate.sections import left_out, sections_of, summary
from tasks.report.page import render


def evaluation_page(evaluation: Evaluation, title: str, warning: str | None = None) -> str:
    """The whole page, with ``warning`` above it."""
    return render(
        "evaluation.html",
        title=title,
        warning=warning,
        evaluation=evaluation,
        summary=summary(evaluation),
        left_out=left_out(evaluation),
        sections=list(sections_of(evaluation)),
    )
