"""Reads YAML documents into strict sections; errors name the place in the document.

A section forbids unknown keys and cannot be changed once read.  ``read_yaml`` refuses a repeated key,
which plain YAML would silently drop, and categories that YAML would change: it reads yes as a truth
value, 01 as 1, and 1:30 as 90.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from dpcore.errors import PlanError
from dpcore.suggestion import suggestion

LARGEST_BYTES = 2_000_000
"""The largest size of a document; longer lists belong in CSV files (``schemas.survey.public_files``)."""

LARGEST_BITS = 1023
"""The most bits of a whole number: below the largest float, and short enough for Python to print."""

LONGEST_WHOLE = 2 * LARGEST_BITS
"""Each of these whole numbers can be written in at most this many characters."""

WHOLE = "tag:yaml.org,2002:int"


@contextmanager
def inside(place: str) -> Iterator[None]:
    """Within this context, messages of ``ValueError`` begin with this place."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}{error}") from None


def absent(value: Any) -> bool:
    """Whether a value is empty: ``exclude_if`` of new keys, to keep the digests of older plans."""
    return not value


class Section(BaseModel):
    """A part of a document: unknown keys are errors, and its values cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


MOST_REPEATED = 100_000
"""Aliases may add at most this many values to a document; a few nested ones could add billions."""

AS_WRITTEN = {
    "bool": "true|false",
    "int": "-?(0|[1-9][0-9]*)",
    "float": r"-?[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?",
    "null": "(?!)",
    "timestamp": "(?!)",
}
"""For each YAML type, the form of a category that is unambiguous without quotes."""

READ_AS = {
    "bool": "a truth value",
    "int": "a whole number",
    "float": "a number",
    "null": "a missing value",
    "timestamp": "a date",
}


class _StrictLoader(yaml.SafeLoader):
    """A YAML loader that refuses repeated keys, and names the line of a wrong scalar."""

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        sizes: dict[int, int] = {}
        if node is not None and _size(node, sizes) - len(sizes) > MOST_REPEATED:
            raise PlanError(
                f"aliases repeat more than {MOST_REPEATED:,} values: write fewer of them"
            )
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        line = node.start_mark.line + 1
        # YAML reads 1:0:0 as 3600, in time quadratic in its length.
        if node.tag == WHOLE and len(node.value) > LONGEST_WHOLE:
            raise PlanError(f"line {line}: this whole number is too long for a plan")
        try:
            value = super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, ValueError):
            # PyYAML raises these for impossible dates, wrong tags and too many digits.
            kind = node.tag.rpartition(":")[2]
            raise PlanError(f"line {line}: not a valid {kind}; quote it if it is text") from None
        if isinstance(value, int) and value.bit_length() > LARGEST_BITS:
            raise PlanError(f"line {line}: this whole number is too long for a plan")
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, value_node in node.value:
            # The key << may occur several times, and other keys may override what it includes.
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            if key_node.value == "categories" and isinstance(value_node, yaml.SequenceNode):
                for item in value_node.value:
                    self._refuse_misread(item)
            key = self.construct_object(key_node, deep=True)
            self._refuse_misread_key(key_node, key)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise PlanError(f"line {line}: the key {key!r} is repeated")
            seen.add(key)
        return super().construct_mapping(node, deep)

    def _refuse_misread_key(self, node: yaml.Node, key: Any) -> None:
        kind = node.tag.rpartition(":")[2]
        if kind in ("bool", "null") and str(key).lower() != node.value.lower():
            raise PlanError(
                f"line {node.start_mark.line + 1}: YAML reads the key {node.value or '(empty)'} as"
                f" {READ_AS[kind]}; write {json.dumps(node.value, ensure_ascii=False)}, in quotes"
            )

    def _refuse_misread(self, category: yaml.Node) -> None:
        kind, text = category.tag.rpartition(":")[2], category.value
        quoted = not isinstance(category, yaml.ScalarNode) or category.style is not None
        if quoted or kind not in AS_WRITTEN or re.fullmatch(AS_WRITTEN[kind], text, re.IGNORECASE):
            return
        value = self.construct_object(category)
        meant = f"{json.dumps(text, ensure_ascii=False)}, in quotes"
        if value is None:
            meant += " if it is text, or `nullable: true` next to the categories"
        elif isinstance(value, int | float) and math.isfinite(value):
            meant += f" if it is text, or {json.dumps(value)}"
        raise PlanError(
            f"line {category.start_mark.line + 1}: categories: YAML reads {text or 'an empty item'}"
            f" as {READ_AS[kind]}; write {meant}"
        )


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """The number of values of a node with its aliases expanded; ``sizes``: cache of all nodes."""
    if id(node) not in sizes:
        # An alias inside its own value would be expanded for ever; this size refuses it.
        sizes[id(node)] = 2 * MOST_REPEATED
        inner = []
        if isinstance(node, yaml.MappingNode):
            inner = [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            inner = node.value
        sizes[id(node)] = 1 + sum(_size(each, sizes) for each in inner)
    return sizes[id(node)]


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; raises ``PlanError`` if it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise PlanError(
                f"{path}: is larger than {LARGEST_BYTES // 10**6} MB; put a long list of categories,"
                " regions or totals into a CSV file in the plan's folder, and name that file"
            )
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise PlanError(f"{path}: cannot be read ({reason})") from None
    try:
        document = yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", "") or "not YAML"
        if "\\t" in problem:
            problem = "there is a tab; YAML may be indented only by spaces"
        raise PlanError(f"{path}{place}: {problem}") from None
    except PlanError as error:
        raise PlanError(f"{path}, {error}") from None
    except TypeError:
        raise PlanError(f"{path}: a key is itself a list or a mapping") from None
    except RecursionError:
        raise PlanError(f"{path}: lists or mappings are nested too deep") from None
    if not isinstance(document, dict):
        raise PlanError(f"{path}: must be a mapping of keys")
    return document


def read_value(text: str) -> Any:
    """One value as YAML reads it: a whole number, a list, otherwise the text itself.

    A decimal number stays text, so that it loses no digit; plans accept text for numbers.
    """
    try:
        value = yaml.load(text, Loader=_StrictLoader)
    except (yaml.YAMLError, PlanError, TypeError, RecursionError):
        return text
    return text if isinstance(value, float) else value


MOST_FAULTS = 50
"""An error has at most this many lines; further faults are shown once these are corrected."""


FROM_A_PACKAGE = "If another package brings it, install that package"


def faults_of(
    error: ValidationError, document: Any, section: type[BaseModel] | None = None
) -> dict[str, str]:
    """The fault at each place in the document; empty text beyond the first ``MOST_FAULTS`` places.

    ``section``: the model of the document, for suggestions if a key is misspelt.
    """
    first_at: dict[str, str] = {}
    for fault in error.errors():
        if (place := _place(fault, document)) not in first_at:
            first_at[place] = _reason(fault, section) if len(first_at) < MOST_FAULTS else ""
    return first_at


def written_faults(faults: Mapping[str, str]) -> str:
    """Text with a line for each place, for at most ``MOST_FAULTS`` places."""
    lines = [f"  {place}: {reason}" if place else f"  {reason}" for place, reason in faults.items()]
    if len(lines) > MOST_FAULTS:
        lines[MOST_FAULTS:] = [f"  and {len(lines) - MOST_FAULTS:,} more"]
    return "\n".join(lines)


def _place(fault: Any, document: Any) -> str:
    """The place of a fault: pydantic's path, with only the keys of the document."""
    text, node = "", document
    # Pydantic's path also names the types of a union that it tried, which are not in the document.
    for depth, part in enumerate(fault["loc"]):
        absent = fault["type"] == "missing" and depth == len(fault["loc"]) - 1
        if isinstance(node, list) and isinstance(part, int) and part < len(node):
            text, node = f"{text}[{part}]", node[part]
        elif isinstance(node, dict) and (absent or part in node):
            text, node = (f"{text}.{part}" if text else str(part)), node.get(part)
    return text


