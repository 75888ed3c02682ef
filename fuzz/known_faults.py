"""The faults that are planted, and the tests that should notice.

Each stands for a kind: a formula, a guard for what is rare, a count that is off by one, a check that
is left out. `right` stands once in the file; what stands in its place compiles.
"""

from typing import NamedTuple

ENGINE = "sparsemargin/_engine/"


class Fault(NamedTuple):
    room: str
    file: str
    right: str
    wrong: str


FIRST_ORDER = (
    "engine/test_learning", "engine/test_row_validation", "papers/test_hypotheses",
    "engine/test_max_margin", "engine/test_joint", "engine/test_vector_blocks",
    "engine/test_first_order", "engine/test_range", "engine/test_certificate",
)  # fmt: skip
FILES = (
    "readers/test_row_cache", "readers/test_forged_row_caches", "saving/test_model_files",
    "saving/test_hostile_models", "files/test_damaged_archives", "files/test_archives", "streaming/test_stream",
)  # fmt: skip

#: Tests of what has a fault of that kind.
ROOMS = {
    **dict.fromkeys(
        ("rules", "corrections", "averages", "guards", "epochs", "certificate"), FIRST_ORDER
    ),
    "rows": ("estimators/test_bad_input", "engine/test_corrupted_arrays", *FIRST_ORDER),
    "votes": (*FIRST_ORDER, "engine/test_kernel_space"),
    "matrix": (
        "engine/test_matrix_learning", "engine/test_matrix_extremes", "engine/test_matrix_rules",
        "streaming/test_kernel_files", "saving/test_hostile_models", "saving/test_model_files",
    ),
    "kernel": (
        "engine/test_kernel_models", "engine/test_kernel_input", "engine/test_kernel_space",
        "streaming/test_kernel_files", "papers/test_hypotheses", "engine/test_range",
    ),
    "scanner": (
        "engine/test_scanner", "readers/test_load_svmlight", "saving/test_readable", "streaming/test_stream",
    ),
    "model files": FILES,
    "row cache": FILES,
    "mistakes": ("streaming/test_stream",),
    "arow": ("engine/test_arow",),
    "shards": ("distributed/test_distributed",),
    "weights": ("models/test_weights",),
    "stopping": ("estimators/test_fit_csr",),
    "probabilities": ("models/test_probabilities", "models/test_held_out"),
    "choice": ("estimators/test_auto",),
    "standardization": ("models/test_standardized",),
    "texts": ("text/test_equality", "text/test_edge_cases", "text/test_word_char"),
    "documents": ("readers/test_texts", "streaming/test_stream"),
    "cells": ("cells/test_cells", "cells/test_cell_scales", "cells/test_annotate", "genomes/test_normalizer"),
    "sequences": ("genomes/test_kmers",),
    "stores": ("files/test_remote",),
}  # fmt: skip

#: Of faults that no test can notice, or need not: why.
EXPECTED = {
    "return least < max(FLUSH * average.unit_peak, average.Z / MOST_TERMS)": "as a million equal terms have to be rounded alike; `benchmarks/soak.py` adds them",
    "if entry.shift_before or entry.shift_after or unit > STALE": "as whatever is shifted by 2 moves the unit by 2**(p - 1), or the scores with it",
    "        if converged and self.n_active < self.n_trials:\n"
    "            self._take_rows(None)\n            return learning, False\n": "as the next certificate takes all rows again: later, and the same",
    "max(square - dot(z.data(), z.data(), k), 0.0)": "as `a`, which is added, is 10,000 times what rounding may leave below 0",
    "return (vector.corrections - since >= CORRECTIONS_PER_REFRESH or is_stale(space, vector)": "as all is summed afresh when a call ends; within one, norms alone lose digits",
}

