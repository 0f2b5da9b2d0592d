"""Pages that are made of the code itself, when the site is built; nothing of them is stored."""

from docs.reference.commands import commands_page
from docs.reference.mechanisms import mechanisms_page
from docs.reference.method_sheet import method_sheet_page
from docs.reference.plan import plan_page

PAGES = {
    "reference/commands.md": commands_page,
    "reference/plan.md": plan_page,
    "reference/mechanisms.md": mechanisms_page,
    "reference/method-sheet.md": method_sheet_page,
}
"""Each page of the site and what makes its Markdown."""
