"""Prefect steps and what they use: the ledger, the survey, bundles, pages and files.

Importing this package makes Prefect report nothing to its makers, from this process and from the
servers and workers that it starts, unless the environment says otherwise.  It also keeps their traffic
on this machine away from a proxy, which could not forward it.
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

_LOOPBACK = ("127.0.0.1", "localhost", "::1")

for _name in ("no_proxy", "NO_PROXY"):
    _others = [each for each in os.environ.get(_name, "").split(",") if each.strip()]
    os.environ[_name] = ",".join([*_others, *(own for own in _LOOPBACK if own not in _others)])
