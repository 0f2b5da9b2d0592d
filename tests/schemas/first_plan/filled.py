"""Questionnaires as files, and first plans with their blanks filled in."""

from pathlib import Path

import yaml

from schemas.first_plan.questionnaire import read_questionnaire


def questions(folder: Path, text: str):
    path = folder / "questions.csv"
    path.write_text(text, encoding="utf-8")
    return read_questionnaire(path)


def filled(text: str, rows: int = 20_000, alpha: str = "1") -> dict:
    """The document of a first plan with its blanks filled in."""
    found = yaml.safe_load(text)
    found["rows"], found["publication"]["title"] = rows, "A survey"
    for key in ("granted", "requested"):
        found["budget"][key]["alpha"] = alpha
        if found["budget"][key]["beta"] != "0":
            found["budget"][key]["beta"] = "1e-6"
    for key, value in (("max_rows", 3), ("largest", "100"), ("step", "1")):
        for place in ("privacy_unit", "weights"):
            if isinstance(found.get(place), dict) and found[place].get(key) == "FILL-IN":
                found[place][key] = value
    if weights := found.get("weights"):
        weights["total"] = f"{rows * max(float(weights['largest']) / 10, float(weights['step'])):g}"
    return found
