"""``dprelease catalogue``: write a page that lists all bundles of a folder."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.arguments import ANSWER, Output, file_option


def catalogue(
    folder: Annotated[Path, Parameter(name="DIR", help="the folder of bundles")],
    /,
    *,
    out: Annotated[
        Path | None, file_option("the folder for index.html; default: DIR itself", "SITE")
    ] = None,
    output: Output = ANSWER,
) -> None:
    """Write a page that lists all bundles of a folder."""
    from tasks.catalogue import write_catalogue

    page = write_catalogue(folder, out or folder)
    output.answer(str(page), {"page": page})
