"""The two sides of the privacy line: an exact statistic, sealed, and a noisy one, public.

Both are integer vectors over a public set of cells (``Statistic``), in one of two layouts:

    dense     values[i] belongs to cell i; every cell is present
    sparse    values[i] belongs to cell cells[i]; cells ascend; absent cells are zero
              (over a wide domain, cells[i] of an exact statistic is a row of ``dpcore.domain.words``)

Only ``dpcore.line.privacy_line`` opens an ``Exact``; it cannot be printed, compared or pickled, so that
it cannot reach a log, an artifact or a task result by accident.  A mechanism draws a ``Noisy``: the
ledger stores its bytes, and everything after the privacy line starts from it.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Integers

ABSENT = -(2**63)
"""The value in a dense noisy statistic for a number that was not measured."""


class Statistic(NamedTuple):
    """Numbers (k,) with their cells: an opened ``Exact``, or the statistic of an audit's made-up table.

    ``values``: integers; ``cells``: (k,) ascending cell ids, or None for the dense layout.  For a single
    round of an audit, ``values`` may be floats, with NaN for numbers that were not measured.
    """

    values: NDArray[Any]
    cells: Integers | None = None

    def at(self, kept: Any) -> Statistic:
        """The statistic at some positions, given by an index of numpy."""
        return Statistic(self.values[kept], None if self.cells is None else self.cells[kept])


class Exact:
    """An exact integer statistic: private; only the privacy line may open it."""

    __slots__ = ("_statistic",)

    def __init__(self, values: Integers, cells: Integers | None = None) -> None:
        self._statistic = Statistic(values, cells)

    def __repr__(self) -> str:
        return "<exact statistic: withheld>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an exact statistic does not leave the process that computed it")


@dataclass(frozen=True, eq=False)
class Noisy:
    """A noisy statistic: public.

    ``values``: (k,) integers; ``cells``: (k,) ascending cell ids, or None for the dense layout;
    ``reproducible``: drawn from a seeded source, so it must not be published.
    """

    values: Integers
    cells: Integers | None = None
    reproducible: bool = False

    def to_bytes(self) -> bytes:
        """The durable form: the same statistic always gives the same bytes."""
        buffer = io.BytesIO()
        buffer.write(b"dprelease-noisy-1\n")
        buffer.write(bytes([self.reproducible, self.cells is not None]))
        for array in (self.values,) if self.cells is None else (self.values, self.cells):
            # A fixed version of the format: a later numpy must write the same bytes.
            np.lib.format.write_array(
                buffer, np.ascontiguousarray(array, dtype="<i8"), version=(1, 0), allow_pickle=False
            )
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Noisy:
        """Read the bytes that ``to_bytes`` wrote; raises ``ValueError`` for anything else."""
        buffer = io.BytesIO(data)
        if buffer.readline() != b"dprelease-noisy-1\n":
            raise ValueError("not a stored noisy statistic")
        reproducible, sparse = buffer.read(2)
        values = np.lib.format.read_array(buffer, allow_pickle=False)
        cells = np.lib.format.read_array(buffer, allow_pickle=False) if sparse else None
        return cls(values, cells, bool(reproducible))

    def digest(self) -> str:
        """SHA-256 of the durable form, in hexadecimal."""
        return hashlib.sha256(self.to_bytes()).hexdigest()
