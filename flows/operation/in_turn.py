"""A Prefect server in which, if its database is SQLite, one transaction writes at a time.

Prefect's transactions read first and then write.  SQLite refuses the write if another connection has
written in between. So most of many simultaneous requests fail, and browsers do not repeat them.  Here a
transaction that may write waits for its turn before it gets a connection and reads, so that it need not
wait for SQLite or for a free connection.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary


def write_in_turn() -> None:
    """Make the servers of this process let one transaction write at a time."""
    from prefect.server.database.configurations import AioSqliteConfiguration

    configuration: Any = AioSqliteConfiguration
    begin = configuration.begin_transaction
    turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @asynccontextmanager
    async def begin_in_turn(
        self: Any, session: Any, with_for_update: bool = False
    ) -> AsyncIterator[Any]:
        turn = turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        # For update: another process may write too, and SQLite waits for it only if a transaction begins
        # with a write.
        async with turn, begin(self, session, with_for_update=True) as transaction:
            yield transaction

    configuration.begin_transaction = begin_in_turn
