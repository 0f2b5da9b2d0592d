"""Everything that exists is documented."""

import inspect
import re
from functools import cache

import pytest

from docs.reference import PAGES
from docs.reference.budgets import ALPHAS, ROWS
from docs.reference.commands import (
    COMMON,
    USUAL,
    arguments,
    commands,
    commands_page,
    described,
    spelled,
)
from docs.reference.mechanisms import PARTS, offers, theorems
from docs.reference.plan import CHOSEN, kind_of, plan_page, sections
from dpcore.errors import DPReleaseError
from flows.cli import EXIT_CODES

# Each page is made once: that takes longer than all that is looked for on it.
page_of_commands, page_of_plans = cache(commands_page), cache(plan_page)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "command"), [pytest.param(*c, id=c[0]) for c in commands()])
def test_every_command_and_option_says_what_it_is_for(name, command):
    page = page_of_commands()
    section, common = (
        page.partition(f"## {title}\n")[2].partition("\n## ")[0] for title in (name, COMMON)
    )
    assert described(command) in section
    for argument in arguments(command):
        words = spelled(argument)
        assert argument.parameter.help, f"{name} {words} has no help"
        described_here = section if argument.parameter.help in section else common
        assert f"`{words}`".replace("|", r"\|") in described_here
        assert argument.parameter.help in described_here
        listed = [*USUAL, *section.rpartition("Also [shared]")[2].replace("`", " ").split()]
        assert argument.name in listed or described_here is section


def test_every_exit_code_of_an_error_is_on_the_page():
    page = page_of_commands()
    for error in (DPReleaseError, *DPReleaseError.__subclasses__()):
        assert f"| {error.exit_code} | {EXIT_CODES[error.exit_code]} |" in page


@pytest.mark.parametrize(("name", "section"), [pytest.param(*s, id=s[0]) for s in sections()])
def test_every_key_of_a_plan_says_what_it_means(name, section):
    page = page_of_plans()
    assert section["description"], name
    for key, node in section["properties"].items():
        closed = "const" in node or "enum" in node or "$ref" in node
        assert node.get("description") or closed, f"{name}.{key} has no description"
        assert f"| `{key}` | " in page or ("const" in node and key in CHOSEN)
        assert "any" not in kind_of(node).split()


def test_every_mechanism_is_a_theorem_of_the_page():
    page = PAGES["reference/mechanisms.md"]()
    for number, mechanism in theorems():
        text = inspect.getdoc(inspect.getmodule(mechanism))
        stated = re.findall(rf"^({'|'.join(PARTS)})\.  ", text, flags=re.M)
        assert tuple(stated) == PARTS, mechanism
        theorem = page.partition(f"## {number}: ")[2].partition("\n## ")[0]
        assert f"{mechanism.__module__}.{mechanism.__name__}" in theorem
        assert "Input: " in theorem
        assert "DP" in theorem
        assert "\n\nSource: " in theorem
    for section, mechanism in offers():
        assert f"`{mechanism}`" in page, section


@pytest.mark.slow
def test_the_page_of_budgets_recommends_what_its_table_shows():
    lines = [line.split(" | ") for line in PAGES["explanation/budgets.md"]().splitlines()]
    bought = {(row[0].strip("| "), row[1]): row[2:] for row in lines if len(row) == 6}
    assert len(bought) == 2 + len(ROWS) * len(ALPHAS)
    assert all(cell.endswith(", good") for cell in bought["10,000", "1"][:3])
    assert "not usable" in bought["1,000", "0.1"][3]
    shares = [float(bought["10,000", alpha][0].split()[0]) for alpha in ALPHAS]
    assert shares == sorted(shares, reverse=True)
