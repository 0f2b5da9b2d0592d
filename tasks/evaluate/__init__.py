"""Compares a synthetic table with the real one, without noise: for public test tables.

The results are not private, so they must not be published with a release of the real records.
``require_public`` refuses tables that a ledger may know as private.
"""

from tasks.evaluate.compare import Evaluation, evaluate
from tasks.evaluate.page import evaluation_page
from tasks.evaluate.public import NOT_FOR_RELEASE, require_public
from tasks.evaluate.tables import TablePair, read_pair
from tasks.evaluate.text import evaluation_text

__all__ = [
    "NOT_FOR_RELEASE",
    "Evaluation",
    "TablePair",
    "evaluate",
    "evaluation_page",
    "evaluation_text",
    "read_pair",
    "require_public",
]
