"""Prefect steps and what they use: the ledger, the survey, bundles, pages and files.

Importing this package makes Prefect report nothing to its makers, from this process and from the
servers and workers that it starts, unless the environment says otherwise.
"""

import os

_SILENT = {
    "DO_NOT_TRACK": "1",  # read when Prefect is imported, and at every flow run
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # its pages report from the browser
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}

for _name, _value in _SILENT.items():
    os.environ.setdefault(_name, _value)
