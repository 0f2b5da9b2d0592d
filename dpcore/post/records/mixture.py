"""A mixture of product distributions, fitted to noisy margins: one model of all tables.

In a table of many cells the noise exceeds the signal.  But all tables of a survey describe one
population, so a model of that population estimates each table from the information in all of them:

    weight w_c, and for each attribute a distribution p_ca, of components c = 1..K
    share of records in cell (i, j) of attributes (a, b)  =  sum_c w_c p_ca(i) p_cb(j)

and so for tables of any number of attributes.  Such a model is never negative, and its tables agree.
Its weights and distributions minimise

    sum over tables, sum over cells of (noisy - n share)^2 / (2 variance)
      + DIVERGENCE  sum_c w_c sum_a sqrt(size_a) KL(p_ca || q_a)
      + ROUGHNESS   sum_c w_c sum_a size_a sum of ordered cells (step of log(p_ca / q_a))^2 / 2

where q_a is the noisy one-way margin of a, restricted to the cells that the component may have: rules
can give a component one form (``RecordColumns.forms``), such as households of three.  A residual
contains no information about the tables inside it, so n share is centred before it is compared.  The
first penalty shrinks every component towards independence, more strongly where there are many cells to
fit.  If groups are functions of a detail (``nested``), it shrinks the groups, and the detail given its
group: sqrt(size of group) KL(group) + sqrt(size of detail) (KL(detail) - KL(group)).  The second penalty
makes neighbouring cells of a numeric column (age 31, age 32) differ from the average in nearly the same
way.  Both are in units of log likelihood, so the same constants serve for all budgets.  They were chosen
on the public tables of ``benchmarks/synthesis``, where results change little between half and three
times these values.

All pairs are one matrix product: with P the (K, D) matrix of all p_ca side by side, D the sum of
the sizes, they are the blocks of P' diag(w) P. Other tables that differ only in their last attribute
form one product: (products of the others' p)' diag(w) P. The gradient is another product, and the
descent is Adam (Kingma & Ba 2015) in single precision, on logarithms, with a falling step.  Fitting
mixtures of products to noisy margins is an idea of Aydore et al. 2021 (relaxed tabular data) and Liu,
Vietri & Wu 2021 (GEM).

>>> import numpy as np
>>> noisy = [Margin((0, 1), np.array([[51.0, 2.0], [-3.0, 48.0]]), 9.0)]
>>> mixture = fit_mixture(RecordColumns((2, 2)), noisy, np.random.default_rng(7), total=100)
>>> table = 100 * mixture.shares((0, 1))
>>> bool(abs(table.sum() - 100) < 1e-3), bool(np.all(table > 0)), bool(table[0, 0] > 40)
(True, True, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.nested import Nested
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin, Residual
from dpcore.post.tables.simplex import project_to_simplex

Singles = NDArray[np.float32]

DIVERGENCE = 40.0
ROUGHNESS = 2.5
STEP = 0.1  # the step length of Adam on log probabilities
NEVER = 1e-30  # replaces zero in logarithms, for cells that a component's form excludes
MOST_PRECISE = 1e14  # the largest precision of a share: squared gradients must fit single precision
MEMORY = (0.9, 0.99)  # Adam's decay rates of the mean gradient and the mean squared gradient


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture; ``weights``: (K,), sum 1; ``distributions[a]``: (K, sizes[a]), each row a
    distribution."""

    weights: Floats
    distributions: tuple[Floats, ...]

    def shares(self, attributes: Sequence[int]) -> Floats:
        """The share of records in each cell of the table over one or more attributes."""
        *others, last = (self.distributions[a] for a in attributes)
        weighted = _products(others, len(self.weights)) * self.weights[:, None]
        return (weighted.T @ last).reshape([d.shape[1] for d in (*others, last)])


