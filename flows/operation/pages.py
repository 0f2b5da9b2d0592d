"""Prefect's pages, for a server whose visitors' browsers ask nobody else.

Prefect's second UI asks an analytics host, and no setting leaves it out; a server offers a UI only if
it can copy it, which a link to nowhere in its place prevents.  The first shows logos from other hosts;
its copy gets a policy that browsers obey.  ``python -m flows.operation.pages FOLDER`` prepares the
folder that PREFECT_SERVER_UI_STATIC_DIRECTORY then names.
"""

import logging
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit


def prepare(folder: Path) -> None:
    """Make or renew the folder of pages for this version of Prefect and its settings."""
    from prefect.server.api.server import create_ui_app
    from prefect.settings import PREFECT_UI_API_URL, PREFECT_UI_STATIC_DIRECTORY, temporary_settings

    folder.mkdir(parents=True, exist_ok=True)
    second = folder / "v2"
    if not second.is_symlink():
        second.symlink_to("not-offered")
    logging.getLogger("prefect.server.api.server").setLevel(logging.CRITICAL)  # it misses V2
    with temporary_settings({PREFECT_UI_STATIC_DIRECTORY: str(folder)}):
        create_ui_app(ephemeral=False)  # copies the pages, unless this version's are there
        index = folder / "v1" / "index.html"
        if index.exists():  # the operator may have switched the UI off
            page = re.sub(
                r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", index.read_text()
            )
            policy = _policy(PREFECT_UI_API_URL.value() or "")
            index.write_text(page.replace("<head>", f"<head>{policy}", 1))


def _policy(api: str) -> str:
    """The page's own host, and that of the API, which may have another name."""
    at = urlsplit(api)
    own = "'self' data: blob:"
    hosts = (
        f" {at.scheme}://{at.netloc} {at.scheme.replace('http', 'ws')}://{at.netloc}"
        if at.netloc
        else ""
    )
    rules = f"default-src {own} 'unsafe-inline' 'unsafe-eval'; connect-src {own}{hosts}"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


if __name__ == "__main__":
    prepare(Path(sys.argv[1]).absolute())
