"""The catalogue into its place: each file whole or as it was before."""

import json
import os
import tempfile
from pathlib import Path

from dpcore.errors import BundleError, InputError
from tasks.catalogue.bundles import find_bundles
from tasks.catalogue.page import catalogue_json, catalogue_page

PAGE = "index.html"
RECORD = "catalogue.json"


def write_catalogue(root: Path, site: Path) -> Path:
    """Write the catalogue of all bundles under ``root`` into ``site`` and return its page.

    Damaged bundles are named on the page and left out of it; once the page is written,
    ``BundleError`` names them.  Raises ``InputError`` where there is no bundle.
    """
    datasets, damaged = find_bundles(root)
    relative = [d.path.relative_to(root).as_posix() for d in damaged]
    try:
        site.mkdir(parents=True, exist_ok=True)
        record = json.dumps(catalogue_json(datasets, site), indent=2, ensure_ascii=False)
        _replace(site / RECORD, record + "\n")
        _replace(site / PAGE, catalogue_page(datasets, damaged, site))
    except OSError as error:
        raise InputError(f"{site}: the catalogue cannot be written ({error.strerror})") from None
    if damaged:
        raise BundleError(
            f"{site / PAGE} was written without damaged bundles ({len(damaged)}):"
            f" {', '.join(relative)}; `dprelease verify` tells what is wrong with each"
        )
    return site / PAGE


def _replace(path: Path, text: str) -> None:
    """Put a file in its place at once: readers see the old one or the new one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
