"""The ledger among processes that race, and that are killed at every step.

Each test calls a scenario in a process of its own, which forks contenders that all start at once and
says what became of them: a test runner may have threads, and is not to be forked.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event

from dpcore.accounting.budget import Budget
from dpcore.line.statistic import Noisy
from tasks.ledger import Charge, ChargeRequest, Ledger, State, queries
from tests.apart import apart

SHARE = Charge(Budget.of("1/7", "1/7000000", "1/70"))
WHO_WHY = {"who": "A. Officer", "why": "test"}
P_WINS, Q_WINS = (["BudgetError"] * 8 + [plan] * 8 for plan in "pq")


def shares(count: int) -> Budget:
    return Budget(*(count * getattr(SHARE.budget, name) for name in ("alpha", "beta", "gamma")))


def compete(jobs: list[Callable[[], str]]) -> list[str]:
    """Run each job in a process of its own, all at once; what they returned, or their error."""
    gun, trigger = os.pipe()
    waiting, ready = os.pipe()
    results, result = os.pipe()
    contenders = []
    for job in jobs:
        contender = os.fork()
        if contender == 0:
            os.close(trigger)
            os.write(ready, b".")
            os.read(gun, 1)  # returns when the last copy of the trigger is closed
            try:
                outcome = job()
            except Exception as error:
                outcome = type(error).__name__
            os.write(result, f"{outcome}\n".encode())
            os._exit(0)
        contenders.append(contender)
    for _ in contenders:
        os.read(waiting, 1)
    for descriptor in (trigger, result):
        os.close(descriptor)
    for contender in contenders:
        os.waitpid(contender, 0)
    with os.fdopen(results) as lines:
        outcomes = lines.read().split()
    for descriptor in (gun, waiting, ready):
        os.close(descriptor)
    return outcomes


def killed(job: Callable[[], Any]) -> bool:
    """Run a job that kills itself; False if it came to its end."""
    child = os.fork()
    if child == 0:
        job()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying_after(url: str, statements: int) -> Ledger:
    """A ledger whose process is killed when so many statements of a transaction have been run."""
    ledger = Ledger(url)
    count = itertools.count(1)
    event.listen(
        ledger._database.engine,
        "after_cursor_execute",
        lambda *_: die() if next(count) == statements else None,
    )
    return ledger


def race(url: str, contenders: int, affordable: int, rounds: int) -> list[dict[str, int]]:
    tallies = []
    for number in range(rounds):
        dataset = f"dataset {number}"
        Ledger(url).grant(dataset, shares(affordable), **WHO_WHY)

        def job(contender: int, dataset: str = dataset) -> str:
            request = ChargeRequest(dataset, f"r{contender}", "p", {"a": SHARE})
            return str(Ledger(url).reserve(request))

        outcomes = compete([lambda i=i: job(i) for i in range(contenders)])
        assert Ledger(url).remaining(dataset) == Budget()
        tallies.append(Counter(outcomes))
    return tallies


def two_race(url: str) -> list[dict[str, int]]:
    return race(url, contenders=2, affordable=1, rounds=6)


def sixty_four_race(url: str) -> list[dict[str, int]]:
    return race(url, contenders=64, affordable=23, rounds=1)


def same_release(url: str) -> list[str]:
    Ledger(url).grant("wages", shares(2), **WHO_WHY)
    request = ChargeRequest("wages", "r1", "p", {"a": SHARE, "b": SHARE})

    def job() -> str:
        return "+".join(Ledger(url).reserve(request)) or "nothing"

    return compete([job] * 16)


def create(url: str) -> list[str]:
    return compete([lambda: str(Ledger(url).first_grant("wages", shares(1), **WHO_WHY))] * 16)


def two_plans_race(url: str) -> list[list[str]]:
    """Two plans with gamma, 8 processes each, on datasets without a release; who was charged."""
    rounds = []
    for number in range(3):
        dataset = f"dataset {number}"
        Ledger(url).grant(dataset, shares(99), **WHO_WHY)

        def job(contender: int, dataset: str = dataset) -> str:
            plan = "pq"[contender % 2]
            Ledger(url).reserve(ChargeRequest(dataset, f"r{contender}", plan, {"a": SHARE}))
            Ledger(url).commit(dataset, f"r{contender}", "a", Noisy(np.array([1])))
            return plan

        rounds.append(sorted(compete([lambda i=i: job(i) for i in range(16)])))
    return rounds


def commit(url: str) -> list[list[str]]:
    Ledger(url).grant("wages", shares(9), **WHO_WHY)
    digests = []
    for number in range(5):
        names = ("wages", f"r{number}", "a")
        Ledger(url).reserve(ChargeRequest(*names[:2], "p", {"a": SHARE}))

        def job(names: tuple[str, str, str] = names) -> str:
            own = Noisy(np.array([os.getpid()]))
            return Ledger(url).commit(*names, own).digest()

        digests.append([*compete([job] * 4), Ledger(url).committed(*names).digest()])
    return digests


def commit_or_void(url: str) -> list[list[str]]:
    Ledger(url).grant("wages", shares(9), **WHO_WHY)
    outcomes = []
    for number in range(5):
        names = ("wages", f"r{number}", "a")
        Ledger(url).reserve(ChargeRequest(*names[:2], "p", {"a": SHARE}))

        def commit(names: tuple[str, str, str] = names) -> str:
            return Ledger(url).commit(*names, Noisy(np.array([1]))) and "COMMITTED"

        def void(names: tuple[str, str, str] = names) -> str:
            return Ledger(url).void(*names, **WHO_WHY) or "VOID"

        ends = sorted(compete([commit, void]))
        outcomes.append([*ends, Ledger(url).release("wages", f"r{number}")["a"].state])
    return outcomes


def killed_in_reserve(url: str) -> int:
    ledger = Ledger(url)
    ledger.grant("wages", shares(2), **WHO_WHY)
    request = ChargeRequest("wages", "r1", "p", {"a": SHARE, "b": SHARE})
    statements = 1
    while killed(lambda n=statements: dying_after(url, n).reserve(request)):
        assert ledger.release("wages", "r1") == {}
        assert ledger.spent("wages") == Budget()
        ledger.check(request)
        statements += 1
    assert ledger.remaining("wages") == Budget()
    return statements


def killed_in_commit(url: str) -> int:
    ledger = Ledger(url)
    ledger.grant("wages", shares(1), **WHO_WHY)
    names = ("wages", "r1", "a")
    assert killed(lambda: die(Ledger(url).reserve(ChargeRequest(*names[:2], "p", {"a": SHARE}))))
    # More than a page cache, so that unfinished pages are already in the file when death comes.
    drawn = Noisy(np.arange(2**19))
    statements = 1
    while killed(lambda n=statements: dying_after(url, n).commit(*names, drawn)):
        assert ledger.release("wages", "r1")["a"].state is State.RESERVED
        assert ledger.committed(*names) is None
        assert ledger.remaining("wages") == Budget()
        statements += 1
    assert ledger.commit(*names, Noisy(np.array([0]))).digest() == drawn.digest()
    return statements


def killed_at_random(url: str) -> dict[str, int]:
    ledger = Ledger(url)
    ledger.grant("wages", shares(10**6), **WHO_WHY)

    def work(worker: int, step: int) -> None:
        for number in itertools.count():
            names = ("wages", f"r{worker}-{number}", "a")
            os.write(step, b".")
            ledger.reserve(ChargeRequest(*names[:2], "p", {"a": SHARE, "b": SHARE}))
            os.write(step, b".")
            ledger.commit(*names, Noisy(np.arange(10_000) + number))

    for worker in range(20):
        steps, step = os.pipe()
        child = os.fork()
        if child == 0:
            work(worker, step)
        for _ in range(random.randint(1, 8)):
            os.read(steps, 1)
        time.sleep(random.uniform(0, 0.02))  # to be at any place of a step
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(steps)
        os.close(step)

    # A server may still be at the commit of a client that is dead, and holds the lock until then.
    with ledger._database.transaction(write=True) as connection:
        queries.lock(connection, "wages")
    states: Counter[str] = Counter()
    releases = {line.release_id for line in ledger.history("wages") if line.release_id}
    for release_id in releases:
        charges = ledger.release("wages", release_id)
        assert list(charges) == ["a", "b"]
        for name, charge in charges.items():
            states[charge.state] += 1
            drawn = ledger.committed("wages", release_id, name)
            assert (drawn is not None) == (charge.state is State.COMMITTED)
    assert ledger.spent("wages") == shares(states.total())
    return states


class TestRaces:
    def test_of_two_processes_exactly_one_gets_what_one_may_have(self, url):
        assert apart(two_race, url) == [{"['a']": 1, "BudgetError": 1}] * 6

    @pytest.mark.slow
    def test_of_sixty_four_processes_exactly_those_that_can_be_afforded_get_it(self, url):
        assert apart(sixty_four_race, url) == [{"['a']": 23, "BudgetError": 41}]

    @pytest.mark.slow
    def test_sixteen_runs_of_one_release_are_charged_once(self, url):
        assert Counter(apart(same_release, url)) == {"a+b": 1, "nothing": 15}

    @pytest.mark.slow
    def test_of_two_plans_at_once_one_may_spend_gamma_in_all_its_runs(self, url):
        assert all(got in (Q_WINS, P_WINS) for got in apart(two_plans_race, url))

    @pytest.mark.slow
    def test_sixteen_first_runs_make_one_ledger_and_one_grant(self, url, tmp_path):
        answers = Counter(apart(create, url))
        granted = not Ledger(url).shared
        assert answers == ({"True": 1, "False": 15} if granted else {"False": 16})
        assert Ledger(url).granted("wages") == (shares(1) if granted else None)
        assert set(os.listdir(tmp_path)) <= {"ledger.db"}

    @pytest.mark.slow
    def test_processes_that_draw_for_the_same_charge_all_see_one_draw(self, url):
        for digests in apart(commit, url):
            assert len(digests) == 5
            assert len(set(digests)) == 1

    @pytest.mark.slow
    def test_a_charge_is_committed_or_voided_but_never_both(self, url):
        for first, second, state in apart(commit_or_void, url):
            assert {first, second} == {"LedgerError", state}


class TestKilled:
    def test_in_the_middle_of_a_reservation_leaves_nothing_of_it(self, url):
        assert apart(killed_in_reserve, url) > 5

    @pytest.mark.slow
    def test_between_reservation_and_commit_leaves_the_charge_and_the_way_to_a_commit(self, url):
        assert apart(killed_in_commit, url) > 5

    @pytest.mark.slow
    def test_at_random_leaves_every_release_whole_and_every_draw_with_its_charge(self, url):
        states = apart(killed_at_random, url)
        assert states["COMMITTED"] > 0
        if url.startswith("sqlite"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
