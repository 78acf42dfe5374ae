"""What every registered law promises; a new law is tested here without an edit."""

import pickle
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from latfit.errors import LawError
from latfit.laws import ContinuousLaw, Defective, ParametricLaw, law_names, parse_law
from latfit.laws.base import REGISTRY

SPECS = [spec for law in REGISTRY.values() if issubclass(law, ParametricLaw) for spec in law.examples]
SMOOTH = [spec for spec in SPECS if isinstance(parse_law(spec), ContinuousLaw)]
STARTED = [spec for spec in SMOOTH if hasattr(parse_law(spec), "start")]
LEVELS = np.array([1e-12, 1e-6, 1e-3, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999, 1 - 1e-6])

every_law = pytest.mark.parametrize("law", [parse_law(spec) for spec in SPECS], ids=SPECS)
smooth_law = pytest.mark.parametrize("law", [parse_law(spec) for spec in SMOOTH], ids=SMOOTH)


@st.composite
def laws(draw, specs=SPECS):
    """An example with its scalar parameters moved by up to a factor 2, and its lists of times by one factor."""
    law = parse_law(draw(st.sampled_from(specs)))
    values = {}
    for parameter in law.parameters:
        value = getattr(law, parameter.name)
        if parameter.many:
            values[parameter.name] = value
        else:
            values[parameter.name] = (value or 0.5) * draw(st.floats(0.5, 2.0))
    try:
        moved = type(law)(**values)
    except LawError:  # bounds that crossed, or a hybrid that is no cdf
        assume(False)
    return moved.scaled(draw(st.sampled_from([1.0, 1e-6, 3600.0])))


def times(law):
    """Times in both tails, in the body, and beyond both ends of the support."""
    inside = law.ppf(LEVELS)
    return np.unique(np.concatenate([[0.0], 0.5 * inside[:1], inside, 1.5 * inside, 3 * inside[-1:], [np.inf]]))


@every_law
def test_the_cdf_at_its_ends(law):
    jump_at_zero = law.jumps is not None and law.jumps[0] == 0
    assert law.cdf(-1e-300) == 0
    assert law.still_out(-1.0) == 1
    assert (law.cdf(0.0) > 0) == jump_at_zero
    assert law.cdf(np.inf) == 1
    assert law.still_out(np.inf) == 0
    for n in (1, 2, 3):
        assert law.partial_moment(n, 0.0) == 0
        assert law.partial_moment(n, np.inf) == law.moment(n) > 0
    low, high = law.support
    assert 0 <= low < high or (law.jumps is not None and low == high)
    assert law.cdf(np.nextafter(low, -1)) == 0
    assert law.cdf(high) == 1
    assert law.rho == 0
    assert law.failed(3.0) == law.failed_moment(1, 3.0) == 0


