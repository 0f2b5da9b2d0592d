"""Everything that exists is documented."""

import inspect

import pytest

import dpcore.mechanisms
from docs.reference import PAGES
from docs.reference.commands import arguments, commands_page, parsers, spelled
from docs.reference.mechanisms import mechanisms, offers
from docs.reference.method_sheet import SHEET
from docs.reference.plan import kind_of, plan_page, sections
from docs.reference.proofs import counts, law, proofs


@pytest.mark.parametrize("parser", list(parsers()), ids=lambda parser: parser.prog)
def test_every_command_and_option_says_what_it_is_for(parser):
    page = commands_page()
    section = page.partition(f"## {parser.prog}\n")[2].partition("\n## ")[0]
    assert parser.description
    for action in arguments(parser):
        assert action.help, f"{parser.prog} {spelled(action)} has no help"
        assert f"`{spelled(action)}`" in section
        assert action.help in section


@pytest.mark.parametrize(("name", "section"), [pytest.param(*s, id=s[0]) for s in sections()])
def test_every_key_of_a_plan_says_what_it_means(name, section):
    page = plan_page()
    assert section["description"], name
    for key, node in section["properties"].items():
        closed = "const" in node or "enum" in node or "$ref" in node
        assert node.get("description") or closed, f"{name}.{key} has no description"
        assert f"| `{key}` | " in page
        assert "any" not in kind_of(node).split()


def test_every_mechanism_is_on_its_page_with_its_law():
    page = PAGES["reference/mechanisms.md"]()
    assert len(mechanisms()) >= 10
    for mechanism in mechanisms():
        assert inspect.getdoc(mechanism)
        assert f"## {mechanism.__name__}\n" in page
    for section, mechanism in offers():
        assert f"`{mechanism}`" in page, section
    assert "P(z) proportional to exp(-|z|/scale)" in page.replace("\\", "")
    classes = {c for c in vars(dpcore.mechanisms).values() if hasattr(c, "within")}
    assert classes <= set(mechanisms())


def test_every_mechanism_is_listed_with_its_law_and_its_tests():
    contract, others = counts()
    rows = proofs(mechanisms()).splitlines()[2:]
    assert len(rows) == len(mechanisms())
    for mechanism, row in zip(mechanisms(), rows, strict=True):
        assert "DP" in law(mechanism)
        assert contract[mechanism] >= 15  # at least one case, in every claim of the contract
        assert others[mechanism] >= 5
        assert f"| {contract[mechanism]} | {others[mechanism]} |" in row


def test_the_method_sheet_is_whole():
    page = PAGES["reference/method-sheet.md"]()
    words = [word for word in SHEET.read_text().split() if set(word) - set("#-")]
    shown = [word for word in page.split() if set(word) - set("#-")]
    assert [w for w in shown if not w.startswith("```")] == ["title:", "Method", "sheet", *words]