FEW = 10
"""An error lists at most this many keys of a section."""


def _reason(fault: Any, section: type[BaseModel] | None) -> str:
    value = fault.get("input")
    if fault["type"] == "extra_forbidden":
        keys = _keys(section, fault["loc"][:-1])
        close = suggestion(fault["loc"][-1], keys)
        few = f"; its keys: {', '.join(sorted(keys))}" if 0 < len(keys) <= FEW else ""
        return f"unknown key{close or few}"
    if fault["type"] == "missing":
        if isinstance(fault["loc"][-1], int):
            return "too few items in the list"
        return "missing; the plan must state it"
    text = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] in ("literal_error", "union_tag_invalid"):
        limits = fault["ctx"]
        known = re.findall("'([^']*)'", limits.get("expected") or limits["expected_tags"])
        if len(known) > 1:
            text += suggestion(limits.get("tag", value), known)
        if "open" in limits or limits.get("discriminator") == "'kind'":
            text += f"{' ' if text.endswith('?') else '. '}{FROM_A_PACKAGE}"
    if fault["type"] == "union_tag_not_found":
        return f"must state its {fault['ctx']['discriminator']}".replace("'", "")
    if fault["type"] == "string_type" and isinstance(value, bool | int | float | date):
        kind = "timestamp" if isinstance(value, date) else type(value).__name__
        text = f"must be text, not {READ_AS[kind]}; in YAML, put it in quotes"
    if not isinstance(value, str | int | float):
        return text
    found = repr(value)
    return f"{text} (found {found if len(found) <= 80 else found[:77] + '...'})"


def _keys(section: type[BaseModel] | None, place: Sequence[str | int]) -> set[str]:
    """The keys that a section may have at pydantic's path."""
    found = _sections(section)
    for part in place:
        fields = [(each, field) for each in found for field in each.model_fields.items()]
        inner = [field.annotation for _, (name, field) in fields if part in (name, field.alias)]
        tagged = [
            each
            for each, (_, field) in fields
            if get_origin(field.annotation) is Literal and part in get_args(field.annotation)
        ]
        if inner:
            found = {each for annotation in inner for each in _sections(annotation)}
        elif named := {each for each in found if each in tagged or each.__name__ == part}:
            found = named
    return {field.alias or name for each in found for name, field in each.model_fields.items()}


def _sections(annotation: Any) -> set[type[BaseModel]]:
    """The sections that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {each for part in get_args(annotation) for each in _sections(part)}
