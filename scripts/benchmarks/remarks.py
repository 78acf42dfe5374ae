"""Why a target was missed and what would close the gap, by the key of the row; shown only while it is missed.

Shares of time come from profiles. "Probably" marks reasons that were not measured; neither were the proposals.
"""

OPTIMUM = (
    "Why: one engine serves samples, groups and resamples. It detects the clock, counts distinct latencies and "
    "computes the whole curve of E_J, although only its minimum is needed. What would close the gap: skipping blocks "
    "whose lower bound W(start)/F(end) exceeds a value already found, as latfit 0.1 did in a function that no command"
    " called."
)
ADVICE = (
    "Why: the curve consists of five arrays (F, S, W, completions, E_J), and the robust rule, windows and quantiles "
    "pass over them several times, limited by memory bandwidth. What would close the gap: computing the curve in "
    "pieces that fit the cache, and the pruning of `optimum`."
)
EVIDENCE = (
    "Why: pandas 3.1 reads 10⁶ of these rows in 0.15 processor seconds after an import of 0.3 and stops there. "
    "latfit's imports take 0.5, reading with checks of ids, times and refusals 0.7, the worlds and the schedule 0.7, "
    "and the replay of 60 timeouts 0.6. What would close the gap: fewer jobs on the curve of the replay, and checking"
    " ids in the parser."
)
MEMORY = (
    "Why: the imports take more than half of what pandas needs for 10⁶ rows, and the table (id, site, time, latency, "
    "status) and the ordered probes are in memory together. What would close the gap: reading probes without a table,"
    " and dropping ids once they are checked."
)
OUTLIERS = (
    "Why: the imports take longer than everything that pandas does: scipy.special, which loads every part of numpy, a "
    "sixth of the total, latfit's own modules as much. Arrow parses the columns in 1.1 × the time of pandas' C parser, "
    "whose typed parse is not faster. The rest is fitting the laws for the joint ratio. What would close the gap: not "
    "reading columns that the command does not use."
)
ANALYZE = (
    "Why: as for `commands/timeout`, plus the fits, tests and optima of nine laws. The optima of smooth laws take a "
    "quarter, the least squares of the hybrid a fifth, the resamples of tests a sixth; distances and the profile of ρ "
    "no longer count. What would close the gap: optima only for laws that are not rejected."
)
BATCH = (
    "Why: the rival computes one quantile. Of latfit's 4.5 ms per group, a fifth goes into the schedule, a fifth into"
    " laws (half of it for the hybrid, on the one group in ten that no simple law fits), a seventh into changes, a "
    "ninth into replay, a tenth into cutoff, ratio and worlds; each is a few dozen calls on short arrays. What would "
    "close the gap: computing the evidence of all groups in one array, like the fits."
)
INTERVALS = (
    "Why: of 25 ms per group, 8 are the refits of its test, 7 the bootstrap of the optimum and 4 that of the "
    "schedule; a sixth of the total is Poisson draws. What would close the gap: the first refits of all groups in one"
    " array, one set of resamples for both intervals, and draws from tables, which would change every interval."
)
REPLAY = (
    "Why: as for `commands/timeout`; the curve of 60 timeouts follows 10 000 jobs by binary search in a million "
    "times. What would close the gap: screening the timeouts with 1000 jobs."
)
HELP = (
    "Probably: twenty milliseconds are latfit's own command-line modules; on a busy machine the spread is as large as"
    " the difference. To be measured on an idle machine."
)
STARTUP = (
    "Why: beyond the imports, the time goes into the tests of the two hybrid fits, which are rejected, the optima of "
    "ten laws, and scipy.optimize for these (0.1 s). What would close the gap: a root finder of our own for the "
    "optima of laws."
)
STARTUP_TIMEOUT = (
    "Why: importing scipy.special takes 0.09 s (mostly its support of other array libraries), latfit's 140 modules "
    "0.1 s, and the decision 0.1 s. What would close the gap: importing laws and formats by name."
)
RANK = (
    "Why: at n = 2137 the time is not arithmetic but 6000 calls on short arrays, in 16 Newton steps over five laws; "
    "the rival answers without ρ. What would close the gap: fewer steps (better starts), or all laws in one stacked "
    "array."
)
RANK_LARGE = (
    "Probably: latfit spreads its blocks of latencies over the cores and the rival uses one core, so other load slows"
    " latfit more; on idle cores the ratio was 48 to 67. What would close the gap: fewer Newton steps."
)
DEFECTIVE = (
    "Probably: as for `rank-large`; on idle cores the ratio was 2944 to 5000. To be measured on an idle machine."
)
KS_COMPLETE = (
    "Why: both sides are near the cost of drawing, sorting and one cdf per resample. latfit uses all cores and the "
    "rival one, so the ratio depends on how idle the second core is. What would close the gap: single precision, or "
    "stopping once the p-value is certain."
)
KS_NEWTON = (
    "Why: 70 % of the time is Newton steps, four evaluations over all latencies per resample, spread over the cores; "
    "with one busy core the ratio falls. What would close the gap: saving one step by a better start than the truth."
)
KS_DEFECTIVE = (
    "Why: a quarter of the time is drawing and sorting, a quarter the distances, a third Newton steps. The rival here"
    " is 999 plain fits, without draws and distances; its own test is the row `pvalue/defective`. What would close "
    "the gap: drawing in time order (exponential spacings) instead of sorting."
)
HYBRID = (
    "Why: 40 % of the time finds the best of 32 starts on blocks, 35 % refines it on every step, and the result is "
    "checked to be a cdf; the rival starts from the truth. What would close the gap: fewer starts, at a risk."
)
PEER = (
    "Probably: latfit uses all cores and the rival's loop one, so other load slows latfit more. What would close the "
    "gap: an idle machine, or more cores."
)
TWO = (
    "Why: the parent shares the two cores and needs a thirtieth of the work to send groups and read rows; even plain "
    "numpy (sorting in two threads) gains only a factor of 1.7 to 1.9 from the second core. What would close the gap:"
    " a third core."
)
DASK = (
    "Why: the client pickles every group and sends it by TCP through the scheduler, a thread of the same process. The"
    " parent needs six times the processor time of its own pool, and takes it from the workers. What would close the "
    "gap: workers that read the files themselves, as on a cluster."
)

WATCH = (
    "Why: a line costs 19 calls, one in five 100, because the timeout is estimated then. The mean is that of the "
    "interval, which is at most 20 attempts old: 199 resamples one after the other, 7 500 calls. What would close the "
    "gap: all resamples as rows of one array, as in `curve.py`."
)

REMARKS = {
    "tracking/watch": WATCH,
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
