"""An evaluation as text for the terminal."""

from tasks.evaluate.compare import LEVELS, Evaluation, Spread
from tasks.explain.explain import text_table


def evaluation_text(evaluation: Evaluation) -> str:
    """The evaluation's results as tables of text."""
    e = evaluation
    left_out = f"; in only one table: {', '.join(e.left_out)}" if e.left_out else ""
    parts = [
        f"{e.real_records:,} real and {e.synthetic_records:,} synthetic records,"
        f" {len(e.columns)} columns{left_out}",
        "\nTotal variation of margins (0: equal, 1: nothing in common)",
        text_table([{"ways": str(ways)} | _row(s) for ways, s in e.margins.items()]),
        "\nReal against synthetic records, separated by boosted trees (propensity score)",
        f"  AUC {e.propensity_auc:.3f} (0.5: indistinguishable, 1: always separated)",
        f"\n{e.classifier.label} of real records, predicted by boosted trees",
        f"  AUC {e.classifier.trained_on_synthetic:.3f} trained on synthetic records,"
        f" {e.classifier.trained_on_real:.3f} on real ones",
    ]
    if e.correlations:
        parts += ["\nDifference of rank correlations", text_table([_row(e.correlations)])]
    if e.quantiles:
        parts.append("\nQuantiles, real / synthetic (difference in standard deviations)")
        parts.append(text_table(_quantiles(e)))
    return "\n".join(parts)


def _row(spread: Spread) -> dict[str, str]:
    return {
        "compared": f"{spread.compared:,}",
        "mean": f"{spread.mean:.4f}",
        "worst": f"{spread.worst:.4f}",
        "worst at": " x ".join(spread.worst_at),
    }


def _quantiles(evaluation: Evaluation) -> list[dict[str, str]]:
    return [
        {"column": name}
        | {
            f"{level:.0%}": f"{ours:.6g} / {theirs:.6g}"
            for level, ours, theirs in zip(LEVELS, errors.real, errors.synthetic, strict=True)
        }
        | {"largest": f"{errors.largest:.3f}"}
        for name, errors in evaluation.quantiles.items()
    ]
