"""Why a target was missed and what would close the gap, by the key of the row; shown only while it is missed.

Shares of time come from profiles of one commit on a busy machine. "Supposed" is what nobody has measured, and so is all
that is said to close a gap.
"""

OPTIMUM = (
    "Supposed: the sort is the floor; what is above it is one pass of block sums over memory that no longer is in "
    "the cache. What would close it: sums taken inside the sort, in compiled code."
)
RANK = (
    "Why: at n = 2137 latfit's time is not arithmetic but 6000 calls on short arrays, in 16 Newton steps over five "
    "laws; the rival answers without ρ. What would close it: fewer steps (better starts), or the laws in one stacked "
    "array."
)
KS_COMPLETE = (
    "Why: both sides are near the cost of drawing, sorting and one cdf a resample: of latfit's time 44 % is numpy's "
    "normal generator and 22 % the cdf. What would close it: single precision, or stopping once the p-value is settled."
)
KS_NEWTON = (
    "Why: 70 % of the time are Newton steps, four evaluations over all latencies a resample; draws, sort and cdf are "
    "the rest. What would close it: one step less by a better start than the truth."
)
KS_DEFECTIVE = (
    "Why: a quarter of the time is drawing and sorting, a quarter the distances, a third Newton steps. The rival "
    "here is 999 plain fits, without draws and distances; its own test is the row `pvalue/defective`. What would close "
    "it: draws in the order of time (exponential spacings) instead of drawing and sorting."
)
HYBRID = (
    "Why: 40 % of the time finds the best of the starts on blocks, 35 % polishes it on every step, 17 % checks twice "
    "that the law found is a cdf; the rival is given the truth to start from. What would close it: one check."
)
PEER = (
    "Supposed: latfit works on all cores, the rival's loop on one, so that other load slows latfit more. "
    "What would close it: an idle machine, or more cores."
)
TWO = (
    "In part: the parent, on the same two cores, needs a tenth of one process's work to send groups and read rows; the "
    "rest was not looked for. What "
    "would close it: shared memory in place of pipes, or a third core."
)
DASK = (
    "Why: every group is pickled by the client and goes by TCP over the scheduler, a thread of the same process: the "
    "parent needs four times the processor time that it needs for its own pool, and takes it from the workers. What "
    "would close it: workers that read the files themselves, as they do on a cluster."
)
CSV = (
    "Why: Arrow alone, on which latfit's reader rests, takes as long as pandas 3.1.1. The target was set when pandas "
    "was seen to take 1.3–2.0 s and 1.3 GiB; supposed: an older one. What would close it: parsing the two columns that "
    "matter in compiled code of one's own."
)
CSV_MEMORY = (
    "Why: the imports alone take 110 MiB of the peak, and pandas now needs half of what it did when the target was "
    "set. What would close it: smaller blocks, and no pandas in the reader."
)
ISO = (
    "Why: as for `csv/plain/time`: without the timestamps, which add about a third, latfit would still be slower than "
    "pandas is with them. What would close it: the same."
)

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