def fit_mixture(
    columns: RecordColumns,
    margins: Sequence[Margin | Residual],
    generator: np.random.Generator,
    *,
    total: float,
    components: int = 200,
    steps: int = 500,
    progress: Callable[[int, int], None] | None = None,
) -> Mixture:
    """Fit a mixture to noisy margins of ``total`` records, a positive number.

    ``margins``: noisy margins or residuals that determine the one-way table of every attribute.
    Components are divided equally among the forms of the columns, and have probability 0 in cells that
    their form excludes.
    ``progress(done, steps)`` is called after every step.

    Time per step grows as components * ((sum of sizes)^2 + cells of tables of more attributes than
    two), memory as (sum of sizes)^2 + components * cells of the largest of those.
    Deterministic given the generator, up to the rounding of the matrix product.
    """
    descent = _Descent(columns, margins, total, columns.forms, components, generator)
    for done in range(steps):
        # The steps become smaller, so that the descent converges instead of circling a minimum.
        descent.step(STEP * min(1.0, 2.0 * (1.0 - done / steps)))
        if progress is not None:
            progress(done + 1, steps)
    weights, parts = descent.probabilities()
    exact = parts.astype(np.float64)
    return Mixture(
        weights.astype(np.float64) / weights.sum(dtype=np.float64),
        tuple(
            block / block.sum(axis=1, keepdims=True)
            for block in np.split(exact, descent.starts[1:], axis=1)
        ),
    )


def _links(columns: RecordColumns) -> Singles:
    """The penalty (D - 1,) for a step between cells d and d + 1 of the concatenated attributes."""
    result, groups = [], {each.group for each in columns.nested}
    for attribute, size in enumerate(columns.sizes):
        link = np.zeros(size, dtype=np.float32)
        if attribute in columns.in_order and attribute not in groups:
            link[: columns.in_order[attribute] - 1] = ROUGHNESS * size
        result.append(link)
    return np.concatenate(result)[:-1]


class _Several(NamedTuple):
    """Tables (no pairs) that have the same ``others`` and one more attribute, concatenated.

    ``columns`` (R,): the cells of the last attributes among all cells; ``blocks``: where each last
    attribute starts in them; ``target``, ``precision``: (cells of the others, R); ``centred``: whether
    all are residuals, or none is.
    """

    others: tuple[int, ...]
    columns: Integers
    blocks: Integers
    centred: bool
    target: Singles
    precision: Singles


