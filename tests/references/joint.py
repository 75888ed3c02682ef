"""The joint machine of many classes as the mathematics has it: dense, slow, Phi written out.

Gentile (JMLR 2, 2001), section 5, item 4: a weight vector for each class, the largest output
predicts, and a correction moves the vectors of the true class and of its strongest rival. That is
one machine of `reference`, with one dual vector over all places ``class x coordinate`` and the
instance Phi: x at the place of the true class, -x at that of the rival.
"""

from dataclasses import dataclass, field

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from references.first_order import augment, link, p_norm, resolve_p, weight_sizes


@dataclass
class JointRun:
    """All that one run leaves behind.

    Attributes
    ----------
    weights : list of ndarray of shape (n_classes, n_coordinates)
        w_1 = 0, w_2, ..., the intercept's coordinate last.
    survivals : list of int
        c_k: after how many trials w_k was the current vector.
    theta : ndarray of shape (n_classes, n_coordinates)
    mass : float
        The sum of the multipliers that theta is made of.
    bounds : list of float
        ``||theta||_p / mass`` of w_2, w_3, ...
    smallest_gap : float
        As that of `reference.Run`, and how near two rivals came to each other at a correction.
    """

    p: float
    theta: np.ndarray
    mass: float = 0
    weights: list = field(default_factory=list)
    sizes: list = field(default_factory=list)
    survivals: list = field(default_factory=list)
    bounds: list = field(default_factory=list)
    smallest_gap: float = np.inf

    def __post_init__(self):
        self.history = np.zeros_like(self.theta)
        self.adopt(self.theta, self.history)

    def adopt(self, theta, history):
        shape = theta.shape
        self.theta, self.history = theta, history
        self.weights.append(link(theta.ravel(), self.p).reshape(shape))
        sizes = weight_sizes(theta.ravel(), history.ravel(), self.p)
        self.sizes.append(sizes.reshape(shape))
        self.survivals.append(0)

    def correct(self, phi, a, b, loss):
        step = b * phi
        theta = a * self.theta + step
        self.mass = a * self.mass + b
        self.adopt(theta, loss * np.max([a * self.history, np.abs(step), np.abs(theta)], axis=0))
        self.bounds.append(self.theta_norm / self.mass)

    @property
    def n_corrections(self):
        return len(self.weights) - 1

    @property
    def n_trials(self):
        return sum(self.survivals)

    @property
    def theta_norm(self):
        return p_norm(self.theta.ravel(), self.p)

    def _q_norm(self, w):
        return p_norm(w.ravel(), self.p / (w.dtype.type(self.p) - 1))

    @property
    def smallest_norm(self):
        """As that of `reference.Run`."""
        pairs = zip(self.weights, self.sizes, strict=True)
        return min((self._q_norm(w) / self._q_norm(s) for w, s in pairs if s.any()), default=np.inf)

    def _hypotheses(self, normalized):
        return [w / self._q_norm(w) if normalized and w.any() else w for w in self.weights]

    def last(self, normalized=False):
        return self._hypotheses(normalized)[-1]

    def average(self, normalized=False):
        pairs = zip(self.survivals, self._hypotheses(normalized), strict=True)
        return sum(c * w for c, w in pairs) / self.n_trials

    def margin(self, rows, codes, rule):
        """The least ``W.Phi / ||W||_q`` of the last vector, Phi divided by its norm where the rule
        does so."""
        others = set(range(len(self.theta)))
        leads = []
        for x, r in zip(rows, codes, strict=True):
            for s in others - {r} if x.any() else ():
                phi = place(x, r, s, len(self.theta))
                size = p_norm(phi.ravel(), self.p) if rule.normalize is True else 1
                leads.append((self.weights[-1] * phi).sum() / size)
        return min(leads) / self._q_norm(self.weights[-1])


def place(x, r, s, n_classes):
    """Return Phi: x at the place of class r, -x at that of class s."""
    phi = np.zeros((n_classes, len(x)), dtype=x.dtype)
    phi[r], phi[s] = x, -x
    return phi


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
    """Run the joint machine over dense rows in the given order; parameters are as for
    `reference.run_reference`, `class_weight` that of the true class.

    Returns
    -------
    JointRun
    """
    classes, codes = np.unique(labels, return_inverse=True)
    rows = augment(X, rho=rho, dtype=dtype)
    weight = compute_class_weight(class_weight, classes=classes, y=labels)[codes].astype(dtype)
    trial = np.ones(len(rows), bool) if sample_weight is None else np.asarray(sample_weight) > 0
    if sample_weight is not None:
        weight = weight * sample_weight
    run = JointRun(resolve_p(p, X.shape[1]), np.zeros((len(classes), rows.shape[1]), dtype))
    norms = [p_norm(place(x, 0, 1, len(classes)).ravel(), run.p) for x in rows]
    scale = {"running": 0, "max": max(np.array(norms)[trial])}.get(rule.normalize, 1)
    for visited in range(round(n_epochs * len(rows))):
        i = visited % len(rows)
        if run.n_corrections == max_corrections:
            return run
        if not trial[i]:
            continue
        count = run.survivals
        if norms[i] > 0 and weight[i] > 0:
            scale = _try(run, rule, rows[i], codes[i], norms[i], weight[i], dtype(scale))
        count[-1] += 1
    return run


def _try(run, rule, x, r, norm, weight, scale):
    """Try a row, correct where that is due, and return what the rule then divides rows by."""
    k, n_classes = run.n_corrections + 1, len(run.theta)
    outputs, sizes = run.weights[-1] @ x, run.sizes[-1] @ np.abs(x)
    rivals = [c for c in range(n_classes) if c != r]
    s = max(rivals, key=lambda c: outputs[c])
    if rule.normalize is True:
        x, outputs, sizes = x / norm, outputs / norm, sizes / norm
    threshold = x.dtype.type(rule.threshold(k, run.p)) * scale
    lead = outputs[r] - outputs[s]
    _note(run, lead - threshold, sizes[r] + sizes[s] + threshold)
    if lead > threshold:
        return scale
    for c in rivals:
        if c != s:
            _note(run, outputs[c] - outputs[s], sizes[c] + sizes[s])
    phi = place(x, r, s, n_classes)
    step_scale = max(scale, norm) if rule.normalize == "running" else scale
    a, b, loss = rule.update(run.theta.ravel(), (phi / step_scale).ravel(), weight, k, run.p)
    run.correct(phi, a, b / step_scale, loss)
    return step_scale


def _note(run, difference, size):
    """Take down how near a decision came to the other one."""
    if size > 0:
        run.smallest_gap = min(run.smallest_gap, abs(difference) / size)
