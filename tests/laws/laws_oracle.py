"""The laws once more, from their textbook formulas in 60-digit arithmetic; shares no code with latfit."""

from mpmath import mp, mpf

mp.dps = 60


def exponential(n, t, rate):
    return mp.gammainc(n + 1, 0, rate * t) / rate**n


def weibull(n, t, shape, scale):
    x = (t / scale) ** shape
    return scale**n * (mp.gammainc(1 + n / shape, 0, x) if x < 1e4 else mp.gamma(1 + n / shape))


def gamma(n, t, shape, scale):
    return scale**n * mp.gammainc(shape + n, 0, t / scale) / mp.gamma(shape)


def lognormal(n, t, mu, sigma):
    return mp.exp(n * mu + (n * sigma) ** 2 / 2) * _Phi((mp.log(t) - mu) / sigma - n * sigma)


def pareto(n, t, a, nu):
    """With s = log(1 + u/a): the integral of (e^s − 1)^n e^(−nu s), expanded, in very high precision."""
    with mp.workdps(1000):
        s = mp.log1p(t / a)
        parts = [(k - nu, (-1) ** (n - k) * mp.binomial(n, k)) for k in range(int(n) + 1)]
        return a**n * nu * sum(c * (mp.expm1(x * s) / x if x else s) for x, c in parts)


def log_logistic(n, t, shape, scale):
    p, c = (t / scale) ** shape, n / shape
    return scale**n * p ** (c + 1) / (c + 1) * mp.hyp2f1(2, c + 1, c + 2, -p)


def uniform(n, t, a, b):
    end = min(max(t, a), b)
    return (end ** (n + 1) - a ** (n + 1)) / ((n + 1) * (b - a))


def truncated_gaussian(n, t, mu, sigma):
    """By quadrature from below 0, by parts in very high precision otherwise, so that nothing cancels."""
    alpha, s = -mu / sigma, t / sigma
    if alpha > 0:
        cuts = [j / (1 + alpha) for j in (0, 1, 3, 9, 27, 81, 243)]
        end = min(s, cuts[-1])
        parts = sorted({min(cut / end, mpf(1)) for cut in cuts})
        part = end ** (n + 1) * mp.quad(lambda y: y**n * mp.exp(-end * y * (alpha + end * y / 2)), parts)
        return sigma**n * part / mp.quad(lambda x: mp.exp(-x * (alpha + x / 2)), cuts)
    with mp.workdps(1000):
        beta = alpha + s
        moments = [mp.ncdf(beta) - mp.ncdf(alpha)]
        moments.append(mp.npdf(alpha) - mp.npdf(beta) - alpha * moments[0])
        for i in range(2, int(n) + 1):
            boundary = s ** (i - 1) * mp.npdf(beta)
            moments.append(-boundary - alpha * moments[i - 1] + (i - 1) * moments[i - 2])
        return sigma**n * moments[int(n)] / mp.ncdf(-alpha)


def erlang_mixture(n, t, p, phases, rates):
    return sum(q * gamma(n, t, k, 1 / r) for q, k, r in zip(p, phases, rates, strict=True))


def piecewise_uniform(n, t, edges, probs):
    return sum(q * uniform(n, t, a, b) for q, a, b in zip(probs, edges[:-1], edges[1:], strict=True))


def discrete(n, t, values, probs):
    return sum(q * x**n for q, x in zip(probs, values, strict=True) if x <= t)


def _Phi(z):
    return mp.erfc(-z / mp.sqrt(2)) / 2


def partial_moment(law, n, t):
    """M_n(t) of a latfit law by the formula of the same name here."""
    params = {k: [mpf(x) for x in v] if isinstance(v, tuple) else mpf(v) for k, v in law.params.items()}
    return globals()[law.name.replace("-", "_")](mpf(n), mpf(float(t)), **params)
