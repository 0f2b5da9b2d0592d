"""Names of published tables, which are also names of files."""

from unicodedata import category

from dpcore.domain.domain import Domain


def dotted_name(release: str, domain: Domain) -> str:
    """The name of a release's table over some columns, suitable for a file."""
    return ".".join([release, *map(file_word, domain.names)])


def file_word(name: str) -> str:
    """A column name as part of a file name: its letters, including accented ones, and digits."""
    return "".join(c if c.isalnum() or c in "-_" or category(c)[0] == "M" else "-" for c in name)
