"""Spares a Python process, and every Python process that it starts, work that no test looks at.

An interpreter that finds this folder in PYTHONPATH imports it before anything else.  The audit before
each release draws less: what it finds is for other tests.  Garbage is collected less often, which takes
a fifth of the time of all imports.

Where OUTSIDE_CONTACTS names a file, it also cuts them off from all but this machine: what looks up or
contacts a host other than loopback fails, and is noted in that file.
"""

import gc
import importlib.util
import ipaddress
import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any


def refuse_outside(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: the interpreter calls it before each action, whatever library asks for it."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # a path is a local socket
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    else:
        return
    if host is not None and not is_loopback(host):
        with open(os.environ["OUTSIDE_CONTACTS"], "a") as notes:
            notes.write(f"{event} {host!r} by {' '.join(sys.argv)}\n")
        raise OSError(f"{host} is outside this machine")


def is_loopback(host: str | bytes) -> bool:
    """Whether a name or address is of this machine; an empty one means all of its interfaces."""
    name = host.decode() if isinstance(host, bytes) else host
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name in ("", "localhost")
    return address.is_loopback or address.is_unspecified


class ShortAudits:
    """Finds the module of short audits, and has it spend a tenth of a second on each."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name != "dpcore.audit.short":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def execute_and_shorten(module: Any) -> None:
            execute(module)
            module.short_audit.__kwdefaults__["seconds"] = 0.1

        spec.loader.exec_module = execute_and_shorten  # type: ignore[method-assign]
        return spec


gc.set_threshold(50_000)
sys.meta_path.insert(0, ShortAudits())
if "OUTSIDE_CONTACTS" in os.environ:
    sys.addaudithook(refuse_outside)
