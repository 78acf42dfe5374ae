"""Laws written as text, and what is refused."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import latfit.laws
from latfit.errors import LawError
from latfit.laws import get_law, law_names, parse_law
from latfit.laws.base import Law, Parameter, register
from latfit.laws.discrete import Discrete
from latfit.laws.gamma import ErlangMixture, Exponential
from latfit.laws.location_scale import LogNormal


def test_spaces_order_and_lists():
    assert parse_law("lognormal(mu=5.5,sigma=1)") == LogNormal(5.5, 1)
    assert parse_law("  lognormal ( sigma = 1e0 , mu = 5.5 ) ") == LogNormal(5.5, 1.0)
    assert parse_law("exponential(rate=+1E-3)") == Exponential(0.001)
    mixture = parse_law("erlang-mixture(p=[0.9, 0.1], phases=[2,3], rates=[20,2])")
    assert mixture == ErlangMixture((0.9, 0.1), (2, 3), (20.0, 2.0))
    assert mixture.spec() == "erlang-mixture(p=[0.9,0.1],phases=[2,3],rates=[20,2])"


def test_laws_are_written_with_all_digits():
    law = LogNormal(1 / 3, np.float64(0.1) + 0.2)
    assert law.spec() == "lognormal(mu=0.3333333333333333,sigma=0.30000000000000004)"
    assert parse_law(law.spec()) == law
    assert isinstance(law.sigma, float)


def test_names():
    assert {"uniform", "truncated-gaussian", "exponential", "weibull", "lognormal", "pareto", "gamma"} < set(
        law_names()
    )
    assert {"log-logistic", "lognormal-pareto", "erlang-mixture", "discrete", "piecewise-uniform"} < set(law_names())
    assert "empirical" in law_names()
    assert law_names() == sorted(law_names())
    assert get_law("lognormal") is LogNormal


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a law"),
        ("42", "not a law"),
        ("lognormal(mu=1", "not a law"),
        ("lognormal(mu=1,sigma=1) x", "not a law"),
        ("__import__('os')", "not a law"),
        ("nosuch(a=1)", "known: discrete, empirical"),
        ("log-normal(mu=1,sigma=1)", "did you mean lognormal"),
        ("Lognormal(mu=1,sigma=1)", "did you mean lognormal"),
        ("empirical", "comes from a log"),
        ("lognormal", r"no parameters: write lognormal\(mu=…,sigma=…\)"),
        ("lognormal()", "lacks mu and sigma"),
        ("lognormal(mu=1)", "lacks sigma"),
        ("lognormal(mu=1,sigm=1)", "no parameter 'sigm'; did you mean sigma"),
        ("lognormal(mu=1,sigma=1,tau=3)", "no parameter 'tau'"),
        ("lognormal(mu=1,mu=2,sigma=1)", "mu is given twice"),
        ("lognormal(5.5,1)", "cannot read '5.5,1' at position 11"),
        ("lognormal(mu=1,,sigma=1)", "cannot read ',sigma=1' at position 16"),
        ("lognormal(mu=1;sigma=1)", "cannot read"),
        ("lognormal(mu=1 sigma=1)", "cannot read"),
        ("lognormal(mu=one,sigma=1)", "mu is 'one'.*must be a number"),
        ("lognormal(mu=[1],sigma=1)", "mu is .*must be a finite number"),
        ("lognormal(mu=1,sigma=0)", "sigma is 0; it must be a positive, finite number"),
        ("lognormal(mu=1,sigma=-2)", "sigma is -2"),
        ("lognormal(mu=nan,sigma=1)", "mu is nan"),
        ("lognormal(mu=1,sigma=inf)", "sigma is inf"),
        ("exponential(rate=1e999)", "rate is inf"),
        ("uniform(a=5,b=5)", "b must be greater than a"),
        ("uniform(a=-1,b=5)", "a is -1; it must be a finite number, not negative"),
        ("erlang-mixture(p=[0.9,0.1],phases=[2],rates=[20,2])", "the same number"),
        ("erlang-mixture(p=[0.9,0.2],phases=[2,2],rates=[20,2])", "p adds up to 1.1"),
        ("erlang-mixture(p=[0.9,0.1],phases=[2,2.5],rates=[20,2])", r"phases\[1\] is 2.5; it must be a whole number"),
        ("erlang-mixture(p=[0.9,0.1],phases=[2,0],rates=[20,2])", r"phases\[1\] is 0"),
        ("erlang-mixture(p=0.9,phases=[2],rates=[20])", "p is 0.9; it must be a list"),
        ("discrete(values=[],probs=[])", "must be a number"),
        ("discrete(values=[1,2],probs=[0.5,0.4])", "probs adds up to 0.9"),
        ("discrete(values=[2,1],probs=[0.5,0.5])", "rise strictly"),
        ("discrete(values=[1,1],probs=[0.5,0.5])", "rise strictly"),
        ("discrete(values=[1],probs=[0.5,0.5])", "1 values and 2 probs"),
        ("discrete(values=[1,[2]],probs=[0.5,0.5])", "cannot read"),
        ("discrete(values=[1,2],probs=[1.5,-0.5])", r"probs\[1\] is -0.5"),
        ("piecewise-uniform(edges=[0,1],probs=[0.5,0.5])", "one edge more"),
        ("piecewise-uniform(edges=[0,2,1],probs=[0.5,0.5])", "rise strictly"),
        ("lognormal-pareto(mu=5,sigma=1,a=1,nu=1,k=1,t_min=5,t_max=5)", "t_max must be greater"),
    ],
)
def test_refused(text, says):
    with pytest.raises(LawError, match=says) as caught:
        parse_law(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["1", None, True, [1.0], np.array([1.0]), 1j])
def test_values_that_are_not_numbers_are_refused(value):
    with pytest.raises(LawError, match="exponential: rate"):
        Exponential(value)


@pytest.mark.parametrize("values", [(), "12", 3.0, [None]])
def test_values_that_are_not_lists_are_refused(values):
    with pytest.raises(LawError, match="discrete: values"):
        Discrete(values, [1.0])


def test_numpy_values_become_plain_ones():
    law = Discrete(np.array([1, 2]), np.array([0.5, 0.5]))
    assert law == Discrete((1.0, 2.0), (0.5, 0.5))
    assert hash(law) == hash(Discrete([1, 2], [0.5, 0.5]))


def test_long_input_is_read_in_linear_time():
    values = ",".join(map(str, range(20_000)))
    with pytest.raises(LawError, match="20000 values and 1 probs"):
        parse_law(f"discrete(values=[{values}],probs=[1])")
    with pytest.raises(LawError):
        parse_law("lognormal(" + "mu=" * 20_000)
    with pytest.raises(LawError):
        parse_law("lognormal(mu=" + " " * 20_000 + ")")


def test_two_laws_of_one_name_are_refused():
    class Another(Law):
        name = "lognormal"

    with pytest.raises(LawError, match="two laws"):
        register(Another)


NEW_LAW = """
from dataclasses import dataclass
import numpy as np
from latfit.laws.base import ContinuousLaw, Parameter, register

