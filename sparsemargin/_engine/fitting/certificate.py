"""The margin that was reached, and an upper bound on the largest margin."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from sparsemargin._engine.rows.csr import row_norms
from sparsemargin._engine.state import array_of

# Rows are left out of the next epochs if their output exceeds 1 by _REACH times the amount by which
# the smallest output is below 1, and by at least _LEAST_REACH.
_REACH = 2.0
_LEAST_REACH = 0.02

# Number of rows whose outputs are in memory at once.
_ROWS_PER_CALL = 1 << 16

# Rounding errors by which a margin may exceed its bound: relative to the bound, and relative to the
# longest row, in whose outputs large terms may cancel.
_OF_BOUND, _OF_ROWS = 1e-6, 1e-9
# Replacement of `_OF_ROWS` if dot products may have been computed in float32.
_OF_ROWS_32 = 1e-5


@dataclass
class SoftMargin:
    """Optimality measures of a soft margin, Tsampouka & Shawe-Taylor (2006), section 4.

    Attributes
    ----------
    objective : ndarray of shape (n_vectors,)
        J = 1 / gamma^2 + (D / (Delta gamma))^2.
    deviation : ndarray of shape (n_vectors,)
        (D' - D) / D.
    """

    objective: np.ndarray
    deviation: np.ndarray

    def __setstate__(self, state):
        self.objective = array_of(state, "objective", np.float64, (None,))
        self.deviation = array_of(state, "deviation", np.float64, self.objective.shape)


class Certificate:
    """Margins of the current vectors over the rows of a task; base class.

    Theta is a sum of ``y x`` with nonnegative multipliers. Therefore no vector has a margin larger
    than ``||theta||_p / L``, where L is the sum of the multipliers. The space stores the smallest
    bound so far.
    """

    # Outputs of all rows, shape (n_rows, n_vectors), if epochs may leave some rows out.
    outputs = None

    def __init__(self, space, rule, task, norms):
        self.space, self.task, self.norms = space, task, norms
        self.measured = norms if rule.measures_rows else np.ones(len(norms))

    @abstractmethod
    def _signed_outputs(self):
        """Yield blocks of rows with ``y w.x`` of each vector, without the soft-margin coordinates.
        Values are infinite for rows of weight 0."""

    @abstractmethod
    def _slack_outputs(self, block):
        """The contribution of the soft-margin coordinates to the signed outputs of a block."""

    def _signed(self, block, result):
        """The outputs of the rows of a block, multiplied by the signs of their labels."""
        task = self.task
        positive = task.is_positive(block, self.space.n_vectors)
        result *= np.where(positive, 1.0, -1.0)
        idle = self._idle(block)[:, np.newaxis]
        result[idle | (np.where(positive, *task.class_weight[::-1]) == 0)] = np.inf
        return result

    def _idle(self, block):
        """Return whether each row of a block is ignored for all vectors, shape (n_rows,)."""
        idle = self.norms[block] == 0
        return idle if self.task.weights is None else idle | (self.task.weights[block] == 0)

    def margin(self):
        """The smallest ``y w.x / ||w||_q``, including the soft-margin coordinates.

        Returns
        -------
        ndarray of shape (n_vectors,)
            Zero for a zero vector.

        Raises
        ------
        RuntimeError
            If it exceeds the upper bound, so that one of the two is wrong.
        """
        norm = self.space.theta_norm()
        least = np.full_like(norm, np.inf)
        for block, result in self._signed_outputs():
            result += self._slack_outputs(block)
            result /= self.measured[block, np.newaxis]
            if self.outputs is not None:
                self.outputs[block] = result
            least = np.minimum(least, result.min(axis=0))
        margin = np.divide(least, norm, out=np.zeros_like(least), where=norm > 0)
        bound = self.space.per_vector("bound")
        above = np.flatnonzero(margin > bound + self._rounding(bound))
        if len(above):
            self._refuse(float(margin[above[0]]), float(bound[above[0]]))
        return margin

    def _longest(self):
        """The largest norm of a row after the division by `measured`."""
        known = self.measured > 0
        return (self.norms[known] / self.measured[known]).max(initial=0.0)

    def _rounding(self, bound):
        """The amount by which a margin may exceed this bound because of rounding errors."""
        return _OF_BOUND * bound + _OF_ROWS * self._longest()

    def _refuse(self, margin, bound):
        raise RuntimeError(
            f"The margin came to {margin:.9g}, and none can exceed {bound:.9g}: one of the two is "
            "wrong, by a fault of sparsemargin, not of the data. Please report it with the "
            "parameters of the fit and, if you may, the rows"
        )

    @np.errstate(all="ignore")
    def soft_margin(self, margin):
        """Optimality of the vectors with these margins, for p = 2.

        If rows are divided by their norms, so are their soft-margin coordinates Delta; the slack of
        a row is then weighted by its norm. The measures are infinite for vectors without a positive
        margin. The squares of rows longer than about 1e150 overflow.
        """
        space, norm = self.space, self.space.visible_norm()
        sound = (norm > 0) & (margin > 0)
        ratio = np.where(sound, space.theta_norm() / norm, 1.0)
        gamma = np.where(sound, margin * ratio, np.inf)
        squares = np.zeros(space.n_vectors)
        for block, result in self._signed_outputs():
            outputs = np.where(sound, result / norm, 0.0)
            slack = np.maximum(gamma * self.measured[block, np.newaxis] - outputs, 0.0)
            squares += (slack**2).sum(axis=0)
        D = np.sqrt(squares)
        D_prime = space.slack * np.sqrt(np.maximum(ratio**2 - 1.0, 0.0))
        J = (1.0 / gamma) ** 2 + (D / (space.slack * gamma)) ** 2
        return SoftMargin(
            objective=np.where(sound, J, np.inf),
            deviation=np.where(sound & (D > 0), (D_prime - D) / D, np.inf),
        )


class LinearCertificate(Certificate):
    """Margins of the vectors of a linear space.

    Parameters
    ----------
    space : LinearSpace
        A space whose soft-margin coordinates are open.
    rule : FirstOrderRule
    task : Task
        The task; its rows have been checked.
    """

    def __init__(self, space, rule, task):
        norms = row_norms(task.rows, space.p, space.bias, space.slack)
        super().__init__(space, rule, task, norms)
        if rule.keeps_multipliers:
            self.outputs = np.empty((len(self.norms), space.n_vectors))

    def _signed_outputs(self):
        outputs_of, _ = self.space.outputs_in_parts("last", self.task.rows, 0, 1)
        for start in range(0, len(self.task.codes), _ROWS_PER_CALL):
            block = slice(start, min(start + _ROWS_PER_CALL, len(self.task.codes)))
            result = outputs_of(block.start, block.stop)
            if self.space.normalized:
                # The outputs refer to hypotheses of norm 1, but margins to the vectors themselves.
                result *= self.space.theta_norm()
            yield block, self._signed(block, result)

    def _slack_outputs(self, block):
        return self.space.slack_outputs(block.start, block.stop)

    def active_rows(self):
        """Mask of the rows that an epoch may still correct, from the outputs of the last `margin`.

        A row is active for a vector in training if its multiplier is not 0, or if its output is not
        far above 1. The distance is derived from the smallest output, because outputs of other rows
        change by similar amounts. The result is None if all rows are active, or none.
        """
        space = self.space
        learning = space.per_vector("stopped") < 0
        outputs = self.outputs[:, learning]
        reach = np.maximum(_LEAST_REACH, _REACH * (1.0 - outputs.min(axis=0)))
        near = (outputs < 1.0 + reach) | (space.multipliers[:, learning] > 0)
        active = near.any(axis=1)
        return None if active.all() or not active.any() else active


class JointCertificate(LinearCertificate):
    """Margins of a joint space: output of the true class minus the largest other output."""

    def __init__(self, space, rule, task):
        super().__init__(space, rule, task)
        if rule.measures_rows:
            self.measured = self.measured * space.stretch

    def _signed(self, block, result):
        codes = self.task.codes[block]
        true = codes[:, np.newaxis] == np.arange(result.shape[1])
        rival = np.where(true, -np.inf, result).max(axis=1)
        lead = result[true] - rival
        lead[self._idle(block) | (self.task.class_weight[1, codes] == 0)] = np.inf
        return lead[:, np.newaxis]


class KernelCertificate(Certificate):
    """Margins of the vectors of a kernel space.

    Parameters
    ----------
    loop : KernelLoop
        The loop; it keeps the scores of the rows of the task.
    """

    def __init__(self, loop):
        self.loop = loop
        loop.all_scores()  # the lengths are known only after all rows have been scored
        norms = np.hypot(loop.lengths, loop.space.slack)
        super().__init__(loop.space, loop.rule, loop.task, norms)

    @np.errstate(over="ignore")
    def _rounding(self, bound):
        kernel, longest = self.loop.kernel, self._longest()
        single = kernel.is_given or self.task.rows.data.dtype == np.float32
        # Products of rows have rounding errors, which affect both the outputs and the norm.
        products = (_OF_ROWS_32 if single else _OF_ROWS) * longest**2
        relative = np.divide(products, bound, out=np.full_like(bound, np.inf), where=bound > 0)
        return _OF_BOUND * bound + relative

    def _refuse(self, margin, bound):
        if self.loop.kernel.is_given:
            raise ValueError(
                f"The kernel is not positive semidefinite: the margin came to {margin:.6g}, and "
                f"with a kernel that is, none can exceed {bound:.6g}. Pass one, such as 'rbf', or "
                "hypothesis='average', which asks for no margin."
            )
        super()._refuse(margin, bound)

    def _slack_parts(self):
        space, slots = self.space, self.loop.slots
        t = np.where(slots >= 0, space.t[:, slots], 0.0)
        return (t * (space.slack**2 * space.per_vector("sigma")[:, np.newaxis])).T

    def _signed_outputs(self):
        sigma = self.space.per_vector("sigma")
        result = self.loop.all_scores().T * sigma - self._slack_parts()
        block = slice(0, len(self.norms))
        yield block, self._signed(block, result)

    def _slack_outputs(self, block):
        return np.abs(self._slack_parts())
