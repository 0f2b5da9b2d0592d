"""``ddi.xml``: the survey's columns as a DDI-Codebook 2.5 document (DDI Alliance), for archives.

It describes the release, the files of synthetic records, and every column of the plan: its values with
their labels, its bounds and its unit.  Everything is public; the number of records is the one in the
plan.
"""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from schemas.bundle.manifest import Manifest
from schemas.documents.terms import cited
from schemas.numbers import plain
from schemas.plan import Plan
from schemas.survey.columns import CategoricalColumn, Column

NAMESPACE = "ddi:codebook:2_5"
NULL = "not stated"


def ddi(manifest: Manifest, plan: Plan) -> str:
    """The document as XML."""
    book = Element("codeBook", xmlns=NAMESPACE, version="2.5")
    _study(SubElement(book, "stdyDscr"), manifest, plan)
    files = {}
    for place, record in enumerate(manifest.synthesis, 1):
        files[f"F{place}"] = record.file.columns
        text = SubElement(SubElement(book, "fileDscr", ID=f"F{place}"), "fileTxt")
        _add(text, "fileName", record.file.path)
        size = SubElement(text, "dimensns")
        _add(size, "caseQnty", str(record.file.rows))
        _add(size, "varQnty", str(len(record.file.columns)))
        _add(text, "fileType", "Apache Parquet")
    data = SubElement(book, "dataDscr")
    for place, (name, column) in enumerate(plan.published_columns.items(), 1):
        within = " ".join(file for file, columns in files.items() if name in columns)
        _variable(data, f"V{place}", name, column, within)
    indent(book)
    return tostring(book, encoding="unicode", xml_declaration=True) + "\n"


def _add(parent: Element, tag: str, text: str, **attributes: str) -> Element:
    element = SubElement(parent, tag, attributes)
    element.text = text
    return element


def _study(study: Element, manifest: Manifest, plan: Plan) -> None:
    publication = plan.publication
    citation = SubElement(study, "citation")
    titles = SubElement(citation, "titlStmt")
    _add(titles, "titl", manifest.title)
    _add(titles, "IDNo", f"{manifest.dataset}/{manifest.release_id}")
    if publication.publisher:
        _add(SubElement(citation, "prodStmt"), "producer", publication.publisher)
    if publication.contact:
        _add(SubElement(citation, "distStmt"), "contact", publication.contact)
    version = SubElement(citation, "verStmt")
    _add(version, "version", manifest.release_id, date=manifest.drawn_at[:10])
    _add(citation, "biblCit", cited(manifest, publication))
    about = SubElement(study, "stdyInfo")
    _add(about, "abstract", publication.description or manifest.title)
    summary = SubElement(about, "sumDscr")
    if publication.region:
        _add(summary, "geogCover", publication.region)
    _add(summary, "anlyUnit", "one record of the survey")
    _add(summary, "dataKind", "differentially private tables and synthetic records")
    _add(SubElement(study, "method"), "notes", manifest.guarantee.statement)
    if publication.licence:
        use = SubElement(SubElement(study, "dataAccs"), "useStmt")
        _add(use, "conditions", publication.licence)


def _variable(data: Element, place: str, name: str, column: Column, files: str) -> None:
    kind = "contin" if column.type == "continuous" and column.listed is None else "discrete"
    attributes = {"ID": place, "name": name, "intrvl": kind} | ({"files": files} if files else {})
    variable = SubElement(data, "var", attributes)
    if named := column.label or column.description:
        _add(variable, "labl", named)
    words = [column.description] if column.label and column.description else []
    text = False
    if isinstance(column, CategoricalColumn):
        values = [str(category) for category in column.categories]
        text = not isinstance(column.categories[0], int | float)
    else:
        low, high = (plain(float(bound)) for bound in column.bounds)
        unit = {"UNITS": "REAL" if column.type == "continuous" else "INT"}
        SubElement(SubElement(variable, "valrng"), "range", {**unit, "min": low, "max": high})
        values = [str(level) for level in column.listed or column.labels]
        words += [f"in {column.unit}"] if column.unit else []
    if words:
        _add(variable, "txt", "; ".join(words))
    for value in values:
        category = SubElement(variable, "catgry")
        _add(category, "catValu", value)
        if value in column.labels:
            _add(category, "labl", column.labels[value])
    if column.nullable:
        _add(SubElement(variable, "catgry", missing="Y"), "labl", NULL)
    SubElement(variable, "varFormat", type="character" if text else "numeric")