@settings(max_examples=60, deadline=None)
@given(laws())
def test_cdf_rises_from_0_to_1_and_complements_the_survival(law):
    t = times(law)
    F, S = law.cdf(t), law.still_out(t)
    assert F.dtype == S.dtype == np.float64
    assert (np.diff(F) >= -1e-15).all()
    assert (np.diff(S) <= 1e-15).all()
    assert_allclose(F + S, 1, rtol=0, atol=1e-13)
    assert_array_equal(law.sf(t), S)
    assert F[-1] == 1
    assert S[-1] == 0


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(laws(SMOOTH))
def test_ppf_inverts_cdf(law):
    low, high = law.support
    t = law.ppf(LEVELS)  # exact to a few floats, which matters close to a lower end > 0
    assert (law.cdf(t - 4 * np.spacing(t)) <= LEVELS * (1 + 1e-9)).all()
    assert (law.cdf(t + 4 * np.spacing(t)) >= LEVELS * (1 - 1e-9)).all()
    t, S = law.ppf(1 - LEVELS), 1 - (1 - LEVELS)
    assert (law.still_out(t - 4 * np.spacing(t)) >= S * (1 - 1e-9)).all()
    assert (law.still_out(t + 4 * np.spacing(t)) <= S * (1 + 1e-9)).all()
    assert law.ppf(0.0) == low
    assert law.ppf(1.0) == high


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(laws(), st.sampled_from([1e-3, 1000.0, 3600.0]))
def test_the_unit_of_time_does_not_matter(law, factor):
    other, t = law.scaled(factor), law.ppf(LEVELS[3:-1])
    assert type(other) is type(law)
    for n in (0, 1, 2, 3):
        ours, theirs = law.partial_moment(n, t), other.partial_moment(n, t * factor)
        if law.jumps is None:
            narrow = law.ppf(0.5) / (law.ppf(0.75) - law.ppf(0.25))  # how much the rounding of t itself counts
            assert_allclose(theirs, ours * factor**n, rtol=1e-11 + 1e-14 * narrow)
    assert_allclose(other.moment(1), law.moment(1) * factor, rtol=1e-12)
    assert_allclose(other.std(), law.std() * factor, rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(laws())
def test_written_and_pickled_laws_come_back_equal(law):
    assert parse_law(law.spec()) == law
    back = pickle.loads(pickle.dumps(law))
    assert back == law
    assert hash(back) == hash(law)
    assert_array_equal(back.cdf(times(law)), law.cdf(times(law)))


@every_law
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,)])
def test_shapes(law, shape):
    t = np.full(shape, law.ppf(0.5))
    for value in (law.cdf(t), law.still_out(t), law.partial_moment(0, t), law.partial_moment(2, t), law.failed(t)):
        assert np.shape(value) == shape
    assert law.ppf(np.full(shape, 0.3)).shape == shape
    assert law.sample(shape, np.random.default_rng(1)).shape == shape
    if isinstance(law, ContinuousLaw):
        for value in (law.pdf(t), law.logpdf(t), law.logsf(t), law.hazard(t)):
            assert np.shape(value) == shape
    assert np.shape(law.cdf([1, 2])) == (2,)  # whole numbers are times too


@pytest.mark.slow
@smooth_law
def test_partial_moments_against_adaptive_quadrature(law):
    """∫ uⁿ f(u) du in x = log(u − lower end), by scipy's adaptive rule; n = 0 ties the density to the cdf."""
    low = law.support[0]
    cuts = np.array([1e-9, 1e-3, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999, 1 - 1e-6])
    ends = np.union1d(law.ppf(cuts), [kink for kink in law.kinks if low < kink <= law.ppf(cuts[-1])])
    x = np.log(ends[1:] - low)
    if low == 0:
        x = np.concatenate([x[0] - [80, 40, 20, 10, 5], x])
    for n in (0, 1, 2, 3):

        def integrand(y, n=n):
            return (low + np.exp(y)) ** n * float(law.pdf(low + np.exp(y))) * np.exp(y)

        parts = [
            integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-11, limit=200, full_output=1)[0] for a, b in pairwise(x)
        ]
        ours, theirs = law.partial_moment(n, ends[1:]), np.concatenate([[0.0], np.cumsum(parts)])
        if low == 0:
            assert_allclose(ours, theirs[5:], rtol=1e-9)
        else:  # floats close to `low` are too coarse for the oracle: start above
            assert_allclose(ours - ours[0], theirs, rtol=1e-9)


@smooth_law
def test_densities_and_hazards_agree(law):
    low = law.support[0]
    t = law.ppf([1e-3, 0.1, 0.5, 0.9, 0.999])
    step = 1e-5 * (t - low)
    slope = (law.cdf(t + step) - law.cdf(t - step)) / (2 * step)
    t, slope, step = (
        a[[not np.any(np.abs(np.subtract(law.kinks, x)) <= s) for x, s in zip(t, step, strict=True)]]
        for a in (t, slope, step)
    )
    assert_allclose(law.pdf(t), slope, rtol=1e-5)
    assert_allclose(law.logpdf(t), np.log(law.pdf(t)), rtol=1e-12)
    assert_allclose(law.logsf(t), np.log(law.sf(t)), rtol=1e-9, atol=1e-12)
    assert_allclose(law.hazard(t), law.pdf(t) / law.sf(t), rtol=1e-9)
    assert law.pdf(-1.0) == 0
    assert law.pdf(np.inf) == 0


@every_law
def test_samples_follow_the_cdf(law):
    sample = law.sample(3000, np.random.default_rng(20061))
    if isinstance(law, ContinuousLaw):
        assert stats.kstest(sample, law.cdf).pvalue > 1e-3
    else:
        seen = np.array([(sample == value).sum() for value in law.jumps])
        assert seen.sum() == sample.size
        expected = np.diff(law.cdf(law.jumps), prepend=0) * sample.size
        assert seen.size == 1 or stats.chisquare(seen, expected).pvalue > 1e-3
    assert_array_equal(sample, law.sample(3000, np.random.default_rng(20061)))


