"""A function of a plan, answered point by point: charged once, and its state outlives the process."""

from dpcore.releases.densities.function import SmoothFunction
from dpcore.sampling.source import SystemSource
from papers.online_function.online import OnlineFunction, Questions
from schemas.plan import load_plan
from tasks.budget.charge import missing_draws, reserve_budget
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.conftest import write_plan
from tests.tasks.made_up import made_up_tally


def test_questions_to_a_reserved_function_cost_once_and_are_answered_alike(tmp_path, plan_document):
    path = {"name": "path", "kind": "function", "columns": ["income"], "bandwidth": 0.1}
    plan_document["releases"] = [path]
    plan_document["synthesis"] = []
    plan, state = load_plan(write_plan(tmp_path, plan_document)), tmp_path / "answers"
    reserve_budget.fn(plan, "asked")
    release, ledger = plan.built["path"], Ledger(ledger_url())
    assert isinstance(release, SmoothFunction)
    questions = Questions(
        release.domain, release.rows, release.share, release.kernel, release.bandwidths, 50
    )
    tally = made_up_tally(release.domain, release.rows)

    def ask(*points: float) -> list[float]:
        """As a process of its own: it knows the plan, the survey and the stored state."""
        stored = state.read_bytes() if state.exists() else None
        function = (
            OnlineFunction.from_bytes(questions, stored) if stored else OnlineFunction(questions)
        )
        found = [function.answer((x,), tally, SystemSource()) for x in points]
        state.write_bytes(function.to_bytes())
        return found

    first = ask(0.2, 0.8, 0.5)
    later = ask(0.65, 0.5, 0.8, 0.2)
    assert later[1:] == first[::-1]
    assert later[0] not in first
    reserve_budget.fn(plan, "asked")
    assert ledger.spent("survey") == plan.requested
    assert missing_draws(plan, "asked") == ["path"]  # nothing else is ever drawn from this charge
