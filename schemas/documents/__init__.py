"""A bundle's metadata in the formats of several standards, computed from its manifest alone.

    datapackage.json   Frictionless Data Package: every table with its full schema
    registry.yaml      a record for the OpenDP registry of deployments
    dcat.json          a DCAT-US 3 dataset
    croissant.json     a Croissant dataset, for tools of machine learning
    ddi.xml            a DDI codebook, for data archives
    codebook.csv       the survey's columns, categories and labels
    README.md          how to open these tables
    replicates/README.md   how to compute errors with them

What a plan does not state is left out, never made up; so a document may lack facts that its standard
requires, unless the plan states them (``publication``: publisher, contact, curator_type, region,
intended_use).
"""

from schemas.bundle.manifest import Manifest
from schemas.documents.codebook import codebook
from schemas.documents.croissant import croissant
from schemas.documents.datapackage import datapackage
from schemas.documents.dcat import dcat
from schemas.documents.ddi import ddi
from schemas.documents.readme import readme, replicates_readme
from schemas.documents.registry import registry
from schemas.plan import published_plan

DOCUMENTS = {
    "datapackage.json": datapackage,
    "registry.yaml": registry,
    "dcat.json": dcat,
    "croissant.json": croissant,
    "ddi.xml": ddi,
    "codebook.csv": codebook,
    "README.md": readme,
    "replicates/README.md": replicates_readme,
}


def documents(manifest: Manifest) -> dict[str, str]:
    """The text of every document, by its path in the bundle."""
    plan = published_plan(manifest.plan)
    every = {path: write(manifest, plan) for path, write in DOCUMENTS.items()}
    return {path: text for path, text in every.items() if text}