@every_law
def test_mean_and_std_against_the_sample_or_infinite(law):
    sample = law.sample(20_000, np.random.default_rng(7))
    if np.isfinite(law.moment(4)):
        spread = law.std() / np.sqrt(sample.size)
        assert abs(sample.mean() - law.mean()) <= 4 * spread
        kurtosis = np.sqrt(max(law.moment(4) - law.moment(2) ** 2, 0) / sample.size)
        assert abs((sample**2).mean() - (law.std() ** 2 + law.mean() ** 2)) <= 4 * kurtosis + 1e-9
    if not np.isfinite(law.moment(2)):
        assert law.std() == np.inf


@pytest.mark.parametrize("law", [parse_law(spec) for spec in STARTED], ids=STARTED)
def test_rough_starts_are_valid_and_near(law):
    rough = type(law)(**type(law).start(*map(float, law.ppf([0.25, 0.5, 0.75]))))
    low, high = law.ppf([0.25, 0.75])
    assert low < rough.ppf(0.5) < high
    for q1, q2, q3 in ((5.0, 5.0, 5.0), (0.0, 1.0, 2.0), (1e-3, 1.0, 1e4)):
        type(law)(**type(law).start(q1, q2, q3))


@every_law
def test_declared_parameters_are_the_fields(law):
    assert [parameter.name for parameter in law.parameters] == [f.name for f in fields(law)] == list(law.params)
    assert type(law).__doc__.splitlines()[0].endswith((".", ";"))
    assert law.formula
    assert law.name in law_names()


@every_law
def test_defective(law):
    t = times(law)
    part = Defective(law, 0.2)
    assert part.rho == 0.2
    assert_allclose(part.cdf(t), 0.8 * law.cdf(t), rtol=1e-15)
    assert_allclose(part.cdf(t) + part.still_out(t), 1, rtol=0, atol=1e-15)
    assert part.still_out(np.inf) == 0.2
    assert_allclose(part.partial_moment(2, t), 0.8 * law.partial_moment(2, t), rtol=1e-15)
    assert part.support == law.support
    assert part.kinks == law.kinks
    nested = Defective(part, 0.5)
    assert nested == Defective(law, 1 - 0.8 * 0.5)
    assert pickle.loads(pickle.dumps(part)) == part
    drawn = part.sample(20_000, np.random.default_rng(3))
    assert abs(np.isinf(drawn).mean() - 0.2) < 4 * np.sqrt(0.16 / drawn.size)
    if law.jumps is None:
        inside = law.ppf([0.2, 0.7])
        assert_allclose(part.pdf(inside), 0.8 * law.pdf(inside))
        assert_allclose(part.hazard(inside), 0.8 * law.pdf(inside) / (0.2 + 0.8 * law.sf(inside)), rtol=1e-12)
        assert_allclose(Defective(law, 0.0).hazard(inside), law.hazard(inside))
    else:
        with pytest.raises(LawError, match="density"):
            part.pdf(t)


@pytest.mark.parametrize("rho", [1.0, -0.1, 1.5, np.nan, np.inf, "half", None, True])
def test_rho_outside_its_range_is_refused(rho):
    with pytest.raises(LawError, match="rho"):
        Defective(parse_law("exponential(rate=1)"), rho)


@every_law
@pytest.mark.parametrize("n", [-1, 1.5, True, "1"])
def test_orders_that_are_not_moments_are_refused(law, n):
    with pytest.raises(LawError, match="order"):
        law.partial_moment(n, 1.0)


@every_law
@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan])
def test_quantiles_outside_0_1_are_refused(law, q):
    with pytest.raises(LawError, match=r"\[0, 1\]"):
        law.ppf(q)


@pytest.mark.parametrize(
    "spec",
    [
        "lognormal(mu=650,sigma=50)",
        "log-logistic(shape=0.003,scale=1)",
        "pareto(a=1,nu=0.003)",
        "weibull(shape=0.003,scale=1)",
    ],
)
def test_draws_beyond_all_floats_are_infinite(spec):
    assert np.isposinf(parse_law(spec).draw((1000,), np.random.default_rng(1))).any()
