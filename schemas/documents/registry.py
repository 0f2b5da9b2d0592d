"""``registry.yaml``: a record for the registry of differential privacy deployments.

In the form of OpenDP's registry (opendp/deployments-registry-data, schemas/deployments-schema.yaml at
commit 057e5d8).  The record is a draft for the registry's second tier; the person who registers it must
review it.  The curator's type is one of a fixed list without a neutral value, so it is left out where
the plan does not state it.
"""

from typing import Any

import yaml

from dpcore.accounting.budget import decimal_text, total
from dpcore.accounting.concentrated import Composition
from schemas.bundle.manifest import Guarantee, Manifest
from schemas.plan import Plan
from schemas.plan.protection import RULES
from schemas.releases.base import Product

NOT_STATED = "Not stated in the release plan."
RANDOM = (
    "Random differential privacy (Hall, Rinaldo and Wasserman 2011), a weaker promise than"
    " differential privacy. {relation} The records and the replacement are independent draws from one"
    " population. Output measure: the (epsilon, delta) divergence, in both directions. Bound on output"
    " distance: epsilon = {alpha}, delta = {beta}, except with probability gamma = {gamma} over the draw"
    " of records and replacement: then the distance may be infinite. Up to about gamma times the number"
    " of records may have no protection."
)


def registry(manifest: Manifest, plan: Plan) -> str:
    """The record as YAML."""
    record = {
        "url_slug": f"{manifest.dataset}-{manifest.release_id}",
        "deployment": {
            "basic": _basic(manifest, plan),
            "dp_variant": {
                "variant_name": _variant(manifest.guarantee),
                "data_domain": f"Tables of {plan.protection.records} records with the columns"
                f" {', '.join(plan.columns)}, whose categories and bounds are public"
                f" (codebook.csv){plan.protection.except_found}."
                f" The guarantee is for {plan.protection.domain}.",
                "unprotected_quantities": _unprotected(plan),
            },
            "privacy_loss": _privacy_loss(manifest.guarantee, plan),
            "deployment_model": {
                "model_name": "Central",
                "release_type": "Many releases" if manifest.scheduled else "One release",
                "release_type_details": f"This release spent {total(plan.prices.values())}"
                f" of the plan's budget of {plan.budget.caps}; a ledger charges every release to it"
                f"{_composed(plan)}."
                + " More releases of this plan follow on a schedule. The budget is never refreshed:"
                " spent amounts stay spent, and only a decision of the publisher adds to it."
                * manifest.scheduled,
                "data_source_type": "Dynamic" if manifest.scheduled else "Static",
                "access_type": "Non-interactive",
            },
            "implementation": _implementation(manifest, plan),
            "administrative": {
                "status": "Draft",
                "registry_authors": [plan.publication.publisher or "dprelease"],
                "tier": 2,
            },
        },
    }
    return yaml.safe_dump(record, sort_keys=False, allow_unicode=True, width=100)


def _basic(manifest: Manifest, plan: Plan) -> dict[str, Any]:
    publication = plan.publication
    curator = {"data_curator_name": publication.publisher or NOT_STATED}
    if publication.curator_type:
        curator["data_curator_type"] = publication.curator_type
    return {
        "name": manifest.title,
        "data_curators": [curator],
        "description": publication.description or manifest.title,
        "intended_use": publication.intended_use or NOT_STATED,
        "data_product_type": _product(manifest, plan),
        "data_product_region": publication.region or NOT_STATED,
        "publication_date": manifest.drawn_at[:10],
    }


def _product(manifest: Manifest, plan: Plan) -> Product:
    """ "Synthetic data" if the bundle has some, otherwise the product type of all releases together."""
    if manifest.synthesis:
        return "Synthetic data"
    products = {plan.section(record.name).product for record in manifest.releases}
    return products.pop() if len(products) == 1 else "Summary statistics"


COMPOSITIONS: dict[Composition, str] = {
    "basic": "Basic composition: the amounts of the releases add up.",
    "concentrated": "Zero-concentrated differential privacy: the releases' rho and their failure"
    " probabilities add up.",
}


def _composed(plan: Plan) -> str:
    """Text on how prices add up, if they are not simply the sum of epsilons."""
    if plan.budget.composition == "basic":
        return ""
    return (
        ". Prices add up as rho of zero-concentrated differential privacy. All releases charged to this"
        f" budget together guarantee {plan.budget.granted.budget}"
    )


def _variant(guarantee: Guarantee) -> str:
    if guarantee.gamma:
        return "Custom"
    return "Approximate DP" if guarantee.beta else "Pure DP"


def _unprotected(plan: Plan) -> str:
    known = "the plan in manifest.json"
    if plan.adjacency.public_rows:
        known = f"the number of records ({plan.rows}), and {known}"
    elif plan.neighbours == "replace-one":
        known = f"the number of units ({plan.protection.one}), and {known}"
    taken = f"nothing in the plan was taken from the records{plan.protection.except_found}"
    return f"{known[0].upper()}{known[1:]}; {taken}."


def _privacy_loss(guarantee: Guarantee, plan: Plan) -> dict[str, Any]:
    relation, known = plan.protection.metric, plan.adjacency.public_rows
    parameters = {"epsilon": float(guarantee.alpha)}
    if guarantee.beta:
        parameters["delta"] = float(guarantee.beta)
    amounts = {name: decimal_text(getattr(guarantee, name)) for name in ("alpha", "beta", "gamma")}
    details = (
        RANDOM.format(relation=relation, **amounts) if guarantee.gamma else guarantee.statement
    )
    return {
        "privacy_unit": f"One {guarantee.privacy_unit} of the table",
        "privacy_unit_details": f"{plan.protection.who}. {relation}" if plan.unit else relation,
        **({"number_of_privacy_units": plan.rows} if known else {}),
        "privacy_parameters": parameters,
        "privacy_parameters_details": details,
    }


def _preprocessing(plan: Plan) -> str:
    """The changes to records before they are counted, by public rules that use each unit alone."""
    done = []
    if plan.protection.total:
        done.append(f"Values are made valid: {RULES[plan.invalid]}.")
    if plan.unit:
        done.append(
            f"At most {plan.unit.max_rows} records of each {plan.unit.name}{plan.protection.within}"
            " are used, chosen by a hash of its own records."
        )
    if plan.weights:
        done.append(
            f"Weights are rounded to multiples of {decimal_text(plan.weights.step)} and cut at"
            f" {decimal_text(plan.weights.largest)}."
        )
    if drawn := plan.drawn_settings:
        done.append(f"Found in the records, with noise and within the budget: {', '.join(drawn)}.")
    rest = (
        f"{'other ' * bool(drawn)}columns, bounds, bins and parameters are stated in the plan, which is"
        " fixed before the records are read."
    )
    return " ".join([*done, f"{'All' if done else 'None on the records:'} {rest}"])


def _implementation(manifest: Manifest, plan: Plan) -> dict[str, str]:
    mechanisms = "".join(
        f"- {record.name}: {plan.section(record.name).words} ({record.title}), by"
        f" {record.mechanism}\n"
        for record in manifest.releases
    )
    return {
        "preprocessing_and_hyperparameter_tuning": _preprocessing(plan),
        "mechanisms": f"{mechanisms}Noise is drawn by integer arithmetic from the operating system's"
        f" generator, by dprelease {manifest.versions['dprelease']}.\n",
        "composition": COMPOSITIONS[plan.budget.composition],
        "post_processing": "Everything in the bundle is computed from the noisy statistics under"
        " draws/: consistent counts that are never negative, densities, synthetic records, error"
        " statements.",
    }
