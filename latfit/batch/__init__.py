"""Stage 9: the pipeline over many logs and groups: processes here, a Dask cluster when one machine is not enough."""

from latfit.batch.output import BatchResult, check_ending, check_output, write_table
from latfit.batch.rows import fit_groups
from latfit.batch.run import run_batch

__all__ = ["BatchResult", "check_ending", "check_output", "fit_groups", "run_batch", "write_table"]
