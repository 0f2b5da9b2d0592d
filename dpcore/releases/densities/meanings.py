"""What the columns of a published density mean, as its tables say it, and how they may be wrong."""

from dpcore.releases.densities.banded import SIMULTANEOUS, band_meanings
from dpcore.releases.table import ENDS, Uncertainty

MEANINGS = (
    "Density per unit of the columns: the nearest to estimate that is nowhere negative and has mass one",
    "Root mean squared error of density, simulated",
    "Noisy kernel density{divided}; may be negative",
    "Standard deviation of the privacy noise in estimate",
    *band_meanings("the exact kernel density"),
    "How far estimate without noise may be from the exact kernel density: bounds of binning, rounding"
    " and truncation, already in the interval and the band",
    "How far the kernel moved the density, an estimate: what smoothing once more does to estimate; in"
    " neither interval nor band",
)
"""One for each column of values, in their order."""

UNCERTAINTY = (
    Uncertainty(
        "estimate",
        "standard_error",
        ENDS,
        "normal",
        "The variance of the noise is exact; the interval is normal and pointwise, and is wider by"
        " left_out_bound on both sides: it is for the exact kernel density of the records, whatever they"
        " are. It includes neither sampling error nor smoothing bias, of which smoothing_bias is an"
        " estimate.",
    ),
    SIMULTANEOUS,
    Uncertainty(
        "density",
        "density_standard_error",
        ENDS,
        "simulated",
        "From noise, cutting at zero and scaling to mass one, repeated on the published density."
        " The interval is that of estimate.",
    ),
)
