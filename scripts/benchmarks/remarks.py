"""Why a target was missed and what would close the gap, by the key of the row; shown only while it is missed.

Shares of time come from profiles. "Supposed" is what nobody has measured, and so is all that is said to close a gap.
"""

OPTIMUM = (
    "Why: one engine serves samples, groups and resamples alike: it counts distinct latencies and makes the whole "
    "curve of E_J in a dozen passes over memory, where only its minimum is asked for. What would close it: a path "
    "of its own for one large sample, as latfit 0.1 had."
)
RANK = (
    "Why: at n = 2137 latfit's time is not arithmetic but 6000 calls on short arrays, in 16 Newton steps over "
    "five laws; the rival answers without ρ. What would close it: fewer steps (better starts), or the laws in one"
    " stacked array."
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
    "optimum/lognormal": OPTIMUM,
    "optimum/seconds": OPTIMUM,
    "optimum/exponential": OPTIMUM,
    "rank/scipy": RANK,
    "rank/surpyval": RANK,
    "rank/fitdistrplus": RANK,
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
