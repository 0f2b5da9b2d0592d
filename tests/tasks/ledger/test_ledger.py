"""What the ledger promises to one caller at a time, on every engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest
from sqlalchemy import select, update

from dpcore.accounting.budget import Budget, ShareWeight, split
from dpcore.errors import BudgetError, InputError, LedgerError
from dpcore.line.statistic import Noisy
from tasks.ledger import Action, Charge, ChargeRequest, Ledger, State, charge_id, queries, tables
from tests.tasks.bundle.damage import by_hand
from tests.tasks.ledger.conftest import refused

WHO_WHY = {"who": "A. Officer", "why": "test"}
GAMMA = dict.fromkeys("ab", Charge(Budget.of("1/10", gamma="1/100")))


@pytest.fixture
def ledger(url) -> Ledger:
    ledger = Ledger(url)
    ledger.grant("wages", Budget.of(1, "1e-6", "1/10"), **WHO_WHY)
    return ledger


def asked(release_id: str, plan: str = "p", *, of: str = "wages", **alphas: str) -> ChargeRequest:
    charges = {name: Charge(Budget.of(alpha), {"noise": name}) for name, alpha in alphas.items()}
    return ChargeRequest(of, release_id, plan, charges)


def noisy(*values: int) -> Noisy:
    return Noisy(np.array(values))


class TestGrants:
    def test_grants_add_up(self, ledger):
        ledger.grant("wages", Budget.of("1/3"), **WHO_WHY)
        assert ledger.granted("wages") == Budget.of("4/3", "1e-6", "1/10")

    def test_an_unknown_dataset_has_no_grant_and_nothing_left_and_is_closed(self, ledger):
        assert ledger.granted("health") is None
        assert ledger.remaining("health") == ledger.spent("health") == Budget()
        refused(ledger, asked("r1", of="health", a="0"), BudgetError, "no grant")

    def test_a_first_grant_is_recorded_only_for_an_unknown_dataset(self, ledger):
        assert not ledger.first_grant("wages", Budget.of(9), **WHO_WHY)
        assert ledger.granted("wages") == Budget.of(1, "1e-6", "1/10")
        alone = not ledger.shared
        assert ledger.first_grant("health", Budget.of(9), **WHO_WHY) == alone
        assert not ledger.first_grant("health", Budget.of(9), **WHO_WHY)
        assert ledger.granted("health") == (Budget.of(9) if alone else None)

    def test_a_grant_of_nothing_makes_the_dataset_known_and_closed(self, ledger):
        ledger.grant("health", Budget(), **WHO_WHY)
        assert not ledger.first_grant("health", Budget.of(1), **WHO_WHY)
        with pytest.raises(BudgetError, match="left 0 of 0 granted"):
            ledger.reserve(asked("r", of="health", a="1"))
        assert ledger.datasets() == ["health", "wages"]

    @pytest.mark.parametrize("field", ["dataset", "who", "why"])
    def test_every_grant_says_who_and_why(self, ledger, field):
        for blank in ("", "  ", "two\nlines", "nul\0", "\ud800", None):
            fields = {"dataset": "wages", **WHO_WHY, field: blank}
            for method in (ledger.grant, ledger.first_grant):
                with pytest.raises(InputError, match=field):
                    method(budget=Budget.of(1), **fields)
        assert len(ledger.history()) == 1


class TestReserve:
    def test_a_whole_release_is_charged(self, ledger):
        assert ledger.reserve(asked("r1", a="1/4", b="1/2")) == ["a", "b"]
        assert ledger.spent("wages") == Budget.of("3/4")
        assert ledger.remaining("wages") == Budget.of("1/4", "1e-6", "1/10")
        assert {c.state for c in ledger.release("wages", "r1").values()} == {State.RESERVED}

    def test_three_thirds_fit_exactly_and_one_quantum_more_does_not(self, ledger):
        ledger.reserve(asked("r1", a="1/3", b="1/3", c="1/3"))
        assert ledger.remaining("wages").alpha == 0
        quantum = {"d": Charge(Budget(Fraction(1, 10**40)))}
        with pytest.raises(BudgetError, match="left 0 of 1 granted"):
            ledger.reserve(ChargeRequest("wages", "r2", "p", quantum))

    def test_shares_of_awkward_weights_fit_exactly(self, ledger):
        whole = ledger.granted("wages")
        shares = split(
            whole, [ShareWeight(7, 3, 1), ShareWeight(11, 0, 13), ShareWeight(17, 19, 23)]
        )
        charges = {str(i): Charge(share) for i, share in enumerate(shares)}
        ledger.reserve(ChargeRequest("wages", "r1", "p", charges))
        assert ledger.spent("wages") == whole

    @pytest.mark.parametrize(
        ("first", "other", "says"),
        [
            (
                {"neighbours": "replace-one"},
                {"neighbours": "add-remove"},
                r"one row \(replace-one\), .* one row \(add-remove\)",
            ),
            (
                {"neighbours": "replace-one"},
                {"neighbours": "replace-one", "unit": "home"},
                "records with the same home",
            ),
            (
                {"neighbours": "add-remove", "unit": "home", "most": "3"},
                {"neighbours": "add-remove", "unit": "firm"},
                "same home .*, but this plan protects all records with the same firm",
            ),
        ],
    )
    def test_a_budget_is_about_one_unit_and_one_relation(self, ledger, first, other, says):
        amount = Budget.of("1/8")
        ledger.reserve(ChargeRequest("wages", "r1", "p", {"a": Charge(amount, first)}))
        charges = {"b": Charge(amount, other)}
        refused(ledger, ChargeRequest("wages", "r2", "p", charges), BudgetError, says)
        with pytest.raises(BudgetError, match=says):
            ledger.check_addable("wages", "p", charges)
        ledger.check_addable("wages", "p", {"c": Charge(amount, first)})
        assert ledger.spent("wages") == amount
        ledger.grant("health", Budget.of(1), **WHO_WHY)
        assert ledger.reserve(ChargeRequest("health", "r2", "p", charges)) == ["b"]
        with pytest.raises(BudgetError, match="cannot be added"):
            ledger.reserve(ChargeRequest("health", "r3", "p", {"c": Charge(amount, first)}))

    def test_a_voided_charge_does_not_fix_the_unit(self, ledger):
        rows, homes = {"neighbours": "replace-one"}, {"neighbours": "replace-one", "unit": "home"}
        amount = Budget.of("1/8")
        ledger.reserve(ChargeRequest("wages", "r1", "p", {"a": Charge(amount, rows)}))
        ledger.void("wages", "r1", "a", **WHO_WHY)
        # More records of the same unit are about the same people.
        for run, unit in [("r3", homes), ("r4", homes | {"most": "7"})]:
            request = ChargeRequest("wages", run, "p", {"a": Charge(amount, unit)})
            assert ledger.reserve(request) == ["a"]

    def test_gamma_is_for_a_plan_that_was_fixed_before_the_first_release(self, ledger):
        ledger.reserve(asked("r1", a="1/8"))
        ledger.commit("wages", "r1", "a", noisy(1))
        says = "released before.*not chosen in view of others.*nothing was charged.*new dataset"
        refused(ledger, ChargeRequest("wages", "r2", "q", GAMMA), BudgetError, says)
        with pytest.raises(BudgetError, match=says):
            ledger.check_addable("wages", "q", GAMMA)
        assert ledger.release("wages", "r2") == {}
        assert ledger.reserve(asked("r2", "q", a="1/8")) == ["a"]

    def test_later_runs_of_the_same_plan_spend_gamma_while_the_grant_lasts(self, ledger):
        for run in ("january", "february"):
            assert ledger.reserve(ChargeRequest("wages", run, "p", GAMMA)) == ["a", "b"]
            for name in GAMMA:
                ledger.commit("wages", run, name, noisy(1))
            ledger.reserve(asked(f"{run}-extra", f"chosen after {run}", a="1/100"))
        with pytest.raises(BudgetError, match="gamma is kept for another plan"):
            ledger.reserve(ChargeRequest("wages", "march", "q", GAMMA))
        ledger.check(ChargeRequest("wages", "march", "p", GAMMA))
        more = {"a": Charge(Budget.of(gamma="1/10"))}
        with pytest.raises(BudgetError, match="gamma: asked"):
            ledger.check(ChargeRequest("wages", "march", "p", more))

    def test_an_undrawn_reservation_neither_bars_gamma_nor_shares_it(self, ledger):
        ledger.reserve(asked("r1", a="1/8"))
        assert ledger.reserve(ChargeRequest("wages", "r2", "q", GAMMA)) == ["a", "b"]
        with pytest.raises(BudgetError, match="gamma is kept for another plan"):
            ledger.reserve(ChargeRequest("wages", "r3", "r", GAMMA))
        for name in GAMMA:
            ledger.void("wages", "r2", name, **WHO_WHY)
        assert ledger.reserve(ChargeRequest("wages", "r3", "r", GAMMA)) == ["a", "b"]
        with pytest.raises(BudgetError, match="gamma is kept for another plan"):
            ledger.reserve(ChargeRequest("wages", "r4", "q", GAMMA))  # its reservation was given up

    def test_gamma_of_two_plans_is_a_fault(self, ledger):
        ledger.reserve(ChargeRequest("wages", "r1", "p", GAMMA))
        assert not [f for f in ledger.find_faults("wages") if "gamma" in f.what]
        with ledger._database.transaction(write=True) as connection:
            queries.insert_charges(connection, ChargeRequest("wages", "r2", "q", GAMMA), 0)
        assert [f for f in ledger.find_faults("wages") if "gamma" in f.what]

    @pytest.mark.parametrize("coordinate", ["alpha", "beta", "gamma"])
    def test_each_coordinate_is_guarded(self, ledger, coordinate):
        beyond = Budget.of(**{coordinate: getattr(ledger.granted("wages"), coordinate) * 2})
        for method in (ledger.check, ledger.reserve):
            with pytest.raises(BudgetError, match=f"{coordinate}: asked") as caught:
                method(ChargeRequest("wages", "r1", "p", {"a": Charge(beyond)}))
            others = {"alpha", "beta", "gamma"} - {coordinate}
            assert not any(other in str(caught.value) for other in others)

    def test_overspending_charges_nothing_and_says_what_to_do(self, ledger):
        ledger.reserve(asked("r1", a="3/4"))
        with pytest.raises(BudgetError) as caught:
            ledger.reserve(asked("r2", b="1/8", c="1/6"))
        for part in ("'r2'", "'wages'", "alpha: asked 7/24, left 0.25 of 1 granted"):
            assert part in str(caught.value)
        assert "dprelease ledger grant" in str(caught.value)
        assert ledger.release("wages", "r2") == {}
        assert ledger.spent("wages") == Budget.of("3/4")

    def test_datasets_do_not_share(self, ledger):
        ledger.grant("health", Budget.of(1), **WHO_WHY)
        ledger.reserve(asked("r1", "other plan", of="health", a="1"))
        assert ledger.spent("wages") == Budget()
        assert ledger.reserve(asked("r1", a="1")) == ["a"]

    def test_a_retry_is_not_charged_again_even_when_nothing_is_left(self, ledger):
        request = asked("r1", a="1/2", b="1/2")
        ledger.reserve(request)
        ledger.check(request)
        assert ledger.reserve(request) == []
        ledger.commit("wages", "r1", "a", noisy(1))
        assert ledger.reserve(request) == []
        assert ledger.spent("wages") == Budget.of(1)

    def test_a_retry_with_more_names_charges_only_the_new_ones(self, ledger):
        ledger.reserve(asked("r1", a="1/2"))
        assert ledger.reserve(asked("r1", a="1/2", b="1/2")) == ["b"]
        with pytest.raises(BudgetError):
            ledger.reserve(asked("r1", a="1/2", b="1/2", c="1/9"))

    def test_an_event_is_compared_by_what_it_says(self, ledger):
        again = {"sums": [1, 2], "stddev": "7/2"}
        first = {"stddev": "7/2", "sums": (1, 2)}
        for alpha, event, new in [("1/2", first, ["a"]), ("0.5", again, [])]:
            charges = {"a": Charge(Budget.of(alpha), event)}
            assert ledger.reserve(ChargeRequest("wages", "r1", "p", charges)) == new
        assert ledger.release("wages", "r1")["a"].event == again

    @pytest.mark.parametrize(
        ("plan", "charge", "text"),
        [
            ("changed", Charge(Budget.of("1/2"), {"noise": "a"}), "another plan"),
            ("p", Charge(Budget.of("1/4"), {"noise": "a"}), "another price"),
            ("p", Charge(Budget.of("1/2"), {"noise": "b"}), "another privacy event"),
        ],
    )
    def test_a_release_id_stands_for_one_plan_price_and_event(self, ledger, plan, charge, text):
        ledger.reserve(asked("r1", a="1/2"))
        before = ledger.release("wages", "r1")
        request = ChargeRequest("wages", "r1", plan, {"new": Charge(Budget()), "a": charge})
        refused(ledger, request, LedgerError, f"{text}.*new release id")
        # Also with nothing in common.
        refused(ledger, asked("r1", "changed", b="1/2"), LedgerError, "another plan")
        assert ledger.release("wages", "r1") == before

    def test_check_writes_nothing(self, ledger):
        ledger.check(asked("r1", a="1"))
        assert ledger.release("wages", "r1") == {}
        assert ledger.spent("wages") == Budget()

    @pytest.mark.parametrize("event", [{"scale": float("nan")}, {"scale": object()}])
    def test_an_event_that_is_not_json_is_refused(self, ledger, event):
        with pytest.raises(InputError, match="plain JSON"):
            ChargeRequest("wages", "r1", "p", {"a": Charge(Budget(), event)})

    def test_names_are_kept_as_they_are(self, ledger):
        name = "Größe'; DROP TABLE ledger_charge; -- 年齢"
        ledger.reserve(ChargeRequest("wages", name, "p", {name: Charge(Budget(), {name: name})}))
        assert ledger.release("wages", name)[name].event == {name: name}


class TestCommit:
    @pytest.fixture(autouse=True)
    def reserved(self, ledger):
        ledger.reserve(asked("r1", a="1/2", b="1/4"))

    @pytest.mark.parametrize(
        "drawn",
        [
            Noisy(np.array([3, -1, 2**62])),
            Noisy(np.array([], dtype=np.int64)),
            Noisy(np.array([5]), cells=np.array([2**40]), reproducible=True),
        ],
    )
    def test_a_committed_draw_reads_back_byte_for_byte(self, ledger, drawn):
        assert ledger.committed("wages", "r1", "a") is None
        returned = ledger.commit("wages", "r1", "a", drawn)
        stored = ledger.committed("wages", "r1", "a")
        assert returned.to_bytes() == stored.to_bytes() == drawn.to_bytes()
        charge = ledger.release("wages", "r1")["a"]
        assert charge.state is State.COMMITTED
        assert charge.digest == drawn.digest()
        assert ledger.spent("wages") == Budget.of("3/4")

    def test_the_first_draw_stays(self, ledger):
        ledger.commit("wages", "r1", "a", noisy(1, 2))
        assert ledger.commit("wages", "r1", "a", noisy(8, 9)).values.tolist() == [1, 2]
        assert ledger.committed("wages", "r1", "a").values.tolist() == [1, 2]
        assert ledger.committed("wages", "r1", "b") is None

    def test_what_was_not_reserved_cannot_be_committed(self, ledger):
        for dataset, release_id, name in [
            ("wages", "r1", "c"),
            ("wages", "r2", "a"),
            ("health", "r1", "a"),
        ]:
            with pytest.raises(LedgerError, match="never reserved"):
                ledger.commit(dataset, release_id, name, noisy(1))
            assert ledger.committed(dataset, release_id, name) is None

    def test_a_large_draw_is_kept(self, ledger):
        large = Noisy(np.arange(2**20))
        assert ledger.commit("wages", "r1", "a", large).digest() == large.digest()

    def test_a_draw_too_large_for_the_database_is_refused_in_words(self, ledger, monkeypatch):
        monkeypatch.setattr("tasks.ledger.ledger.MAX_PAYLOAD_BYTES", 100)
        with pytest.raises(LedgerError, match="fewer cells"):
            ledger.commit("wages", "r1", "a", noisy(*range(100)))

    @pytest.mark.parametrize("payload", [b"", noisy(1, 3).to_bytes()])
    def test_a_changed_draw_is_never_returned(self, ledger, payload):
        ledger.commit("wages", "r1", "a", noisy(1, 2))
        with by_hand(ledger) as connection:
            connection.execute(update(tables.draw).values(payload=payload))
        with pytest.raises(LedgerError, match="not the one that was committed"):
            ledger.committed("wages", "r1", "a")
        with pytest.raises(LedgerError, match="not the one that was committed"):
            ledger.commit("wages", "r1", "a", noisy(1, 2))

    def test_a_lost_draw_is_noticed(self, ledger):
        ledger.commit("wages", "r1", "a", noisy(1, 2))
        with by_hand(ledger) as connection:
            connection.execute(tables.draw.delete())
        with pytest.raises(LedgerError, match="missing"):
            ledger.committed("wages", "r1", "a")


class TestVoid:
    @pytest.fixture(autouse=True)
    def reserved(self, ledger):
        ledger.reserve(asked("r1", a="1/2", b="1/4"))

    def test_a_void_reservation_gives_its_budget_back(self, ledger):
        ledger.void("wages", "r1", "a", **WHO_WHY)
        assert ledger.spent("wages") == Budget.of("1/4")
        assert ledger.release("wages", "r1")["a"].state is State.VOID

    def test_only_a_reservation_can_be_voided(self, ledger):
        ledger.commit("wages", "r1", "a", noisy(1))
        for name, says in (("a", "COMMITTED"), ("c", "never reserved")):
            with pytest.raises(LedgerError, match=says):
                ledger.void("wages", "r1", name, **WHO_WHY)
        assert ledger.spent("wages") == Budget.of("3/4")

    def test_a_void_charge_is_void_for_good(self, ledger):
        ledger.void("wages", "r1", "a", **WHO_WHY)
        refused(ledger, asked("r1", a="1/2", b="1/4"), LedgerError, r"voided.*new release id")
        with pytest.raises(LedgerError, match="VOID"):
            ledger.commit("wages", "r1", "a", noisy(1))
        with pytest.raises(LedgerError, match="VOID"):
            ledger.void("wages", "r1", "a", **WHO_WHY)
        assert ledger.committed("wages", "r1", "a") is None
        assert ledger.reserve(asked("r2", a="3/4")) == ["a"]

    @pytest.mark.parametrize("field", ["who", "why"])
    def test_every_void_says_who_and_why(self, ledger, field):
        with pytest.raises(InputError, match=field):
            ledger.void("wages", "r1", "a", **{**WHO_WHY, field: " "})
        assert ledger.release("wages", "r1")["a"].state is State.RESERVED


class TestHistory:
    def test_history_tells_everything_in_order(self, ledger):
        ledger.reserve(asked("r1", a="1/2"))
        ledger.commit("wages", "r1", "a", noisy(1))
        ledger.reserve(asked("r2", b="1/4"))
        ledger.void("wages", "r2", "b", who="B. Operator", why="disk died")
        ledger.grant("health", Budget.of(2), **WHO_WHY)

        lines = ledger.history("wages")
        assert [(line.action, line.release_name) for line in lines] == [
            (Action.GRANT, None),
            (Action.RESERVE, "a"),
            (Action.COMMIT, "a"),
            (Action.RESERVE, "b"),
            (Action.VOID, "b"),
        ]
        assert (lines[0].who, lines[0].why) == ("A. Officer", "test")
        assert lines[2].digest == noisy(1).digest()
        assert lines[2].budget == Budget.of("1/2")
        assert (lines[4].who, lines[4].why) == ("B. Operator", "disk died")
        assert [line.dataset for line in ledger.history()] == ["wages"] * 5 + ["health"]

    def test_times_are_utc(self, ledger):
        at = datetime.fromisoformat(ledger.history()[0].at)
        assert at.utcoffset() == timedelta(0)
        assert abs(datetime.now(UTC) - at) < timedelta(minutes=5)

    def test_a_charge_remembers_everything(self, ledger):
        ledger.reserve(asked("r1", a="1/2"))
        charge = ledger.release("wages", "r1")["a"]
        assert charge.charge_id == charge_id("wages", "r1", "a")
        assert (charge.dataset, charge.release_id, charge.release_name) == ("wages", "r1", "a")
        assert (charge.plan_digest, charge.event) == ("p", {"noise": "a"})
        assert charge.budget == Budget.of("1/2")
        assert (charge.committed_at, charge.digest) == (None, None)


def test_names_that_run_together_are_different_charges():
    assert charge_id("ab", "c", "d") != charge_id("a", "bc", "d")
    assert charge_id('a", "b', "c", "d") != charge_id("a", 'b", "c', "d")


class TestDamage:
    @pytest.mark.parametrize("damage", ["", "0.5x", "-1", "1/0", "nan"])
    def test_an_amount_that_is_no_budget_stops_everything(self, ledger, damage):
        ledger.reserve(asked("r1", a="1/2"))
        with by_hand(ledger) as connection:
            connection.execute(update(tables.charge).values(alpha=damage))
        for method in (ledger.spent, ledger.remaining, ledger.history):
            with pytest.raises(LedgerError, match="restore it from a backup"):
                method("wages")
        with pytest.raises(LedgerError, match="restore it from a backup"):
            ledger.reserve(asked("r2", b="1/4"))

    def test_a_grant_below_what_was_spent_stops_new_charges(self, ledger):
        ledger.reserve(asked("r1", a="1/2"))
        with by_hand(ledger) as connection:
            connection.execute(update(tables.granted).values(alpha="1/4"))
        with pytest.raises(LedgerError, match="more was spent"):
            ledger.remaining("wages")
        with pytest.raises(LedgerError, match="more was spent"):
            ledger.reserve(ChargeRequest("wages", "r2", "p", {"b": Charge(Budget())}))

    def test_an_event_that_is_no_json_is_noticed(self, ledger):
        ledger.reserve(asked("r1", a="1/2"))
        with by_hand(ledger) as connection:
            connection.execute(update(tables.charge).values(event="{"))
        with pytest.raises(LedgerError, match="cannot be read"):
            ledger.release("wages", "r1")

    def test_the_database_itself_keeps_the_states_apart(self, ledger):
        ledger.reserve(asked("r1", a="1/2"))
        for values in ({"state": "LOST"}, {"state": "COMMITTED"}, {"digest": "00"}):
            with (
                pytest.raises(LedgerError, match="refused"),
                by_hand(ledger) as connection,
            ):
                connection.execute(update(tables.charge).values(**values))
        assert ledger.release("wages", "r1")["a"].state is State.RESERVED

    @pytest.mark.parametrize("version", [1, 6])
    def test_another_layout_is_refused(self, ledger, version):
        with ledger._database.transaction(write=True) as connection:
            connection.execute(update(tables.schema).values(version=version))
        with pytest.raises(LedgerError, match=rf"layout version {version}.*version 5"):
            ledger.reserve(asked("r1", a="1/2"))

    def test_a_failed_transaction_leaves_nothing(self, ledger):
        def fail_half_way() -> None:
            with by_hand(ledger) as connection:
                connection.execute(update(tables.granted).values(alpha="9"))
                raise InterruptedError

        with pytest.raises(InterruptedError):
            fail_half_way()
        with ledger._database.transaction(write=False) as connection:
            assert connection.scalar(select(tables.granted.c.alpha)) == "1"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 1e9])
def test_lock_seconds_must_make_sense(tmp_path, seconds):
    with pytest.raises(ValueError, match="lock_seconds"):
        Ledger(f"sqlite:///{tmp_path}/ledger.db", lock_seconds=seconds)
