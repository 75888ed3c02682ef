"""The joint multi-class machine by definition: dense, slow, with Phi written out.

Gentile (JMLR 2, 2001), section 5, item 4: each class has a weight vector, the largest output
determines the prediction, and a correction changes the vectors of the true class and of the other
class with the largest output. That is one machine of `references.first_order`, with one dual
vector over all places ``class x coordinate`` and the instance Phi: x at the place of the true
class, -x at that of the other.
"""

from dataclasses import dataclass

import numpy as np

from references.first_order import corrects
from references.runs import Run, augment, gap, p_norm, resolve_p
from references.weights import class_factors, counted_weights, step_factors


@dataclass
class JointRun(Run):
    """A run whose only row is the Phi of the trial, and whose only multiplier is their sum.

    Its vectors are returned in the shape (n_classes, n_coordinates), with the intercept's
    coordinate last. `smallest_gap` includes the distance of two competing classes at a correction.
    """

    n_classes: int = 2

    def _visible(self, w):
        return w.reshape(self.n_classes, -1)

    def margin_of(self, rows, codes, rule):
        """The smallest ``W.Phi / ||W||_q`` of the last vector; Phi is divided by its norm if the
        rule does so."""
        leads = []
        for x, r in zip(rows, codes, strict=True):
            for s in set(range(self.n_classes)) - {r} if x.any() else ():
                phi = place(x, r, s, self.n_classes)
                size = p_norm(phi, self.p) if rule.normalize is True else 1
                leads.append(self.weights[-1] @ phi / size)
        return min(leads) / p_norm(self.weights[-1], self.q)


def place(x, r, s, n_classes):
    """Return Phi: x at the place of class r, -x at that of class s."""
    phi = np.zeros((n_classes, len(x)), dtype=x.dtype)
    phi[r], phi[s] = x, -x
    return phi.ravel()


def run_joint(
    X,
    labels,
    rule,
    p=2.0,
    *,
    n_epochs=1,
    max_corrections=np.inf,
    sample_weight=None,
    class_weight=None,
    rho=None,
    dtype=np.longdouble,
):
    """Run the joint machine over dense rows in the given order. The parameters are those of
    `run_machines`; `class_weight` is that of the true class.

    Returns
    -------
    JointRun
    """
    classes, codes = np.unique(labels, return_inverse=True)
    rows = augment(X, rho=rho, dtype=dtype)
    of_rows = step_factors(counted_weights(sample_weight, class_weight, labels))
    trials, weight = np.flatnonzero(of_rows), of_rows * class_factors(class_weight, labels)[codes]
    p = resolve_p(p, X.shape[1])
    first = np.zeros((1, len(classes) * rows.shape[1]), dtype)
    run = JointRun(p, X.shape[1], rho, 0.0, dtype, first, n_classes=len(classes))
    norms = [p_norm(place(x, 0, 1, len(classes)), p) for x in rows]
    scale = {"running": 0, "max": max(np.array(norms)[trials])}.get(rule.normalize, 1)
    for visited in range(round(n_epochs * len(trials))):
        i = trials[visited % len(trials)]
        if run.n_corrections == max_corrections:
            return run
        if norms[i] > 0 and weight[i] > 0:
            step_scale = max(scale, norms[i]) if rule.normalize == "running" else scale
            x = rows[i] / norms[i] if rule.normalize is True else rows[i]
            if _try(run, rule, x, codes[i], weight[i], dtype(scale), dtype(step_scale)):
                run.correcting_trials.append(visited)
                scale = step_scale
        run.survivals[-1] += 1
    return run


def _try(run, rule, x, r, weight, scale, step_scale):
    """Try a row, correct it if necessary, and return whether it was corrected."""
    outputs, sizes = run._visible(run.weights[-1]) @ x, run._visible(run.sizes[-1]) @ np.abs(x)
    rivals = [c for c in range(run.n_classes) if c != r]
    s = max(rivals, key=lambda c: outputs[c])
    run.rows = place(x, r, s, run.n_classes)[None]
    if not corrects(run, rule, 0, weight, scale, step_scale):
        return False
    others = [gap(outputs[c], outputs[s], sizes[c] + sizes[s]) for c in rivals if c != s]
    run.smallest_gap = min([run.smallest_gap, *others])
    return True
