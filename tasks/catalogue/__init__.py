"""A static site over all bundles of a folder: one page, and the same as JSON for programs.

bundles   which there are, and which are damaged
page      what is said of them
write     into its place, at once
"""

from tasks.catalogue.write import write_catalogue

__all__ = ["write_catalogue"]
