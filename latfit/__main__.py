"""The command `latfit`, also as `python -m latfit`."""

import os

from latfit._system import stop_cleanly


def run() -> None:
    """Run the command line, ready to be stopped before anything slow is imported."""
    stop_cleanly()
    os.environ["MPLBACKEND"] = "agg"  # commands draw into files only, whatever the user's Python draws on
    from latfit.cli import main

    main()


if __name__ == "__main__":
    run()