@register
@dataclass(frozen=True)
class Gompertz(ContinuousLaw):
    name = "gompertz"
    parameters = (Parameter("b", "positive", unit="rate"), Parameter("eta", "positive"))
    formula = "F(t) = 1 - exp(-eta (exp(b t) - 1))"
    examples = ("gompertz(b=1,eta=0.1)",)
    b: float
    eta: float
    def _cdf(self, t):
        return -np.expm1(-self.eta * np.expm1(self.b * t))
    def _logpdf(self, t):
        return np.log(self.b * self.eta) + self.b * t - self.eta * np.expm1(self.b * t)
"""

USE_IT = """
from latfit.laws import law_names, parse_law
assert "gompertz" in law_names()
law = parse_law("gompertz(b=2,eta=0.5)")
assert law.scaled(4.0) == parse_law("gompertz(b=0.5,eta=0.5)")
print(law.mean(), law.std(), float(law.partial_moment(1, 0.5)), float(law.ppf(0.9)))
"""


def test_a_new_law_is_one_new_file(tmp_path):
    package = Path(latfit.laws.__file__).parents[1]
    shutil.copytree(package / "laws", tmp_path / "latfit" / "laws")
    for name in ("curve.py", "errors.py", "numbers.py", "sample.py"):
        shutil.copy(package / name, tmp_path / "latfit")
    (tmp_path / "latfit" / "__init__.py").touch()
    (tmp_path / "latfit" / "laws" / "gompertz.py").write_text(NEW_LAW)
    run = subprocess.run([sys.executable, "-c", USE_IT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    theirs = stats.gompertz(0.5, scale=0.5)
    part = theirs.expect(lambda t: t, ub=0.5)
    assert_allclose(
        [float(x) for x in run.stdout.split()], [theirs.mean(), theirs.std(), part, theirs.ppf(0.9)], rtol=1e-8
    )


@pytest.mark.parametrize("text", ["weibull(shape=1{}x=1)", "weibull(shape={}[)", "weibull{}x(", "weibull()){}x"])
def test_long_runs_of_spaces_take_linear_time(text):
    with pytest.raises(LawError):
        parse_law(text.format(" " * 1_000_000))


def test_a_law_must_declare_the_unit_of_a_parameter():
    class Unitless(Exponential):
        name = "unitless"
        parameters = (Parameter("rate", "positive"),)

    with pytest.raises(LawError, match=r'no parameter has a unit.* Parameter."mu", "real", unit="log-time"'):
        register(Unitless)
