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
    "Why: pandas 3.1 reads 10⁶ of these rows in 0.15 processor seconds after an import of 0.4 and stops "
    "there; latfit's imports (numpy, pandas, scipy's special functions) take 0.9, reading with ids, times and "
    "refusals checked 0.5, and the evidence is most of the rest: 60 timeouts replayed (0.9), the log in its "
    "order (0.2), dependence (0.2), mixing and changes (0.2). At 10⁷ rows reading is 5 of 14. What would "
    "close it: reading in compiled code of one's own; without the evidence it would be another command."
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
    "Why: the rival takes one quantile; for each of 2000 groups latfit ranks eight laws (3 ms, of which a half for the "
    "one group in eight that no simple law fits), replays the timeout and waiting (1.2), looks for changes and cycles "
    "(1.5), dependence and mixing (1), each a few dozen calls on short arrays. What would close it: the evidence "
    "of all groups in one array, as the fits are."
)
INTERVALS = (
    "Why: of 55 ms a group 23 are the refits of its test and 23 the bootstrap of the optimum, and both are arithmetic: "
    "with 16 bins instead of 512 the bootstrap takes 5 ms, so that an array for all groups at once, which saves "
    "calls alone, could save no more than that. A third of the rest are Poisson draws. What would close it: compiled "
    "code, draws from tables, and fewer refits where a p-value is settled."
)
REPLAY = (
    "Why: 10 000 jobs are followed under 60 timeouts and 50 000 under the best, by binary search in a million "
    "times of submission. What would close it: fewer jobs where the interval is narrow already."
)
HELP = (
    "Supposed: twenty milliseconds are latfit's own modules of the command line and its names; on a busy machine the "
    "spread is as large as the difference. What would close it: an idle machine tells."
)
STARTUP = (
    "Why: beyond the imports it is the bootstrap of ten laws and of the optimum, about 1.5 processor seconds. "
    "What would close it: fewer refits where a p-value is settled."
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
CSV = (
    "Why: pandas 3.1 parses on all cores and stops there, in 0.35 s. Arrow, on which latfit's reader rests, needs"
    " as much processor time for its parse alone (0.7 s), with exact decimals; sorting and counting 10⁷ latencies"
    " (0.4 s) and checking every row (0.4 s) come on top. The target was set when pandas took 1.3 to 2.0 s and "
    "1.3 GiB. What would close it: compiled code of one's own that parses, checks and counts in one pass."
)
CSV_MEMORY = (
    "Why: importing pandas and Arrow takes 108 MiB of the peak before a row is read, the sample itself 25; pandas"
    " now needs half of what it did when the target was set. What would close it: no pandas in the reader, "
    "smaller blocks."
)
ISO = "Why: as for `csv/plain/time`; timestamps cost Arrow 0.4 s more. What would close it: the same."

REMARKS = {
    "commands/timeout": EVIDENCE,
    "commands/timeout/memory": MEMORY,
    "commands/outliers": OUTLIERS,
    "commands/outliers/memory": MEMORY,
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
    "commands-large/batch": BATCH,
    "commands/intervals": INTERVALS,
    "startup/analyze": STARTUP,
    "startup/help": HELP,
    "advice/time": ADVICE,
    "advice/memory": ADVICE,
    "optimum/lognormal": OPTIMUM,
    "optimum/seconds": OPTIMUM,
    "optimum/exponential": OPTIMUM,
    "rank/scipy": RANK,
    "rank/surpyval": RANK,
    "rank/fitdistrplus": RANK,
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
    "csv/plain/time": CSV,
    "csv/plain/memory": CSV_MEMORY,
    "csv/iso/time": ISO,
    "csv/iso/memory": CSV_MEMORY,
}
