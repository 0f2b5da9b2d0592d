"""The catalogue: a static page that lists all bundles under a folder, and the same as JSON."""

from tasks.catalogue.write import write_catalogue

__all__ = ["write_catalogue"]
