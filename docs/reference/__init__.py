"""Pages that are made from the code when the site is built, and not stored."""

from docs.reference.budgets import budgets_page
from docs.reference.commands import commands_page
from docs.reference.mechanisms import mechanisms_page
from docs.reference.plan import plan_page
from docs.reference.trusted_base import trusted_base_page

PAGES = {
    "explanation/budgets.md": budgets_page,
    "explanation/trusted-base.md": trusted_base_page,
    "reference/commands.md": commands_page,
    "reference/plan.md": plan_page,
    "reference/mechanisms.md": mechanisms_page,
}
"""Each page, and the function that makes its Markdown."""
