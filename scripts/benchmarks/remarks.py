"""Why a target was missed and what would close the gap, by the key of the row; shown only while it is missed.

Shares of time come from profiles. "Supposed" is what nobody has measured, and so is all that is said to close a gap.
"""

OPTIMUM = (
    "Why: one engine serves samples, groups and resamples alike: it looks for the clock, counts distinct "
    "latencies and makes the whole curve of E_J, where only its minimum is asked for. What would close it: "
    "leaving out blocks whose lower bound W(start)/F(end) is above a value already found, as latfit 0.1 did in a "
    "function that no command called."
)
ADVICE = (
    "Why: five arrays make the curve (F, S, W, completions, E_J), and the careful rule, windows and quantiles "
    "pass over them again and again, bound by memory. What would close it: the curve in pieces that stay in the "
    "cache, and the pruning of `optimum`."
)
EVIDENCE = (
    "Why: pandas 3.1 reads 10⁶ of these rows in 0.15 processor seconds after an import of 0.3 and stops "
    "there; latfit's imports take 0.5, reading with ids, times and refusals checked 0.7, the worlds and the schedule "
    "0.7, and 60 timeouts replayed 0.6. What would close it: fewer jobs on the curve of the replay, and ids checked in "
    "the parser."
)
MEMORY = (
    "Why: the imports take more than half of what pandas needs for 10⁶ rows; then the table (id, site, time, "
    "latency, status) and the observations in their order are alive together. What would close it: "
    "observations read without a table, and ids dropped once they are checked."
)
OUTLIERS = (
    "Why: the imports take longer than pandas needs for everything; the rest is reading, and eight laws fitted to "
    "the distinct latencies for the joint ratio. What would close it: laws imported by name, and no column read "
    "as evidence where none is asked for."
)
ANALYZE = (
    "Why: as for `commands/timeout`, and fits, distances and optima of nine laws on half a million distinct "
    "latencies; the hybrid is more than a third of the whole. What would close it: fits on thinned latencies, "
    "polished by a step or two on all of them."
)
BATCH = (
    "Why: the rival takes one quantile. Of latfit's 4.5 ms a group a fifth goes into the schedule, a fifth into laws "
    "(a half of it for the hybrid on the one group in ten that no simple law fits), a seventh into changes, a "
    "ninth into replaying the log, a tenth into cutoff, ratio and worlds, each some dozen calls on short arrays. "
    "What would close it: the evidence of all groups in one array, as the fits are."
)
INTERVALS = (
    "Why: of 25 ms a group 8 are the refits of its test, 7 the bootstrap of the optimum and 4 that of the schedule; "
    "a sixth of all are Poisson draws. What would close it: the first refits of all groups in one array, one "
    "set of resamples for both intervals, and draws from tables, which would change every interval."
)
REPLAY = (
    "Why: as for `commands/timeout`; the curve of 60 timeouts follows 10 000 jobs by binary search in a million "
    "times. What would close it: 1000 jobs that screen the timeouts."
)
HELP = (
    "Supposed: twenty milliseconds are latfit's own modules of the command line and its names; on a busy machine the "
    "spread is as large as the difference. What would close it: an idle machine tells."
)
STARTUP = (
    "Why: beyond the imports it is the tests of the two hybrid fits, which are rejected, the optima of ten laws and "
    "scipy.optimize for these (0.1 s). What would close it: a root finder of one's own for the optima of laws."
)
STARTUP_TIMEOUT = (
    "Why: scipy.special takes 0.09 s to import (most of it its support of other array libraries), latfit's own 140 "
    "modules 0.1, and the decision 0.1. What would close it: laws and formats imported by name."
)
RANK = (
    "Why: at n = 2137 latfit's time is not arithmetic but 6000 calls on short arrays, in 16 Newton steps over "
    "five laws; the rival answers without ρ. What would close it: fewer steps (better starts), or the laws in one"
    " stacked array."
)
RANK_LARGE = (
    "Supposed: latfit spreads its blocks of latencies over the cores and the rival works on one, so that other load "
    "slows latfit more; on idle cores 48 to 67 were seen. What would close it: fewer Newton steps."
)
DEFECTIVE = (
    "Supposed: as for `rank-large`: on idle cores 2944 to 5000 were seen. What would close it: an idle machine tells."
)
KS_COMPLETE = (
    "Why: both sides are near the cost of drawing, sorting and one cdf a resample; latfit spreads it over the "
    "cores and the rival does not, so that it depends on how idle the second core is. What would close it: single"
    " precision, or stopping once the p-value is settled."
)
KS_NEWTON = (
    "Why: 70 % of the time are Newton steps, four evaluations over all latencies a resample, spread over the "
    "cores: on one busy core the ratio falls. What would close it: one step less by a better start than the "
    "truth."
)
KS_DEFECTIVE = (
    "Why: a quarter of the time is drawing and sorting, a quarter the distances, a third Newton steps. The rival "
    "here is 999 plain fits, without draws and distances; its own test is the row `pvalue/defective`. What would "
    "close it: draws in the order of time (exponential spacings) instead of drawing and sorting."
)
HYBRID = (
    "Why: 40 % of the time finds the best of 32 starts on blocks, 35 % polishes it on every step, and the law "
    "found is checked to be a cdf; the rival is given the truth to start from. What would close it: fewer starts,"
    " at a risk."
)
PEER = (
    "Supposed: latfit works on all cores, the rival's loop on one, so that other load slows latfit more. What "
    "would close it: an idle machine, or more cores."
)
TWO = (
    "Why: the parent shares the two cores and needs a thirtieth of the work to send groups and read rows; the two"
    " cores themselves speed plain numpy (sorting in two threads) up by 1.7 to 1.9. What would close it: a third "
    "core."
)
DASK = (
    "Why: every group is pickled by the client and goes by TCP over the scheduler, a thread of the same process: "
    "the parent needs six times the processor time that it needs for its own pool, and takes it from the workers."
    " What would close it: workers that read the files themselves, as they do on a cluster."
)

REMARKS = {
    "commands/timeout": EVIDENCE,
    "commands/outliers": OUTLIERS,
    "commands/analyze": ANALYZE,
    "commands/replay": REPLAY,
    "commands/batch": BATCH,
    "commands/gzip": OUTLIERS,
    "commands/jsonl": OUTLIERS,
    "commands/parquet": OUTLIERS,
    "commands-large/timeout": EVIDENCE,
    "commands-large/timeout/memory": MEMORY,
    "commands-large/outliers": OUTLIERS,
    "commands-large/outliers/memory": MEMORY,
    "commands/intervals": INTERVALS,
    "startup/analyze": STARTUP,
    "startup/help": HELP,
    "startup/timeout": STARTUP_TIMEOUT,
    "advice/time": ADVICE,
    "advice/memory": ADVICE,
    "optimum/lognormal": OPTIMUM,
    "optimum/seconds": OPTIMUM,
    "optimum/exponential": OPTIMUM,
    "rank/scipy": RANK,
    "rank/surpyval": RANK,
    "rank-large/scipy": RANK_LARGE,
    "rank-large/surpyval": RANK_LARGE,
    "defective/surpyval": DEFECTIVE,
    "pvalue/lognormal": KS_COMPLETE,
    "pvalue/weibull": KS_NEWTON,
    "pvalue/defective-refits": KS_DEFECTIVE,
    "hybrid/curve_fit": HYBRID,
    "batch/peer": PEER,
    "batch/engines/two": TWO,
    "batch/engines/dask": DASK,
}
