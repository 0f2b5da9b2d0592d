"""Faults of mechanisms that draw several times, of their prices, and of units in several periods.

Each draw alone may have the right law: what is wrong is that two of them are not independent, that one
is not the one that was priced, or that the sum of their prices is too small.
"""

from __future__ import annotations

from benchmarks.mutations.fault import CONTRACT, Fault, of_mechanism, of_release, of_survey

SERIES = "tests/dpcore/domain/test_series.py"
EVENTS = "tests/dpcore/mechanisms/test_events.py"
FRESH, PRICES = "tests/dpcore/audit/test_fresh.py", "tests/dpcore/audit/test_price.py"


def _of_rounds(name: str, module: str, old: str, new: str, audit: str, *tests: str) -> Fault:
    fault = of_mechanism(name, module, old, new, audit=audit)
    return fault._replace(tests=tests or (PRICES,))


SEVERAL: tuple[Fault, ...] = (
    # Prices of several draws
    _of_rounds(
        "rounds forget the rho of their choices",
        "rounds",
        "return (rounds[0] ** 2 + rounds[1] ** 2) / 2 + chosen, Fraction(0)",
        "return (rounds[0] ** 2 + rounds[1] ** 2) / 2, Fraction(0)",
        "density at a private bandwidth, in rho",
    ),
    _of_rounds(
        "choices before noise are priced at a tenth",
        "rounds",
        "return 2 * self.score_sensitivity * self.selections / self.score_scale, self.selections or 1",
        "alpha = 2 * self.score_sensitivity * self.selections / self.score_scale\n"
        "        return alpha / 10, self.selections or 1",
        "density at a private bandwidth",
    ),
    _of_rounds(
        "a choice beside Gaussian noise is free",
        "rounds",
        "single = (self._spent + GAUSSIAN_PRICE * alpha**2 / number) * least",
        "single = self._spent * least",
        "function at a private bandwidth",
    ),
    _of_rounds(
        "two Laplace rounds cost half their rho",
        "rounds",
        "return (rounds[0] ** 2 + rounds[1] ** 2) / 2 + chosen, Fraction(0)",
        "return (rounds[0] ** 2 + rounds[1] ** 2) / 4 + chosen, Fraction(0)",
        "compressed microdata",
    ),
    _of_rounds(
        "two Gaussian rounds are priced as the second one alone",
        "rounds",
        "return self.sensitivity / self.scale + self.again_sensitivity / self.again_scale",
        "return self.again_sensitivity / self.again_scale",
        "gaussian compressed microdata",
    ),
    _of_rounds(
        "an event of noisy gradients counts one round",
        "gaussian_rounds",
        "return GaussianRoundsEvent(self.l2_sensitivity_squared, self.variance)",
        "return GaussianRoundsEvent(self.l2_sensitivity_squared / len(self.rounds), self.variance)",
        "descent",
    ),
    # Prices of one draw
    _of_rounds(
        "a choice costs half its alpha",
        "exponential",
        "return 2 * self.sensitivity * self.selections / self.scale",
        "return self.sensitivity * self.selections / self.scale",
        "quantiles",
        PRICES,
        EVENTS,
    ),
    _of_rounds(
        "Laplace noise costs half its alpha",
        "laplace",
        "return self.l1_sensitivity / self.scale",
        "return self.l1_sensitivity / self.scale / 2",
        "histogram",
    ),
    _of_rounds(
        "Gaussian noise costs half its rho",
        "gaussian",
        "rho = self.l2_sensitivity_squared / (2 * self.variance)",
        "rho = self.l2_sensitivity_squared / (4 * self.variance)",
        "gaussian margins",
    ),
    # Noise that is used again
    _of_rounds(
        "all rounds of noisy gradients have the same noise",
        "rounds",
        "drawn.append(_drawn(law, self.exact(number, records, point), source))",
        "exact = self.exact(number, records, point)\n"
        "            same = same if number else _drawn(law, exact, source) - exact\n"
        "            drawn.append(exact + same)",
        "descent",
        FRESH,
    ),
    _of_rounds(
        "rounds of noisy gradients have noise and its opposite, in turn",
        "rounds",
        "drawn.append(_drawn(law, self.exact(number, records, point), source))",
        "exact = self.exact(number, records, point)\n"
        "            same = -same if number % 2 else _drawn(law, exact, source) - exact\n"
        "            drawn.append(exact + same)",
        "gradient classifier",
        FRESH,
    ),
    _of_rounds(
        "the second round has the noise of the first",
        "rounds",
        "drawn.append(_drawn(law, self.exact(number, records, point), source))",
        "exact = self.exact(number, records, point)\n"
        "            noisy = _drawn(law, exact, source)\n"
        "            if number:\n"
        "                noise = first * self.again.stddev / self.first.stddev\n"
        "                columns = np.arange(exact.shape[1]) % first.shape[1]\n"
        "                noisy = exact + np.rint(noise[:, columns]).astype(np.int64)\n"
        "            first = noisy - exact\n"
        "            drawn.append(noisy)",
        "gaussian compressed microdata",
        FRESH,
    ),
    _of_rounds(
        "blocks of one weight have the same noise",
        "blocks",
        "result[:, starts[i] : starts[i + 1]] = blocks[i].seen(part)",
        "result[:, starts[i] : starts[i + 1]] = blocks[i].seen(\n"
        "                np.resize(drawn.T, part.T.shape).T\n            )",
        "optimised gaussian margins",
        FRESH,
    ),
    _of_rounds(
        "half of the cells have the noise of the other half",
        "gaussian",
        "noise = gaussian.discrete_gaussian(self.variance, self.size, source)",
        "half = gaussian.discrete_gaussian(self.variance, (self.size + 1) // 2, source)\n"
        "        noise = np.repeat(half, 2)[: self.size]",
        "gaussian margins",
        FRESH,
    ),
    # One draw of several at another scale
    _of_rounds(
        "the second of two rounds has four fifths of its noise",
        "rounds",
        "drawn.append(_drawn(law, self.exact(number, records, point), source))",
        "exact = self.exact(number, records, point)\n"
        "            noisy = _drawn(law, exact, source)\n"
        "            drawn.append(exact + (noisy - exact) * 4 // 5 if number else noisy)",
        "gaussian compressed microdata",
        "tests/dpcore/audit/test_width.py",
    ),
    _of_rounds(
        "the level of smooth noise has half its noise",
        "smooth_laplace",
        "laplace.discrete_laplace(1 / self.level_alpha, len(levels), source)",
        "laplace.discrete_laplace(1 / (2 * self.level_alpha), len(levels), source)",
        "smooth mean",
        "tests/dpcore/audit/test_width.py",
    ),
    of_release(
        "the density at a private bandwidth has the share of both steps",
        "tuned",
        "return self._shares[1]",
        "return self.share",
        audit="density at a private bandwidth",
    )._replace(tests=(CONTRACT,)),
    of_release(
        "the error of a bandwidth moves half as far as it does",
        "densities/least_error",
        "moved = spread(2 * (n - 1) / n**2 * twice - 4 / n * once)",
        "moved = spread(2 * (n - 1) / n**2 * twice - 4 / n * once) / 2",
        audit="density at the bandwidth of least error",
    ),
    of_release(
        "the least loss of a machine moves a tenth as far as it does",
        "machines/tuned",
        "return (largest / rows + gap + 2 * rounded) * (1 + 2.0**-30)",
        "return (largest / rows / 10 + gap + 2 * rounded) * (1 + 2.0**-30)",
        audit="classifier at a private regularisation",
    ),
    # Units in several periods, and of several members
    of_survey(
        "a unit has one period too many in a series",
        "bounding",
        'filter(lambda t: t["_before"] < periods.most)',
        'filter(lambda t: t["_before"] <= periods.most)',
        audit="plan of a series",
    ),
    of_survey(
        "a unit's last periods are kept in a series",
        "bounding",
        "order_by=table[PERIOD]",
        "order_by=table[PERIOD].desc()",
        audit="plan of a series",
    ),
    of_survey(
        "a wide record has one member too many",
        "linked",
        'members.filter(lambda t: t["_place"] < unit.max_rows)',
        'members.filter(lambda t: t["_place"] <= unit.max_rows)',
        audit="plan of households",
    ),
    Fault(
        "a run of a series costs the cube of its part",
        "schemas/plan/series.py",
        "return replace(share, rho=share.rho * part**2)",
        "return replace(share, rho=share.rho * part**3)",
        ("tests/schemas/plan/test_series.py",),
        unseen="an audit is of one run, and the price is of all together",
    ),
)
