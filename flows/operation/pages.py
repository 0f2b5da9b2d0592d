"""A Prefect server whose pages load nothing from other hosts.

``python -m flows.operation.pages start --host HOST`` is ``prefect server start`` with seven changes.
Four keep browser and server from contacting other hosts: there is no second UI, the first has a content
security policy, the API has no pages, and no lists are fetched.  Decisions in forms are recorded at once
(``flows.operation.decisions``), and no request is lost if many come at once
(``flows.operation.in_turn``). With the login alone nobody can change the program that a worker runs
(``flows.operation.gate``).
"""

import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prefect.context import refresh_global_settings_context

from flows.operation.decisions import record_decisions
from flows.operation.gate import HEADERS, KEY, guard
from flows.operation.in_turn import write_in_turn

_STATIC = "PREFECT_SERVER_UI_STATIC_DIRECTORY"


def start(arguments: list[str]) -> None:
    """Run ``prefect server`` with these arguments in this process.

    The copy of the UI is in the folder of Prefect's setting, by default in PREFECT_HOME.
    """
    from prefect.cli import app
    from prefect.settings import (
        PREFECT_HOME,
        PREFECT_SERVER_API_BASE_PATH,
        PREFECT_UI_STATIC_DIRECTORY,
    )

    for argument in arguments:
        if argument.startswith(("--workers", "-b", "--background")):
            # the server would run in other processes, without the changes made in this one
            sys.exit(
                f"{argument}: leave it out; this server runs in one process, in the foreground"
            )
    key = os.environ.get(KEY)
    if key == "":
        sys.exit(f"{KEY} is empty: write a long random word, or leave it out")
    folder = Path(PREFECT_UI_STATIC_DIRECTORY.value() or PREFECT_HOME.value() / "pages").absolute()
    os.environ[_STATIC] = str(folder)
    os.environ.pop(HEADERS, None)  # a page of the server shows its settings
    refresh_global_settings_context()  # Prefect read its settings when it was imported
    _prepare(folder)
    offer_no_api_pages()
    _fetch_no_lists()
    record_decisions()
    write_in_turn()
    if key:
        guard(key, PREFECT_SERVER_API_BASE_PATH.value() or "/api")
    else:
        print(
            f"{KEY} is not set: anybody with the server's login can make workers run any program",
            file=sys.stderr,
        )
    sys.argv = ["prefect", "server", *arguments]
    app()


def offer_no_api_pages() -> None:
    """Remove ``/docs`` and ``/redoc`` from the servers that this process makes from now on."""
    from fastapi import FastAPI

    # They load scripts from other hosts.
    defaults: Any = FastAPI.__init__.__kwdefaults__  # Prefect sets neither option
    defaults |= {"docs_url": None, "redoc_url": None}


def _fetch_no_lists() -> None:
    """Offer only the list of workers that comes with Prefect, and fetch no list from GitHub."""
    from prefect.server.api.collections import KNOWN_VIEWS

    # Otherwise the server asks GitHub when somebody opens the pages of blocks or of work pools.
    KNOWN_VIEWS.clear()
    KNOWN_VIEWS["aggregate-worker-metadata"] = ""  # no address, so that the server uses its copy


def _prepare(folder: Path) -> None:
    """Make or renew the folder of pages for this version of Prefect and its settings."""
    from prefect.server.api.server import create_ui_app
    from prefect.settings import PREFECT_UI_API_URL

    folder.mkdir(parents=True, exist_ok=True)
    # The second UI contacts an analytics host, and no setting turns it off. A server offers a UI only if
    # it can copy it; a dangling link at that path prevents the copy.
    second = folder / "v2"
    if not second.is_symlink():
        second.symlink_to("not-offered")
    create_ui_app(ephemeral=False)  # copies the pages, unless the copy has this version
    index = folder / "v1" / "index.html"
    if index.exists():  # the operator may have switched the UI off
        # The first UI loads logos from other hosts; this policy blocks them.
        page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", index.read_text())
        policy = _policy(PREFECT_UI_API_URL.value() or "")
        index.write_text(page.replace("<head>", f"<head>{policy}", 1))


def _policy(api: str) -> str:
    """The content security policy: it allows the page's own host and the host of the API."""
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
    start(sys.argv[1:])
