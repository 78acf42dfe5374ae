"""What the lowest versions of the libraries must do, and newer ones too: a table whose blanks are blanks."""

from conftest import EGEE
from latfit.batch import run_batch


def test_a_frame_has_no_word_for_nothing():
    """pandas 2.2 made the text "None" of None, and every row had an error."""
    frame = run_batch(EGEE, by="broker", resamples=0, test=False, workers=1).to_frame()
    assert frame["error"].isna().all()
    assert frame["timeout"].notna().all()
