"""How far a synthetic table is from the real one: for public test tables, or for eyes that may see it.

Everything here reads real records and adds no noise, so nothing of it may be published with a release
of them.  ``require_public`` stands before the rest and refuses what a ledger may know as private.
"""

from tasks.evaluate.compare import Evaluation, evaluate
from tasks.evaluate.picture import evaluation_picture
from tasks.evaluate.public import NOT_FOR_RELEASE, require_public
from tasks.evaluate.sdnist import write_sdnist
from tasks.evaluate.tables import Pair, read_pair
from tasks.evaluate.text import evaluation_text

__all__ = [
    "NOT_FOR_RELEASE",
    "Evaluation",
    "Pair",
    "evaluate",
    "evaluation_picture",
    "evaluation_text",
    "read_pair",
    "require_public",
    "write_sdnist",
]
