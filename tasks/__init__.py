"""Prefect steps and the parts that they use: the ledger, the survey, bundles, pages and files.

Importing this package sets defaults for this process and for servers and workers that it starts. The
environment can set others. Prefect sends no usage reports. Servers forget runs that ended 90 days ago
(the ledger and the bundles keep all records). Traffic on this machine bypasses proxies, which could not
forward it.
"""

import os

_DEFAULTS = {
    "DO_NOT_TRACK": "1",  # read when Prefect is imported, and at every flow run
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # its pages report from the browser
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
}

for _name, _value in _DEFAULTS.items():
    os.environ.setdefault(_name, _value)

_LOOPBACK = ("127.0.0.1", "localhost", "::1")

for _name in ("no_proxy", "NO_PROXY"):
    _others = [each for each in os.environ.get(_name, "").split(",") if each.strip()]
    os.environ[_name] = ",".join([*_others, *(own for own in _LOOPBACK if own not in _others)])