class _Descent:
    """The logarithms of the mixture, and Adam's moments of its gradients.

    ``logs``: (K, D), ``log_weights``: (K,), neither normalised; ``target``, ``precision``: (D, D),
    symmetric, with zero precision if a pair was not drawn; ``centred``: (attributes, D), 1 if a pair
    was drawn as a residual; ``several``: all other tables.
    """

    def __init__(
        self,
        columns: RecordColumns,
        noisy: Sequence[Margin | Residual],
        total: float,
        forms: Booleans,
        components: int,
        generator: np.random.Generator,
    ) -> None:
        sizes, nested = columns.sizes, columns.nested
        self.sizes: Singles = np.asarray(sizes, dtype=np.float32)
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - np.asarray(sizes)
        self.attribute = np.repeat(np.arange(len(sizes)), sizes)
        width = int(self.ends[-1])
        self.target: Singles = np.zeros((width, width), dtype=np.float32)
        self.precision: Singles = np.zeros((width, width), dtype=np.float32)
        self.centred: Singles = np.zeros((len(sizes), width), dtype=np.float32)
        for each in noisy:
            attributes, table, variance = each
            if len(attributes) != 2:
                continue
            one, other = attributes
            here = slice(self.starts[one], self.ends[one])
            there = slice(self.starts[other], self.ends[other])
            self.target[here, there], self.target[there, here] = table / total, table.T / total
            self.precision[here, there] = self.precision[there, here] = _precision(variance, total)
            self.centred[one, there] = self.centred[other, here] = isinstance(each, Residual)
        self.follows = [self._columns(each) for each in nested]
        self.several = self._side_by_side([m for m in noisy if len(m.attributes) != 2], total)
        # An empty cell gets a small share, or it could never be filled.
        agreement = Agreement(tuple(sizes), noisy, total)
        singles = [agreement.margin((a,)).table for a in range(len(sizes))]
        shares = np.concatenate([project_to_simplex(table / total, 1.0) for table in singles])
        scale = np.sqrt(np.asarray(sizes, dtype=np.float64))
        for follower in nested:
            alike = sum(other.detail == follower.detail for other in nested)
            # If a detail has several groups, the penalty is the mean over them.
            scale[follower.group] = (scale[follower.group] - scale[follower.detail]) / alike
        self.divergence: Singles = (DIVERGENCE * scale[self.attribute]).astype(np.float32)
        form = np.arange(components) % len(forms)
        self.allowed = forms[form]
        possible = np.where(self.allowed, shares + 1e-6, 0.0)
        for group, detail, held in self.follows:
            inside = possible[:, detail] @ held
            wanted = np.where(inside > 0, possible[:, group], 0.0)
            possible[:, detail] *= (wanted / np.where(inside > 0, inside, 1.0)) @ held.T
        possible /= np.add.reduceat(possible, self.starts, axis=1)[:, self.attribute]
        for group, detail, held in self.follows:
            possible[:, group] = possible[:, detail] @ held
        self.reference: Singles = np.log(np.maximum(possible, NEVER)).astype(np.float32)
        self.links = np.where(
            self.allowed[:, 1:] & self.allowed[:, :-1], _links(columns), 0.0
        ).astype(np.float32)
        # Equal components would have equal gradients, and stay equal.
        spread = 0.3 * generator.standard_normal((components, width), dtype=np.float32)
        self.logs: Singles = self.reference + np.where(self.allowed, spread, 0)
        self.log_weights: Singles = np.zeros(components, dtype=np.float32)
        self.taken = 0
        self.moments = [
            [np.zeros_like(values), np.zeros_like(values)]
            for values in (self.logs, self.log_weights)
        ]

    def _columns(self, nested: Nested) -> tuple[slice, slice, Singles]:
        """The cells of a group and of its detail, and the matrix from detail to group."""
        group, detail, of = nested
        held = np.asarray(of)[:, None] == np.arange(int(self.sizes[group]))
        places = (slice(self.starts[a], self.ends[a]) for a in (group, detail))
        return (*places, held.astype(np.float32))  # type: ignore[return-value]

    def _side_by_side(self, noisy: Sequence[Margin | Residual], total: float) -> list[_Several]:
        alike: dict[tuple[tuple[int, ...], bool], list[Margin | Residual]] = {}
        for each in noisy:
            kind = each.attributes[:-1], isinstance(each, Residual)
            alike.setdefault(kind, []).append(each)
        found = []
        for (others, is_centred), margins in alike.items():
            lasts = [margin.attributes[-1] for margin in margins]
            tables = [m.table.reshape(-1, m.table.shape[-1]) / total for m in margins]
            precise = [
                np.full(table.shape, _precision(margin.variance, total))
                for table, margin in zip(tables, margins, strict=True)
            ]
            columns = np.concatenate([np.arange(self.starts[a], self.ends[a]) for a in lasts])
            blocks = np.cumsum([0, *(table.shape[1] for table in tables[:-1])])
            target, precision = (
                np.concatenate(parts, axis=1).astype(np.float32) for parts in (tables, precise)
            )
            found.append(_Several(others, columns, blocks, is_centred, target, precision))
        return found

    def probabilities(self) -> tuple[Singles, Singles]:
        """The weights (K,), and all distributions concatenated (K, D)."""
        peaks = np.maximum.reduceat(self.logs, self.starts, axis=1)
        # log-sum-exp within each attribute; normalising the logs themselves changes nothing else
        self.logs -= peaks[:, self.attribute]
        parts = np.exp(self.logs)
        sums = np.add.reduceat(parts, self.starts, axis=1)
        parts /= sums[:, self.attribute]
        self.logs -= np.log(sums)[:, self.attribute]
        for group, detail, held in self.follows:
            parts[:, group] = parts[:, detail] @ held
            self.logs[:, group] = np.log(np.maximum(parts[:, group], NEVER))
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum(), parts

    def step(self, length: float) -> None:
        """One step of Adam."""
        self.taken += 1
        both = zip((self.logs, self.log_weights), self.gradients(), self.moments, strict=True)
        for values, gradient, moments in both:
            _adam(values, gradient, moments, length, self.taken)

    def gradients(self) -> tuple[Singles, Singles]:
        """The gradients of the objective in ``logs`` (K, D) and in ``log_weights`` (K,)."""
        weights, parts = self.probabilities()
        residual = parts.T @ (weights[:, None] * parts)
        self._centre_pairs(residual)
        residual -= self.target
        residual *= self.precision
        ratio = self.logs - self.reference
        penalty = self.divergence * ratio
        steps = np.diff(ratio, axis=1)
        rises = self.links * steps
        slope = parts @ residual  # derivatives of the misfit by w_c p_ca(i)
        # Each pair occurs in the matrix twice, hence the half.
        by_weight = (parts * (slope / 2 + penalty)).sum(axis=1) + (rises * steps).sum(axis=1) / 2
        for tables in self.several:
            by_weight += self._add_slopes(tables, weights, parts, slope)
        slope += penalty
        for group, detail, held in self.follows:
            slope[:, detail] += slope[:, group] @ held.T
            slope[:, group] = 0
        slope *= parts
        # Adding a constant to all logs of a distribution changes nothing.
        slope -= parts * np.add.reduceat(slope, self.starts, axis=1)[:, self.attribute]
        slope[:, :-1] -= rises
        slope[:, 1:] += rises
        slope *= weights[:, None]
        slope *= self.allowed
        return slope, weights * (by_weight - weights @ by_weight)

    def _centre_pairs(self, table: Singles) -> None:
        """Centre, in place, both axes of every pair in (D, D) that was drawn as a residual."""
        if self.centred.any():
            for view in (table, table.T):
                means = np.add.reduceat(view, self.starts, axis=0) / self.sizes[:, None]
                view -= (means * self.centred)[self.attribute]

    def _centre(self, tables: _Several, values: Singles) -> Singles:
        """Centre every axis of every table in values (cells of the others, R)."""
        shaped = values.reshape(*(int(self.sizes[a]) for a in tables.others), -1)
        for axis in range(len(tables.others)):
            shaped = shaped - shaped.mean(axis=axis, keepdims=True)
        values = shaped.reshape(values.shape)
        lengths = np.diff(np.append(tables.blocks, tables.columns.size))
        means = np.add.reduceat(values, tables.blocks, axis=1) / lengths.astype(np.float32)
        return np.asarray(values - np.repeat(means, lengths, axis=1))

    def _add_slopes(
        self, tables: _Several, weights: Singles, parts: Singles, slope: Singles
    ) -> Singles:
        """Add the gradients of some tables' misfit to ``slope``; return the gradient in the weights."""
        others = [parts[:, self.starts[a] : self.ends[a]] for a in tables.others]
        left, right = _products(others, len(parts)), parts[:, tables.columns]
        residual = (weights[:, None] * left).T @ right
        if tables.centred:
            residual = self._centre(tables, residual)
        residual -= tables.target
        residual *= tables.precision
        slope[:, tables.columns] += left @ residual
        back = right @ residual.T
        by_weight = np.asarray((left * back).sum(axis=1))
        back = back.reshape(len(parts), *(part.shape[1] for part in others))
        for i, a in enumerate(tables.others):
            own = back
            # From the last axis on, so that axes before it keep their positions.
            for j in reversed(range(len(others))):
                if j != i:
                    shape = [-1, *(n if k == j else 1 for k, n in enumerate(own.shape[1:]))]
                    own = (own * others[j].reshape(shape)).sum(axis=j + 1)
            slope[:, self.starts[a] : self.ends[a]] += own
        return by_weight


def _precision(variance: float, total: float) -> float:
    """The precision of a share, limited to what single precision can resolve."""
    return min(total**2 / variance, MOST_PRECISE)


def _products(parts: Sequence[NDArray[Any]], components: int) -> NDArray[Any]:
    """The products (K, cells) of distributions (K, size), in the order of a table's cells."""
    result = np.ones((components, 1), dtype=parts[0].dtype if parts else np.float32)
    for part in parts:
        result = (result[:, :, None] * part[:, None, :]).reshape(components, -1)
    return result


def _adam(
    values: Singles, gradient: Singles, moments: list[Singles], length: float, taken: int
) -> None:
    """Move ``values`` against the gradient, in place (Kingma & Ba 2015, algorithm 1)."""
    for moment, memory, power in zip(moments, MEMORY, (gradient, gradient**2), strict=True):
        moment *= np.float32(memory)
        moment += np.float32(1 - memory) * power
    scale = length / (1 - MEMORY[0] ** taken)
    root = np.sqrt(moments[1] / np.float32(1 - MEMORY[1] ** taken))
    root += np.float32(1e-8)
    values -= np.float32(scale) * moments[0] / root
