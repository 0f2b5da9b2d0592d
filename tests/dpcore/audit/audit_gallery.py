"""Wrong mechanisms that an audit must catch, and right ones about which it must be silent.

Each ``Exhibit`` is a claim and the neighbouring inputs on which a mechanism is audited.  The wrong
ones are faults that were made or printed somewhere; where a fault can be put into a release it is,
and runs through the real privacy line, which sees nothing wrong with it.
"""

from __future__ import annotations
