"""Writes the catalogue's files; each is replaced whole, in one step."""

import json
import os
from pathlib import Path

from dpcore.errors import BundleError, InputError
from tasks.catalogue.bundles import find_bundles
from tasks.catalogue.page import catalogue_json, catalogue_page
from tasks.workplace.home import replacing

PAGE = "index.html"
RECORD = "catalogue.json"


def write_catalogue(root: Path, site: Path) -> Path:
    """Write the catalogue of all bundles under ``root`` into ``site`` and return its page.

    Damaged bundles and second copies are named on the page but not listed; after the page is written,
    ``BundleError`` names them and says why.  Raises ``InputError`` if there is no bundle.
    """
    datasets, left_out = find_bundles(root)
    try:
        site.mkdir(parents=True, exist_ok=True)
        record = json.dumps(catalogue_json(datasets, site), indent=2, ensure_ascii=False)
        _replace(site / RECORD, record + "\n")
        _replace(site / PAGE, catalogue_page(datasets, left_out, site))
    except OSError as error:
        raise InputError(f"{site}: the catalogue cannot be written ({error.strerror})") from None
    if left_out:
        copies = sum(bundle.duplicate for bundle in left_out)
        reasons = "".join(f"\n  {bundle.reason}" for bundle in left_out)
        kinds = [
            _counted(len(left_out) - copies, "damaged bundle", "damaged bundles"),
            _counted(copies, "second copy of a release", "second copies of releases"),
        ]
        without = " and ".join(filter(None, kinds))
        raise BundleError(f"{site / PAGE} was written without {without}:{reasons}")
    return site / PAGE


def _counted(number: int, one: str, more: str) -> str:
    """A number with its noun; empty for zero."""
    return f"{number} {one if number == 1 else more}" * bool(number)


def _replace(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text)
        os.fchmod(
            file.fileno(), 0o644
        )  # a temporary file is its owner's, but a site is everybody's
