"""The method sheet as a page, as preformatted text: it is laid out by hand."""

from pathlib import Path

SHEET = Path(__file__).parent.parent / "METHODS.md"


def method_sheet_page() -> str:
    """A heading for each section, followed by its text as written."""
    title, *sections = SHEET.read_text(encoding="utf-8").split("\n## ")
    heading, _, text = title.partition("\n")
    parts = ["---\ntitle: Method sheet\n---", heading, _as_written(text)]
    for section in sections:
        name, _, text = section.partition("\n")
        parts += [f"## {name}", _as_written(text)]
    return "\n\n".join(parts) + "\n"


def _as_written(text: str) -> str:
    return f"```text\n{text.strip().rstrip('-').strip()}\n```"
