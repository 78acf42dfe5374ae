"""Means and spreads of what is never cancelled under a power tail, just on either side of being infinite."""

import numpy as np
import pytest

from latfit.laws import parse_law
from latfit.restart import evaluate_policy


def moments(nu, a=100.0):
    """Mean and standard deviation of the Pareto law, ∞ where they are."""
    mean = a / (nu - 1) if nu > 1 else np.inf
    return mean, np.sqrt(2 * a**2 / ((nu - 1) * (nu - 2)) - mean**2) if nu > 2 else np.inf


@pytest.mark.parametrize("b", [2, 3])
@pytest.mark.parametrize("index", [0.99, 1.0, 1.01, 1.3, 2.0, 2.01, 5.0, 9.0])
def test_copies_have_the_law_of_a_larger_index(index, b):
    """The first of b copies of Pareto(a, ν) is Pareto(a, bν)."""
    says = evaluate_policy(parse_law(f"pareto(a=100,nu={index / b!r})"), f"copies(b={b})")
    for told, right in zip((says.expected_duration, says.std_duration), moments(index), strict=True):
        assert told is None if np.isinf(right) else told == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize("nu", [0.5, 1.0, 1.01, 1.5, 2.0, 2.01, 6.0])
def test_a_hedge_that_is_never_made_is_one_attempt(nu):
    """The same moments, by quadrature."""
    says = evaluate_policy(parse_law(f"pareto(a=100,nu={nu})"), "hedge(d=50,q=0)")
    for told, right in zip((says.expected_duration, says.std_duration), moments(nu), strict=True):
        assert told is None if np.isinf(right) else told == pytest.approx(right, rel=1e-5)


@pytest.mark.parametrize("nu", [0.5, 0.51, 0.6])
def test_two_copies_one_after_the_other(nu):
    """A hedge after d: ∫₀ᵈ S(u) du + ∫ S(u) S(u+d) du, the latter between those of two copies at once and d later."""
    says = evaluate_policy(parse_law(f"pareto(a=100,nu={nu})"), "hedge(d=50)").expected_duration
    if nu == 0.5:
        assert says is None
        return
    first = 100 * (1.5 ** (1 - nu) - 1) / (1 - nu)
    least, most = (first + a ** (2 * nu) / (2 * nu - 1) * a ** (1 - 2 * nu) for a in (100.0, 150.0))
    assert least * (100 / 150) ** nu < says < first + most
