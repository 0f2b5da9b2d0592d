"""The planted faults: one wrong line each, as somebody might write it.

``old`` occurs exactly once in ``file`` (``tests/benchmarks/test_mutations.py`` checks it) and ``tests``
are those that ought to notice.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """Replace ``old`` by ``new`` in ``file``, and some test of ``tests`` fails."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


SAMPLING = "dpcore/sampling/"
MECHANISMS = "dpcore/mechanisms/"
RELEASES = "dpcore/releases/"
CONTRACT = "tests/dpcore/releases/test_contract.py"
RELATIONS = "tests/dpcore/releases/test_contract_relations.py"
LINE = "tests/dpcore/test_privacy_line.py"
OF_MECHANISMS = (
    "tests/dpcore/releases/counts",
    "tests/dpcore/releases/densities/test_bandwidth.py",
    "tests/dpcore/releases/machines/test_additive.py",
    "tests/dpcore/releases/tables/test_adaptive_microdata.py",
    "tests/dpcore/releases/tables/test_compressed_microdata.py",
)
"""Tests of releases that make claims about the law of a mechanism of their own."""


def _of_sampling(name: str, module: str, old: str, new: str) -> Fault:
    tests = ("tests/dpcore/sampling", "tests/dpcore/releases/records/test_near_records.py")
    return Fault(name, f"{SAMPLING}{module}.py", old, new, tests)


def _of_mechanism(name: str, module: str, old: str, new: str) -> Fault:
    tests = ("tests/dpcore/mechanisms", LINE, CONTRACT, *OF_MECHANISMS)
    return Fault(name, f"{MECHANISMS}{module}.py", old, new, tests)


def _of_release(name: str, module: str, old: str, new: str) -> Fault:
    room = module.partition("/")[0]
    tests = (f"tests/dpcore/releases/{room}", CONTRACT, RELATIONS)
    return Fault(name, f"{RELEASES}{module}.py", old, new, tests)


def _of_survey(name: str, module: str, old: str, new: str) -> Fault:
    return Fault(name, f"tasks/survey/{module}.py", old, new, ("tests/tasks/survey",))


def _of_ledger(name: str, module: str, old: str, new: str) -> Fault:
    return Fault(name, f"tasks/ledger/{module}.py", old, new, ("tests/tasks/ledger",))