# fmt: off
FAULTS = [Fault(room, file, right, wrong) for (room, file), pairs in {
    ("arow", ENGINE + "core/rules.pxd"): [
        ("min(1.0 - trial.output, rule.C)", "1.0 - trial.output"),
        ("PrecisionGain(1.0, trial.variance, rule.r)", "PrecisionGain(1.0, trial.variance, 1.0)"),
    ],
    ("shards", "sparsemargin/distributed/dual_vectors.py"): [
        ("step = cuts[-1]", "step = 2 * cuts[-1]"),
    ],
    ("shards", "sparsemargin/distributed/slices.py"): [
        ("np.minimum(n**_AS_MANY, _MOST)", "n**_AS_MANY"),
    ],
    ("shards", ENGINE + "mixing/merge.hpp"): [
        ("mean += power * of.steps * inverse", "mean += of.steps * inverse"),
        ("means_before[at]) * precision)", "means_before[at]))"),
        ("power * of.gains", "of.gains"),
    ],
    ("rows", "sparsemargin/estimators/validation.py"): [
        ("setattr(looked_at, name, array.astype(np.int64))", "setattr(looked_at, name, array)"),
    ],
    ("arow", ENGINE + "first_order/linear.pyx"): [
        ("if gain.output - own >= own:", "if True:"),
        ("return gain.output - own", "return gain.output"),
        ("others = sum_others(x, j, gain)", "others = gain.output"),
        ("(t[i] + step * values[j] * moved[j])", "(t[i] + step * values[j])"),
    ],
    ("arow", ENGINE + "core/vectors.pxd"): [
        ("step.gain.factor *= share * scaled", "step.gain.factor *= scaled"),
    ],
    ("weights", "sparsemargin/models/learner.py"): [
        ("return np.cbrt(weight)", "return weight"),
    ],
    ("weights", "sparsemargin/models/fitted/state.py"): [
        ("if self.typical_weight is None:", "if True:"),
    ],
    ("stopping", ENGINE + "fitting/epochs.py"): [
        ("if corrections < self.fewest:", "if corrections <= self.fewest:"),
        ("self.waited >= self.passes", "self.waited > self.passes"),
        ("and self.made >= self.corrections", ""),
    ],
    ("rules", ENGINE + "core/rules.pxd"): [
        ("return rule.margin / pow(<double> k, rule.epsilon)",
         "return rule.margin / pow(<double> k, 0.5)"),
        ("if cosine * relaxed >= 1.0:", "if cosine * relaxed > 2.0:"),
        ("/ across / trial.norm / trial.norm, FREE)", "/ across / trial.norm, FREE)"),
        ("return plain_step(1.0, 0.0, FREE) if trial.output <= 0.0 else restart", "return restart"),
        (" / trial.norm / trial.norm / (rule.p - 1.0)", " / trial.norm / trial.norm"),
        ("max(size, -trial.multiplier)", "size"),
        ("if size == 0.0 and trial.output != 1.0:", "if False:"),
    ],
    ("rules", ENGINE + "numerics/arithmetic.pxd"): [
        ("a[j] = sqrt(a[j]) if power.half else 1.0", "a[j] = 1.0"),
    ],
    ("corrections", ENGINE + "first_order/instance.pxd"): [
        ("    x.slack *= x.scale.factor\n", ""),
    ],
    ("corrections", ENGINE + "core/vectors.pxd"): [
        ("return vector.S.high + vector.S.low + vector.S_slack", "return vector.S.high + vector.S.low"),
        ("        vector.mass /= vector.norm\n", ""),
        ("vector.largest = max(vector.largest, ldexp(row.norm, row.exponent))",
         "vector.largest = ldexp(row.norm, row.exponent)"),
    ],
    ("corrections", ENGINE + "first_order/linear.pyx"): [
        ("vector.S_peak = vector.S_slack = 0.0", "vector.S_peak = 0.0"),
        ("    vector.mass *= step.keep\n", ""),
    ],
    ("corrections", ENGINE + "first_order/trial.pxi"): [
        ("link(&c.link, slack_t[l]) * c.slack", "slack_t[l] * c.slack"),
        ("        c.threshold[l] = next_threshold(&job.rule, c.vectors + l)\n", ""),
    ],
    ("mistakes", ENGINE + "first_order/trial.pxi"): [
        ("return (call.scores[0] >= 0.0) != (code == 1)",
         "return (call.scores[0] > 0.0) != (code == 1)"),
    ],
    ("corrections", ENGINE + "first_order/trials.pyx"): [
        ("    space.vectors[l].S_slack += slack_squares(space, l) - before\n", ""),
    ],
    ("averages", ENGINE + "core/vectors.pxd"): [
        ("trials = max(local - vector.idle, <int64_t> 1)", "trials = max(local, <int64_t> 1)"),
        ("return space.sigma[l] / norm if norm > 0.0 else 0.0", "return space.sigma[l]"),
    ],
    ("averages", ENGINE + "core/vectors.pyx"): [
        ("                vector.average.begin += self.trials - vector.stopped\n", ""),
        ('np.where(stopped >= 0, stopped, self.trials) - self.vectors["idle"]',
         "np.where(stopped >= 0, stopped, self.trials)"),
    ],
    ("averages", ENGINE + "first_order/linear.pxd"): [
        ("if at.synced[i + l] < c.vectors[l].flushes:", "if False:"),
    ],
    ("averages", ENGINE + "first_order/linear.pyx"): [
        ("        at.synced[i] = 0\n", ""),
        ("        at.synced[i] = flushes\n", ""),
        ("if must_flush(&vector.average, min(before, unit(space, l))):",
         "if must_flush(&vector.average, before):"),
    ],
    ("averages", ENGINE + "first_order/trial.pxi"): [
        ("count_correction(rule, c, l, of_row, mass, call.trials + 1)",
         "count_correction(rule, c, l, of_row, mass, call.trials)"),
    ],
    ("guards", ENGINE + "numerics/average.pxd"): [
        ("return total < (STALE_P if telescopes else STALE_2) * peak", "return False"),
        ("return least < max(FLUSH * average.unit_peak, average.Z / MOST_TERMS)",
         "return 0.0 < least < max(FLUSH * average.unit_peak, average.Z / MOST_TERMS)"),
        ("return least < max(FLUSH * average.unit_peak, average.Z / MOST_TERMS)",
         "return least < FLUSH * average.unit_peak"),
        ("max(FLUSH * average.unit_peak, average.Z / MOST_TERMS)", "average.Z / MOST_TERMS"),
    ],
    ("guards", ENGINE + "first_order/linear.pyx"): [
        ("if vector.norm < 16.0 * eps * peak:", "if vector.norm < 0.0:"),
        ("vector.S_slack *= pow(factor, space.p.exponent)", "vector.S_slack *= factor"),
        ("    for j in range(space.n_slack):\n        space.slack_t[j * space.n_vectors + l] *= factor\n",
         ""),
        ("        nonzero += (t[i] != 0) - (old != 0.0)\n", "        nonzero += (t[i] != 0)\n"),
        ("    if shift * space.p.exponent > space.window:\n", "    if False:\n"),
        ("    if vector.nonzero == 0:\n        vector.S = Sum(0.0, 0.0, 0.0)\n        vector.S_peak = 0.0\n",
         ""),
    ],
    ("guards", ENGINE + "first_order/trial.pxi"): [
        ("        bound *= job.stretch\n", "        pass\n"),
        ("        bound *= sqrt(<double> (row.nnz + 2))\n", "        pass\n"),
        ("not LEAST < largest < 1.0 / LEAST):", "False):"),
    ],
    ("guards", ENGINE + "rows/csr.hpp"): [
        ("middle + plain - exponent", "middle + 1000 - exponent"),
    ],
    ("guards", ENGINE + "rows/csr.pyx"): [
        ("return bound if bound > 1e-140 else INFINITY", "return bound"),
    ],
    ("guards", ENGINE + "rows/scores.hpp"): [
        ("!(1e-30 < std::fabs(total))", "false"),
    ],
    ("votes", ENGINE + "first_order/trial.pxi"): [
        ("entry.start = call.trials - c.vectors[l].idle", "entry.start = call.trials"),
    ],
    ("votes", ENGINE + "replay/replay.pyx"): [
        ("if entry.start >= trials:", "if entry.start > trials:"),
        ("if fabs(scores[j]) > ROUNDING * self.sizes[l, j]:", "if fabs(scores[j]) > 0.0:"),
    ],
    ("votes", ENGINE + "replay/linear_replay.pxi"): [
        ("if entry.shift_before or entry.shift_after or unit > STALE", "if unit > STALE"),
    ],
    ("epochs", ENGINE + "first_order/trials.pyx"): [
        ("call.by_trial.shape[0], call.seed + call.passes)", "call.by_trial.shape[0], call.seed)"),
    ],
    ("epochs", ENGINE + "fitting/epochs.py"): [
        ("fit.space.trials + fit.trials_left", "fit.space.trials"),
        ("return learning, converged and stop == self.n_trials", "return learning, converged"),
        ("        if converged and self.n_active < self.n_trials:\n            self._take_rows(None)\n            return learning, False\n",
         ""),
    ],
    ("rows", ENGINE + "rows/csr.hpp"): [
        ("last - U(columns[j])", "U(last + 1 - U(columns[j]))"),
        ("U(columns[j + 1]) - U(columns[j]) - 1", "U(columns[j + 1]) - U(columns[j])"),
        ("!sign(carry)", "carry != 1"),
    ],
    ("matrix", ENGINE + "matrix/base.pyx"): [
        ("            fill(self.w.begin(), self.w.end(), 0.0)\n", "            pass\n"),
        ("if 0 <= self.most_updates <= self.updates:", "if 0 <= self.most_updates < self.updates:"),
        ("(self.trials - self.average.begin) * self.common, self.total.size())",
         "self.trials - self.average.begin, self.total.size())"),
        ('require(len(np.unique(record.fields["slots"])) == n, "\'slots\' hold a row twice")',
         ""),
    ],
    ("matrix", ENGINE + "matrix/higher_order.pyx"): [
        ("if self.c == 0.0 or (self.sparse_updates and agreement < 0.0):",
         "if self.c == 0.0 or (self.sparse_updates and agreement <= 0.0):"),
        ("return self.c / (self.corrections + 1) if self.may_update(grown) else 0.0",
         "return self.c / (self.updates + 1) if self.may_update(grown) else 0.0"),
    ],
    ("matrix", ENGINE + "matrix/second_order.pyx"): [
        ("add_multiple(self.w.data(), self.z.data(), step / self.a, self.n_inner)",
         "add_multiple(self.w.data(), self.z.data(), step, self.n_inner)"),
        ("max(square - dot(z.data(), z.data(), k), 0.0)", "square - dot(z.data(), z.data(), k)"),
    ],
    ("kernel", ENGINE + "kernel/stored_trials.pyx"): [
        ("    vector.S_slack += slack_part\n", ""),
        ("return (vector.corrections - since >= CORRECTIONS_PER_REFRESH or is_stale(space, vector)",
         "return (vector.corrections - since >= CORRECTIONS_PER_REFRESH"),
        ("                    passed_over += 1\n", "                    pass\n"),
    ],
    ("kernel", ENGINE + "kernel/space.pyx"): [
        ("                    self.log.corrections[e].shift_after += shift\n",
         "                    pass\n"),
        ("self.c.slack * self.c.slack * squares", "self.c.slack * squares"),
    ],
    ("certificate", ENGINE + "fitting/certificate.py"): [
        ("                result *= self.space.theta_norm()\n", "                pass\n"),
        ("            result += self._slack_outputs(block)\n", ""),
    ],
    ("scanner", ENGINE + "svmlight/entries.hpp"): [
        ("shape.count() <= MOST_DIGITS", "shape.count() <= 21"),
        ("shape.whole <= MOST_WHOLE_DIGITS", "shape.whole <= 8"),
        ("mantissa <= LARGEST_EXACT", "true"),
    ],
    ("scanner", ENGINE + "svmlight/scanner.hpp"): [
        ("    check_no_nul({p, stop});", ""),
        ("start <= token.stop", "start < token.stop"),
        ("index <= previous || index > limit_", "index < previous || index > limit_"),
        ("lowest = std::min<int64_t>(lowest, rows_.indices[first] + options_.base);",
         "lowest = std::min<int64_t>(lowest, rows_.indices[first]);"),
        ("result.offset = ended;", ""),
    ],
    ("scanner", ENGINE + "svmlight/sorting.hpp"): [
        ("start < other.start", "start > other.start"),
    ],
    ("model files", "sparsemargin/files/archive.py"): [
        (" or self._checksum(content) != info.CRC", ""),
        ("math.prod(shape) * dtype.itemsize != n_left",
         "math.prod(shape) * dtype.itemsize > n_left"),
    ],
    ("model files", ENGINE + "first_order/spaces.pyx"): [
        ('            require_within("columns", state["log"]["columns"], 0, self.c.n_coordinates - 1)\n',
         ""),
        ("require((most <= flushes).all(),", "require(True,"),
    ],
    ("model files", ENGINE + "core/log.pyx"): [
        ('        require_within("row", state["row"], 0, n_rows - 1)\n', ""),
    ],
    ("model files", ENGINE + "state.py"): [
        ("        and array.dtype == dtype\n", ""),
    ],
    ("row cache", "sparsemargin/readers/row_cache.py"): [
        ("    if not rises.all():\n", "    if False:\n"),
        ("rows.labels.max() < n_labels)", "rows.labels.max() <= n_labels)"),
        ("if cache.identity == json.loads(json.dumps(identity)):", "if True:"),
    ],
    ("probabilities", ENGINE + "core/stored_outputs.pxd"): [
        ("    trial -= stored.ahead\n", ""),
        ("if trial & ((<int64_t> 1 << thinning) - 1):", "if False:"),
        ("if trial >= stored.stop or stored.n_places == 0:", "if kept.n_places == 0:"),
    ],
    ("probabilities", ENGINE + "fitting/progressive.py"): [
        ("chosen = chosen[late[chosen] >= 0.5]", "pass"),
        ("outputs.n_trials += min(space.trials - before, task.n_trials)",
         "outputs.n_trials += space.trials - before"),
        ("np.flatnonzero(trials >= max(0, self.n_trials - self.n_held_out) // 2)",
         "np.flatnonzero(trials >= 0)"),
    ],
    ("probabilities", "sparsemargin/models/fitted/held_out.py"): [
        ("np.flatnonzero(folds != fold)", "np.arange(n_rows)"),
    ],
    ("probabilities", "sparsemargin/models/fitted/probabilities.py"): [
        ("progress.steps[recent] ** progress.weight_root", "progress.steps[recent]"),
        ("least = f1.max(axis=0) / 2", "least = f1.max(axis=0)"),
        ("np.hstack([1 - alone, alone])", "np.hstack([alone, 1 - alone])"),
    ],
    ("probabilities", "sparsemargin/models/fitted/outputs.py"): [
        ("known[allowed[-1]]", "known[allowed[0]]"),
    ],
    ("choice", "sparsemargin/models/selection.py"): [
        ("self.error(n_rows) <= _MANY_WRONG and bool(self.wrong[:n_rows].sum() < of_others)",
         "self.error(n_rows) <= _MANY_WRONG"),
        ("return unchanged[int(np.argmax(leads))]", "return running[0]"),
        ("each.lead(best, share) for each in standardized", "each.lead(running[0], share) for each in standardized"),
        ("numbers = np.flatnonzero(counted)", "numbers = np.flatnonzero(counted >= 0)"),
    ],
    ("choice", "sparsemargin/models/few_rows.py"): [
        ("if lead(before, wrong[best], share) > _AHEAD else default", ""),
        ("np.flatnonzero(folds != fold), ", "np.arange(len(folds)), "),
    ],
    ("standardization", "sparsemargin/models/inputs/standardized.py"): [
        ("- coef @ mean", ""),
        ("deviation[deviation <= ", "deviation[deviation < 0 * "),
        ("(rows.data != 0)\n", "1.0\n"),
    ],
    ("texts", ENGINE + "text/lexicon.hpp"): [
        ("if (end == p) return NONE;", ""),
        ("number = number == NONE ? word : insert_pair(pair_of(number, word));",
         "number = word;"),
    ],
    ("texts", ENGINE + "text/counting.pyx"): [
        ("if number == NONE:\n                raise", "if False:\n                raise"),
    ],
    ("texts", ENGINE + "text/characters.hpp"): [
        ("c == '_' || Py_UNICODE_ISALNUM(c)", "Py_UNICODE_ISALNUM(c)"),
    ],
    ("texts", ENGINE + "text/weighing.hpp"): [
        ("n += term.sum == 0;", "++n;"),
        ("if (term.column < 0) continue;", ""),
        ("each.n += each.last != current;", "++each.n;"),
    ],
    ("texts", "sparsemargin/text/families.py"): [
        ("if largest:\n            weigh(", "if False:\n            weigh("),
        ("own_ends += starts[i]", "pass"),
    ],
    ("sequences", ENGINE + "genomes/kmers.pyx"): [
        ("            n_bases = 0\n", "            pass\n"),
        ("backward = (backward >> 2) | ((3 - base) << shift)",
         "backward = (backward >> 2) | (base << shift)"),
        ("            if hashed:\n", "            if False:\n"),
    ],
    ("documents", "sparsemargin/readers/text_lines.py"): [
        ("ends -= (ends > starts) & (self.characters[ends - 1] == ord(\"\\r\"))", "pass"),
        ("np.arange(len(ends)) if keep_empty else np.flatnonzero(ends > starts)", "np.arange(len(ends))"),
        ("if not all_have_tabs or 2 * n_known < n_lines:", "if False:"),
    ],
    ("cells", ENGINE + "rows/counts.pyx"): [
        ("columns[row.columns[j]] == NO_GENE:", "False:"),
        ("lengths[r] -= columns[row.columns[j]] < 0", "pass"),
        ("if count != value:", "if False:"),
        ("return NO_LOGARITHM if largest > LARGEST_LOGARITHM else OK", "return OK"),
    ],
    ("cells", "sparsemargin/cells/source.py"): [
        ("order = order[labels[order] >= 0]", "pass"),
    ],
    ("cells", "sparsemargin/cells/learn.py"): [
        ("len(np.unique(groups)) < 2:", "False:"),
    ],
    ("cells", "sparsemargin/cells/genes.py"): [
        ("_VERSION.sub(r\"\\1\", name)", "name"),
        ("is_enough = share >= _LEAST_SHARE", "is_enough = True"),
        ("free.setdefault(key, i)", "free.__setitem__(key, i)"),
    ],
    ("cells", "sparsemargin/genomes/scales.py"): [
        ("if spread > _SAME_TOTAL:", "if False:"),
        ("found.form == own.form and found.raw == own.raw", "found.form == own.form"),
    ],
    ("stores", "sparsemargin/files/remote.py"): [
        ("                self.check_unchanged()\n                raise ConnectionError", "                raise ConnectionError"),
        ("                data = data[start:stop]\n", "                pass\n"),
        ("status not in _BUSY", "True"),
    ],
}.items() for right, wrong in pairs]

#: Bugs of the scanner of svmlight text, one for each kind, which its fuzzer finds: see planted_bugs.py.
SCANNER_BUGS = [
    Fault(kind, f"{ENGINE}svmlight/{file}", right, wrong)
    for kind, file, right, wrong in (
        ("sorting", "sorting.hpp", "for (; at > 0 && entry", "for (; at > 1 && entry"),
        ("inexact", "entries.hpp", "LARGEST_EXACT = uint64_t{1} << 53", "LARGEST_EXACT = uint64_t{1} << 56"),
        ("whole_digits", "entries.hpp", "MOST_WHOLE_DIGITS = 7;", "MOST_WHOLE_DIGITS = 9;"),
        ("beyond_the_padding", "scanner.hpp", "lines.scan(text, text + ended);\n            if (ended < size) {",
         "lines.scan(text, text + size);\n            if (ended > size) {"),
    )
]
