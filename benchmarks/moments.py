"""Coverage of the 95% intervals of ``moments``, whole path repeated.

    python -m benchmarks.moments --dataset adult --alpha 1 --rows 5000 --surveys 200 --json

A public table is taken for the population.  Surveys of ``--rows`` are drawn from it with replacement,
released (discrete Gaussian noise, replace-one, beta 1e-6) and analysed.  For each family of estimates, over
all surveys:

    coverage        how often the interval holds the population's value; null where none was given
    coverage_error  the standard error of that: surveys are independent, intervals of one are not
    width_ratio     median width over that of the survey's own interval, which is not published
    optimum_ratio   median width over that of the same noisy moments if their errors were known: those of
                    the survey itself, and of the noise to first order around the survey's own moments
    refused         the share of intervals that were not given, and are not counted otherwise

``--peers`` also fits the models by AdaSSP (Wang 2018, algorithm 2), at the same alpha and beta and with the
same bounds, and prints the root mean squared error of both over the survey's own standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import DATA
from dpcore.arrays import Floats, Integers
from dpcore.budget import Budget
from dpcore.domain import Axis, Categories, Domain, Grid, Tally, in_order
from dpcore.privacy_line import perturb
from dpcore.releases.numbers.moments import Moments
from dpcore.releases.table import SIGMAS_95
from dpcore.sampling.source import SeededSource
