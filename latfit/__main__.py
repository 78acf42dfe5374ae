"""The command `latfit`, also as `python -m latfit`."""

import gc
import os
import sys

from latfit._system import stop_cleanly


def run() -> None:
    """Run the command line, ready to be stopped before anything slow is imported."""
    stop_cleanly()
    gc.set_threshold(100_000)  # imports make many objects, of which none is garbage
    if sys.argv[1:2] != ["probe"]:  # its programs would inherit this
        os.environ["MPLBACKEND"] = "agg"  # commands draw into files only, whatever the user's Python draws on
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # starting its threads takes longer than they save
    from latfit.cli import main

    main()


if __name__ == "__main__":
    run()
