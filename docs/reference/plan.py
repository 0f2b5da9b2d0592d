"""The page of the plan, from its JSON schema."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from docs.reference.markdown import linked, table
from schemas.plan import Plan

Node = Mapping[str, Any]
Row = tuple[str, str, str]

COMMON = {True: "Keys of many releases", False: "Keys of many columns"}
"""The heading of what many sections describe in the same words: those of releases, and the others."""

WORTH = 17
"""A key is described once for all sections if this saves at least this many words."""

EVERY = ("`name`", "`title`", "`weight`")
"""Keys of every release."""

CHOSEN = ("kind", "type", "mechanism")
"""Keys that a section's heading or its only choice determines: no table repeats them."""

WHOLE = "whole number"

SCALARS = {"text", "truth value", WHOLE, "number"}
"""Together: a value of any column."""

HEAD = """\
# Plan

One YAML document; `dprelease schema` prints its JSON Schema. Unknown keys are errors. A section whose
heading is a key and a value, such as `kind: count`, starts with them. If a release has no key
`mechanism` here, its kind has only one. Budgets, weights and shares may be fractions, such as 1/12."""


def plan_page() -> str:
    """Every section of a plan with every key; those of many sections are described once."""
    head = ["key", "value", "meaning"]
    found = [(name, section, [*_rows(section)]) for name, section in sections()]
    common = {release: _common(found, release) for release in COMMON}
    parts = [HEAD]
    for number, (name, section, rows) in enumerate(found):
        release = _is_release(section)
        shared = {(key, meaning) for key, _, meaning in common[release].values()}
        own = [row for row in rows if (row[0], row[2]) not in shared]
        parts += [f"## {heading(section, name)}", section.get("description", "")]
        if own:
            parts.append(table(head, own))
        also = [row[0] for row in rows if row not in own and not (release and row[0] in EVERY)]
        if also:
            keys = " ".join(also).replace("`", "")
            parts.append(f"Also {linked(COMMON[release], 'shared')}: `{keys}`")
        if number == 0:
            for of, title in COMMON.items():
                every = f"Every release has {', '.join(EVERY)}." if of else ""
                parts += [f"## {title}", every, table(head, common[of].values())]
    return "\n\n".join(part for part in parts if part) + "\n"


def _common(found: list[tuple[str, Node, list[Row]]], release: bool) -> dict[str, Row]:
    """The rows that several sections share, by key; their values may differ as numbers do."""
    rows = [row for _, section, rows in found if _is_release(section) == release for row in rows]
    often = Counter((key, meaning) for key, _, meaning in rows)
    common: dict[str, Row] = {}
    for (key, meaning), number in often.most_common():
        if (number - 1) * len(meaning.split()) >= WORTH and key not in common:
            values = {value for name, value, text in rows if (name, text) == (key, meaning)}
            if len(values) > 1:
                values = {value.replace(WHOLE, "number") for value in values}
            common[key] = key, " or ".join(sorted(values)), meaning
    return common


def _is_release(section: Node) -> bool:
    return "kind" in section["properties"]


def sections() -> Iterator[tuple[str, Node]]:
    """The plan and every section that it may contain, in the order of the schema."""
    schema = Plan.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})
    yield "Plan", schema
    waiting, met = _references(schema["properties"]), set()
    while waiting:
        name = waiting.pop(0)
        if name not in met:
            met.add(name)
            yield name, definitions[name]
            waiting = _references(definitions[name]) + waiting


def heading(section: Node, name: str) -> str:
    """The heading of a section: the key and value that choose it, or its name."""
    for key in ("kind", "type"):
        value = section["properties"].get(key, {}).get("const")
        if value:
            return f"{key}: {value}"
    return "Top level" if section.get("title") == "Plan" else name


def _references(node: Any) -> list[str]:
    if isinstance(node, Mapping):
        own = [node["$ref"].rpartition("/")[2]] if "$ref" in node else []
        return own + [r for k, v in node.items() if k != "discriminator" for r in _references(v)]
    return [r for item in node for r in _references(item)] if isinstance(node, list) else []


def _rows(section: Node) -> Iterator[Row]:
    required = section.get("required", [])
    for key, node in section["properties"].items():
        if "const" in node and key in CHOSEN:
            continue
        default = node.get("default")
        after = " Required." if key in required and "const" not in node else ""
        if default not in (None, "", []) and not isinstance(default, dict):
            after = f" Default: `{default if isinstance(default, str) else json.dumps(default)}`."
        yield f"`{key}`", kind_of(node), f"{node.get('description', '')}{after}".strip()


def kind_of(node: Node) -> str:
    """The values that a key may have, in a few words."""
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "$ref" in node:
        return _link(node["$ref"])
    if node.get("discriminator", {}).get("propertyName") == "kind":
        return linked(COMMON[True], "release")
    choices = node.get("anyOf") or node.get("oneOf")
    if choices:
        found = [kind_of(choice) for choice in choices if choice.get("type") != "null"]
        if set(found) >= SCALARS:
            found = ["value", *(kind for kind in found if kind not in SCALARS)]
        elif "number" in found:
            found = [kind for kind in found if kind != WHOLE]
        return " or ".join(dict.fromkeys(found))
    kind = node.get("type", "any")
    if isinstance(kind, list):
        return "number"
    if kind == "array":
        parts = node.get("prefixItems")
        items = ", ".join(kind_of(p) for p in parts) if parts else kind_of(node.get("items", {}))
        return f"[{items}{'' if parts else ', ...'}]"
    if kind == "object":
        return f"name: {kind_of(node.get('additionalProperties', {}))}"
    return {"string": "text", "boolean": "truth value", "integer": WHOLE}.get(kind, kind)


def _link(reference: str) -> str:
    return linked(dict(_HEADINGS)[reference.rpartition("/")[2]])


_HEADINGS = [(name, heading(section, name)) for name, section in sections()]
