"""The general way: a law that states its cdf and its density only."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from latfit.errors import LawError
from latfit.laws import ContinuousLaw, Parameter, parse_law


class _Bare(ContinuousLaw):
    formula = ""
    examples = ()

    def scaled(self, factor):
        raise NotImplementedError


@dataclass(frozen=True)
class BarePareto(_Bare):
    name: ClassVar[str] = "bare-pareto"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("a", "positive"), Parameter("nu", "positive"))
    a: float
    nu: float

    def _cdf(self, t):
        return 1 - (self.a / (self.a + t)) ** self.nu

    def _logpdf(self, t):
        return np.log(self.nu / self.a) - (self.nu + 1) * np.log1p(t / self.a)


@dataclass(frozen=True)
class BareNormal(_Bare):
    """A normal law so far from 0 that the truncation does not matter."""

    name: ClassVar[str] = "bare-normal"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("mu", "positive"), Parameter("sigma", "positive"))
    mu: float
    sigma: float

    def _cdf(self, t):
        return ndtr((t - self.mu) / self.sigma)

    def _logpdf(self, t):
        return -0.5 * ((t - self.mu) / self.sigma) ** 2 - np.log(self.sigma * np.sqrt(2 * np.pi))


@dataclass(frozen=True)
class BareTriangle(_Bare):
    """f(t) = 2 (t − a)/(b − a)² on [a, b]."""

    name: ClassVar[str] = "bare-triangle"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("a", "positive"), Parameter("b", "positive"))
    a: float
    b: float

    @property
    def support(self):
        return self.a, self.b

    def _cdf(self, t):
        return np.clip((t - self.a) / (self.b - self.a), 0, 1) ** 2

    def _logpdf(self, t):
        inside = (t > self.a) & (t <= self.b)
        return np.where(inside, np.log(2 * (t - self.a) / (self.b - self.a) ** 2), -np.inf)


@pytest.mark.parametrize("nu", [0.3, 1.0, 1.02, 2.5, 40.0])
def test_power_tails(nu):
    bare, closed = BarePareto(7, nu), parse_law(f"pareto(a=7,nu={nu})")
    t = closed.ppf([1e-20, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-9])
    for n in (1, 2, 3):
        assert_allclose(bare.partial_moment(n, t), closed.partial_moment(n, t), rtol=1e-11)
        if nu - n > 0 or nu < n:
            assert_allclose(bare.moment(n), closed.moment(n), rtol=1e-9)
    assert_allclose(bare.ppf([0.01, 0.5, 0.999]), closed.ppf([0.01, 0.5, 0.999]), rtol=1e-12)


@pytest.mark.parametrize("sigma", [100.0, 1.0, 1e-3, 1e-5])
def test_narrow_laws_are_not_missed(sigma):
    law = BareNormal(1000, sigma)
    rtol = max(1e-9, 1e-13 / sigma)  # t − 1000 has lost its digits where sigma is far below 1000
    assert_allclose(law.moment(1), 1000, rtol=rtol)
    assert_allclose(law.moment(2), 1e6 + sigma**2, rtol=rtol)
    assert_allclose(law.partial_moment(1, 1000), 500 - sigma / np.sqrt(2 * np.pi), rtol=rtol)


def test_a_law_narrower_than_the_floats_is_refused():
    with pytest.raises(LawError, match="too narrow"):
        BareNormal(1000, 1e-12).partial_moment(1, 1000.0)


def test_a_density_that_contradicts_the_cdf_is_refused():
    class Wrong(BarePareto):
        def _logpdf(self, t):
            return super()._logpdf(t) + 1e-7

    with pytest.raises(LawError, match="not its cdf"):
        Wrong(7, 2).partial_moment(1, 1000.0)


def test_bounded_laws():
    law = BareTriangle(2, 5)
    assert_allclose(law.moment(1), 4, rtol=1e-13)
    assert_allclose(law.std(), 3 / np.sqrt(18), rtol=1e-12)
    assert law.moment(2) == law.partial_moment(2, 5) == law.partial_moment(2, 77)
    assert law.partial_moment(2, 2) == law.partial_moment(2, 1) == 0
    assert_allclose(law.partial_moment(1, 3.5), 0.25 * (2 + 1.5 * 2 / 3), rtol=1e-13)