FAULTS: tuple[Fault, ...] = (
    # Randomness
    _of_sampling(
        "production source has a fixed seed",
        "source",
        "return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)",
        "return np.random.Philox(7).random_raw(size).astype(np.uint64)",
    ),
    _of_sampling(
        "production source repeats one word",
        "source",
        "return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)",
        "return np.repeat(np.frombuffer(os.urandom(8), dtype=np.uint64), size)",
    ),
    _of_sampling(
        "production source has 32 random bits a word",
        "source",
        "return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)",
        "return np.frombuffer(os.urandom(4 * size), dtype=np.uint32).astype(np.uint64)",
    ),
    # Samplers
    _of_sampling(
        "zero has two signs beyond the table",
        "rejection",
        "return np.where(minus, -magnitudes, magnitudes)[~minus | (magnitudes > 0)]",
        "return np.where(minus, -magnitudes, magnitudes)",
    ),
    _of_sampling(
        "noise is never negative",
        "rejection",
        "return np.where(_fair_coins(magnitudes.size, source), -magnitudes, magnitudes)",
        "return magnitudes",
    ),
    _of_sampling(
        "folded law of Laplace noise counts zero twice",
        "discrete_laplace",
        "tail_lower = 2 * (a_lower << working) // (one + a_lower)\n"
        "        tail_upper = divide_up(2 * a_upper << working, one + a_upper)",
        "tail_lower = (a_lower << working) // one\n"
        "        tail_upper = divide_up(a_upper << working, one)",
    ),
    _of_sampling(
        "large Laplace noise keeps every remainder",
        "discrete_laplace",
        "low.astype(np.float64) * float(1 / scale),",
        "low.astype(np.float64) * 0.0,",
    ),
    _of_sampling(
        "large Laplace noise has half the scale",
        "discrete_laplace",
        "coarse = _table(scale / (1 << shift), False).draw(trials, source)",
        "coarse = _table(scale / (2 << shift), False).draw(trials, source)",
    ),
    _of_sampling(
        "discrete Gaussian table forgets the two in the exponent",
        "discrete_gaussian",
        "d_lower, d_upper = exp_bounds(1 / (2 * variance), working)",
        "d_lower, d_upper = exp_bounds(1 / variance, working)",
    ),
    _of_sampling(
        "large Gaussian noise forgets the cross term",
        "discrete_gaussian",
        "other = (coarse << (shift + 1)) | low",
        "other = low",
    ),
    _of_sampling(
        "Gaussian magnitudes are not folded",
        "discrete_gaussian",
        "multiplicity = 2 if folded else 1",
        "multiplicity = 1",
    ),
    _of_sampling(
        "a draw in doubt is not refined",
        "inversion",
        "for i in np.flatnonzero(undecided):",
        "for i in np.flatnonzero(undecided)[:0]:",
    ),
    _of_sampling(
        "coins in doubt are decided by floats",
        "bernoulli",
        "for i in np.flatnonzero(np.abs(excess) <= margin):",
        "for i in np.flatnonzero(np.abs(excess) <= margin)[:0]:",
    ),
    _of_sampling(
        "series of the exponential ends a term early",
        "bernoulli",
        "series = 1 - t * (1 - t * (1 / 2) * (1 - t * (1 / 3) * (1 - t * (1 / 4))))",
        "series = 1 - t * (1 - t * (1 / 2) * (1 - t * (1 / 3)))",
    ),
    _of_sampling(
        "uniform integers are taken modulo the bound",
        "sparse",
        "return drawn[drawn < below]",
        "return drawn % below",
    ),
    _of_sampling(
        "false cells may be occupied ones",
        "sparse",
        'return ranks + np.searchsorted(excluded - np.arange(excluded.size), ranks, side="right")',
        "return ranks",
    ),
    _of_sampling(
        "exceedances of another threshold",
        "sparse",
        "tail_lower, tail_upper = exp_bounds((threshold + 1) / scale, bits)",
        "tail_lower, tail_upper = exp_bounds((threshold + 2) / scale, bits)",
    ),
    _of_sampling(
        "choices are kept too often",
        "choice",
        "kept = excess[waiting[:, None], tried] <= reach",
        "kept = excess[waiting[:, None], tried] <= reach + 1",
    ),
    _of_sampling(
        "lattice norm is rounded down",
        "k_norm",
        "return whole + (whole.astype(squares.dtype) ** 2 < squares).astype(np.int64)",
        "return whole",
    ),
    _of_sampling(
        "levels beyond the last are certain",
        "paths",
        "while level >= len(found.sums) or not found.is_tight(bits):",
        "if level >= len(found.sums) and found.is_tight(bits):\n            return 1 << bits, 1 << bits"
        "\n        while not found.is_tight(bits):",
    ),
    # Mechanisms and their prices
    _of_mechanism(
        "Laplace noise of half the scale",
        "laplace",
        "noise = laplace.discrete_laplace(self.scale, self.size, source)",
        "noise = laplace.discrete_laplace(self.scale / 2, self.size, source)",
    ),
    _of_mechanism(
        "one draw of noise for all cells",
        "laplace",
        "noise = laplace.discrete_laplace(self.scale, self.size, source)",
        "noise = np.repeat(laplace.discrete_laplace(self.scale, 1, source), self.size)",
    ),
    _of_mechanism(
        "Laplace scale is sensitivity times alpha",
        "laplace",
        "return sensitivity / alpha",
        "return sensitivity * alpha",
    ),
    _of_mechanism(
        "Laplace event is covered by any share",
        "laplace",
        "return self.scale > 0 and self.l1_sensitivity <= share.alpha * self.scale",
        "return self.scale > 0",
    ),
    _of_mechanism(
        "Gaussian noise of four fifths of the deviation",
        "gaussian",
        "noise = gaussian.discrete_gaussian(self.variance, self.size, source)",
        "noise = gaussian.discrete_gaussian(self.variance * Fraction(16, 25), self.size, source)",
    ),
    _of_mechanism(
        "standard deviation in place of the variance",
        "gaussian",
        "noise = gaussian.discrete_gaussian(self.variance, self.size, source)",
        "noise = gaussian.discrete_gaussian(Fraction(self.stddev), self.size, source)",
    ),
    _of_mechanism(
        "thresholded histogram publishes no false cells",
        "thresholded",
        "false_cells = distinct_integers(self.size, passed, cells, source)",
        "passed = 0\n        false_cells = distinct_integers(self.size, passed, cells, source)",
    ),
    _of_mechanism(
        "thresholded histogram is in the order of drawing",
        "thresholded",
        "order = np.argsort(all_cells)",
        "order = np.arange(len(all_cells))",
    ),
    _of_mechanism(
        "occupied cells pass a threshold one too low",
        "stability",
        "kept = (values > 0) & (noisy > self.threshold)",
        "kept = (values > 0) & (noisy >= self.threshold - 3)",
    ),
    _of_mechanism(
        "threshold for one tenth of the confidence",
        "stability",
        "scale, least_threshold(scale, share.beta), adjacency)",
        "scale, least_threshold(scale, share.beta * 10), adjacency)",
    ),
    _of_mechanism(
        "exponential mechanism forgets the two",
        "exponential",
        "return 2 * sensitivity * selections / alpha",
        "return sensitivity * selections / alpha",
    ),
    _of_mechanism(
        "every choice gets all of alpha",
        "exponential",
        "return 2 * sensitivity * selections / alpha",
        "return 2 * sensitivity / alpha",
    ),
    _of_mechanism(
        "a table of chances is not proved",
        "tabulated",
        "if not is_private(np.array(self.table), self.alpha, self.beta):",
        "if False:",
    ),
    _of_mechanism(
        "an urn without public balls",
        "sampled",
        "prior = math.ceil(a * weight * (1 + 1e-12))",
        "prior = 1",
    ),
    _of_mechanism(
        "low counts are exact one too far",
        "random_laplace",
        "noise[values < self.exact_below] = 0",
        "noise[values <= self.exact_below] = 0",
    ),
    _of_mechanism(
        "gamma counts one of the two records",
        "random_laplace",
        "return Fraction(low * (2 * rows + 1 - low), rows * (rows + 1))",
        "return Fraction(low, rows + 1)",
    ),
    _of_mechanism(
        "the level of smooth noise is published exactly",
        "smooth_laplace",
        "published = levels + laplace.discrete_laplace(1 / self.level_alpha, len(levels), source)",
        "published = levels",
    ),
    _of_mechanism(
        "smooth noise of half the scale",
        "smooth_laplace",
        "return 2 * self.table[min(max(level, 0), len(self.table) - 1)] / self.alpha",
        "return self.table[min(max(level, 0), len(self.table) - 1)] / self.alpha",
    ),
    _of_mechanism(
        "tests of the bandwidth have no noise",
        "propose_test_release",
        "noisy = exact[:, grid - 1] + discrete_laplace(self.test_scale, len(exact), source)",
        "noisy = exact[:, grid - 1]",
    ),
    _of_mechanism(
        "the second stage has no noise",
        "staged",
        "drawn = perturb(second.statistic(tally), drawing, self.steps.rest, source).values",
        "drawn = second.statistic(tally)._values",
    ),
    _of_mechanism(
        "the noise of the second stage is not the one that was priced",
        "staged_gaussian",
        "if any(step.mechanism.event != self.again.event for step, _ in found):",
        "if not found:",
    ),
    _of_mechanism(
        "no round but the first has noise",
        "gaussian_rounds",
        "drawn[:, number] = noisy.values.reshape(times, -1)",
        "drawn[:, number] = exact.reshape(times, -1) if number else noisy.values.reshape(times, -1)",
    ),
    _of_mechanism(
        "the second round has no noise",
        "adaptive_margins",
        "twice[measured] = with_noise(self.again, exact[measured], source)",
        "twice[measured] = exact[measured]",
    ),
    _of_mechanism(
        "tables are chosen from exact counts",
        "adaptive_margins",
        "chosen = self._choice(once)",
        "chosen = self._choice(pairs)",
    ),
    _of_mechanism(
        "triples are chosen without chance",
        "adaptive_margins",
        "place = exponential_choices(among, self.triples.scale, source)[:, None]",
        "place = among.argmin(axis=1, keepdims=True)",
    ),
    _of_mechanism(
        "the choice of triples is free",
        "adaptive_margins",
        "return 2 * self.score_sensitivity * self.selections / self.score_scale, self.selections",
        "return Fraction(0), self.selections",
    ),
    _of_mechanism(
        "pairs imply triples by exact counts",
        "adaptive_margins",
        "order = self._triples_chosen(self._scores(once, exact), source)",
        "order = self._triples_chosen(self._scores(pairs, exact), source)",
    ),
    _of_mechanism(
        "groups are made from exact counts",
        "compressed_margins",
        "for groups, rows in self.by_groups(once):\n            exact[rows]",
        "for groups, rows in self.by_groups(alone.reshape(times, -1)):\n            exact[rows]",
    ),
    _of_mechanism(
        "both rounds get the whole budget",
        "adaptive_margins",
        "(FIRST_PART, 1 - FIRST_PART - part),",
        "(Fraction(1), Fraction(1)),",
    ),
    # The privacy line and neighbours
    Fault(
        "the privacy line prices nothing",
        "dpcore/privacy_line.py",
        "if not affordable(mechanism.event, share):",
        "if False:",
        (LINE,),
    ),
    Fault(
        "the privacy line lets large numbers through",
        "dpcore/privacy_line.py",
        "if len(values) and (values.max() >= LARGEST_VALUE or values.min() <= -LARGEST_VALUE):",
        "if False:",
        (LINE,),
    ),
    Fault(
        "a unit of several records counts as one",
        "dpcore/adjacency.py",
        "return self.most * present",
        "return present",
        (RELATIONS, "tests/dpcore/test_adjacency.py"),
    ),
    Fault(
        "replaced units count like replaced records",
        "dpcore/adjacency.py",
        "return moved if self.public_rows else self.most * max(moved, present)",
        "return moved",
        (RELATIONS, "tests/dpcore/test_adjacency.py"),
    ),
    Fault(
        "squared sensitivity of units is not squared",
        "dpcore/adjacency.py",
        "return self.most * self.sensitivity(moved=moved, present=present)",
        "return self.sensitivity(moved=moved, present=present)",
        (RELATIONS, "tests/dpcore/test_adjacency.py"),
    ),
    # Sensitivities
    _of_release(
        "a moved record counts once in each step",
        "machines/descent",
        "self.adjacency.squared(moved=4 * one, present=one)",
        "self.adjacency.squared(moved=one, present=one)",
    ),
    _of_release(
        "half the noise for sums of products where the number of records is private",
        "machines/curves",
        "present=Fraction(twice, 2)",
        "present=Fraction(twice, 8)",
    ),
    _of_release(
        "a histogram's sensitivity is one",
        "counts/histogram",
        "return self.adjacency.sensitivity(moved=Fraction(2), present=Fraction(1))",
        "return self.adjacency.sensitivity(moved=Fraction(1), present=Fraction(1))",
    ),
    _of_release(
        "products of a replaced record move as those of an added one",
        "numbers/products",
        "several = 2 if differences else 1",
        "several = 1",
    ),
    _of_release(
        "a category's corner is longer than one",
        "numbers/products",
        "return found * math.sqrt(size / (size - 1))",
        "return found * math.sqrt(size)",
    ),
    _of_release(
        "sums of products are not cut",
        "numbers/moments",
        "max(-most, min(most, each)) for each",
        "each for each",
    ),
    _of_release(
        "compressed tables share one sensitivity",
        "tables/compressed_microdata",
        "return norm(moved=Fraction(2 * tables), present=Fraction(tables))",
        "return norm(moved=Fraction(2), present=Fraction(1))",
    ),
    _of_release(
        "a replaced record counts as two present ones",
        "tables/sensitivity",
        "largest, agree = _largest_listed(known, polynomial, kept)",
        "largest, agree = 2 * present, np.ones(len(sizes))",
    ),
    _of_release(
        "residuals of odd order are taken for even ones",
        "tables/sensitivity",
        "[[-1.0], [2.0]]",
        "[[-1e-9], [1.0]]",
    ),
    _of_release(
        "the bound for many columns is half of what it should be",
        "tables/sensitivity",
        "return float(polynomial[0]) - tangent",
        "return (float(polynomial[0]) - tangent) / 2",
    ),
    _of_mechanism(
        "all blocks get the noise of the most precise",
        "block_gaussian",
        "gaussian.discrete_gaussian(self.variance / weight, count, source),",
        "gaussian.discrete_gaussian(self.variance, count, source),",
    ),
    _of_mechanism(
        "blocks get Laplace noise of the wrong weight",
        "block_laplace",
        "laplace.discrete_laplace(self.scale / weight, count, source),",
        "laplace.discrete_laplace(self.scale * weight, count, source),",
    ),
    _of_mechanism(
        "differences are those of two noises of the last cell",
        "blocks",
        "        return differences(noise.reshape(-1, *self.axes), 1).reshape(len(noise), self.size)",
        "        return noise[:, : self.size]",
    ),
    _of_release(
        "a hierarchy prices one level",
        "tables/hierarchy",
        "moved, present = Fraction(2 * self.changing), Fraction(len(self.measured))",
        "moved, present = Fraction(2), Fraction(1)",
    ),
    _of_release(
        "a hierarchy forgets the second cell",
        "tables/hierarchy",
        "moved, present = Fraction(2 * self.changing), Fraction(len(self.measured))",
        "moved, present = Fraction(self.changing), Fraction(len(self.measured))",
    ),
    _of_release(
        "adaptive tables forget the second cell",
        "tables/adaptive_microdata",
        "sensitivity = norm(moved=Fraction(2), present=Fraction(1))",
        "sensitivity = norm(moved=Fraction(1), present=Fraction(1))",
    ),
    _of_release(
        "binning forgets the second record",
        "densities/binned_density",
        "moved, present = Fraction(2 * self.whole), Fraction(self.whole)",
        "moved, present = Fraction(self.whole), Fraction(self.whole)",
    ),
    # The survey's side
    _of_survey(
        "one record too many of each unit",
        "bounding",
        'lambda t: t["_place"] < unit.max_rows',
        'lambda t: t["_place"] <= unit.max_rows',
    ),
    _of_survey(
        "records are kept in the order of the table",
        "bounding",
        "order = [md5(text), *(value.asc(nulls_first=True) for value in values)]",
        "order = [ibis.literal(0)]",
    ),
    _of_survey(
        "weights are not cut",
        "bounding",
        "steps = ibis.least(weight / exactly(float(weights.step)), most)",
        "steps = weight / exactly(float(weights.step))",
    ),
    _of_survey(
        "negative weights count",
        "bounding",
        "return table.mutate(**{STEPS: ibis.ifelse(weight >= 0, rounded, 0)})",
        "return table.mutate(**{STEPS: rounded})",
    ),
    _of_survey(
        "a row that stands for several records counts once",
        "tally",
        "STEPS if weights else counts",
        "STEPS if weights else None",
    ),
    _of_survey(
        "negative counts are added up",
        "counts",
        "column.between(*COUNT.bounds)",
        "(column <= COUNT.bounds[1])",
    ),
    # The ledger
    _of_ledger(
        "the ledger adds up what is asked alone",
        "ledger",
        "rules.require_affordable(dataset, release_id, account.caps, spent, asked)",
        "rules.require_affordable(dataset, release_id, account.caps, Budget(), asked)",
    ),
    _of_ledger(
        "the ledger looks at alpha alone",
        "rules",
        "if getattr(asked, name) > getattr(left, name)",
        'if name == "alpha" and getattr(asked, name) > getattr(left, name)',
    ),
    _of_ledger(
        "releases about other units may be added",
        "rules",
        "if len(promises) > 1:",
        "if False:",
    ),
    _of_ledger(
        "a committed draw can be voided",
        "rules",
        "if charge.state is not State.RESERVED:",
        "if charge.state is State.VOIDED:",
    ),
    _of_ledger(
        "caps of concentrated grants add up",
        "queries",
        'if accounts and accounts[-1].composition == grant.composition == "basic":',
        "if accounts and accounts[-1].composition == grant.composition:",
    ),
    _of_ledger(
        "a run of a series does not need those before",
        "rules",
        "missing = [str(run) for run in range(1, charge.run) if run not in charged]",
        "missing = list[str]()",
    ),
    _of_ledger(
        "any run of a series can be voided",
        "rules",
        "later = [c.run for c in same if c.run > charge.run]",
        "later = list[int]()",
    ),
    # Concentrated composition
    Fault(
        "rho may exceed the share",
        "dpcore/mechanism.py",
        "return price[0] <= share.rho and price[1] <= share.beta < 1",
        "return price[1] <= share.beta < 1",
        (LINE, CONTRACT),
    ),
    Fault(
        "a share of rho need not cover the chance to fail",
        "dpcore/mechanism.py",
        "return price[0] <= share.rho and price[1] <= share.beta < 1",
        "return price[0] <= share.rho",
        (LINE, CONTRACT, "tests/dpcore/mechanisms"),
    ),
    Fault(
        "rho is converted with all of beta",
        "dpcore/accounting/concentrated.py",
        "rho = round_down(affordable_rho(promise.alpha, promise.beta - failures))",
        "rho = round_down(affordable_rho(promise.alpha, promise.beta))",
        ("tests/dpcore/accounting",),
    ),
    _of_mechanism(
        "a choice costs a sixteenth of alpha squared",
        "exponential",
        "return alpha**2 / (8 * selections)",
        "return alpha**2 / (16 * selections)",
    ),
    _of_release(
        "a record that leaves a group for another moves one group",
        "numbers/quantiles",
        "math.ceil(len(self.measured) * 2 * sum(alone))",
        "math.ceil(len(self.measured) * sum(alone))",
    ),
    _of_release(
        "only one of several columns' quantiles moves",
        "numbers/quantiles",
        "math.ceil(len(self.measured) * 2 * sum(alone))",
        "math.ceil(2 * sum(alone))",
    ),
    _of_release(
        "no record is replaced by one without a value",
        "densities/answered",
        "return max(moved, present) if self.nullable else moved",
        "return moved",
    ),
    Fault(
        "a run of a series pays for one period alone",
        "dpcore/series.py",
        "return sum(self.run(run)[:in_periods])",
        "return sum(self.run(run)[:1])",
        ("tests/dpcore/test_series.py",),
    ),
    Fault(
        "a retry draws again",
        "tasks/draw.py",
        "if charge.state is State.COMMITTED:\n        return",
        "if False:\n        return",
        ("tests/tasks/test_draw.py",),
    ),
    Fault(
        "data are read before they are reserved",
        "tasks/draw.py",
        "if charge is None or charge.state not in (State.RESERVED, State.COMMITTED):",
        "if charge is None:",
        ("tests/tasks/test_draw.py",),
    ),
    Fault(
        "every draw begins with the same words",
        "tasks/draw.py",
        "perturb(exact, release.mechanism, release.share, source or SystemSource())",
        'perturb(exact, release.mechanism, release.share, type("Same", (), {"reproducible": False,'
        ' "words": lambda self, size: np.random.Philox(1).random_raw(size)})())',
        ("tests/flows/test_release.py",),
    ),
)
