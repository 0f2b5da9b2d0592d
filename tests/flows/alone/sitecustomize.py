"""Cuts a Python process, and every Python process that it starts, off from all but this machine.

An interpreter that finds this folder in PYTHONPATH imports it before anything else.  What looks up
or contacts a host other than loopback fails, and is noted in the file OUTSIDE_CONTACTS.
"""

import ipaddress
import os
import sys
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


sys.addaudithook(refuse_outside)
