"""requests, by the retries of urllib3."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Requests(Tool):
    """`HTTPAdapter(max_retries=Retry(…))` and `timeout=` of each call."""

    name = "requests"
    title = "requests with urllib3"
    aliases = ("urllib3",)
    counts = "retries"
    limits = "connecting, and the wait between two reads: a body that drips outlives it"
    validated = "real: requests 2.34.2 with urllib3 2.8.0, arrivals at 0, t, 2t"
    traps = (
        "allowed_methods=None retries every method; by default a POST is not retried",
        "an answer 413, 429 or 503 with Retry-After is retried too, after the time that it asks for",
    )

    def pause(self, restart: int, cost: float) -> float:
        """urllib3 never waits before the first retry."""
        return 0.0 if restart == 1 else cost

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """Where the wait begins."""
        if not plan.pause:
            return ()
        return (
            f"urllib3 retries once without a wait: the {plan.pause:g} s pass before the second retry and later ones",
        )

    def snippet(self, plan: Plan) -> str:
        """A session with retries."""
        waits = f"backoff_factor={number(plan.pause)}, backoff_max={number(plan.pause)}" if plan.pause else ""
        failures = ", status_forcelist=(500, 502, 503, 504)" if plan.failures else ""
        return (
            "import requests\n"
            "from requests.adapters import HTTPAdapter\n"
            "from urllib3.util import Retry\n"
            "\n"
            f"retries = Retry(total={plan.retries}, {waits or 'backoff_factor=0'}, allowed_methods=None{failures})\n"
            "session = requests.Session()\n"
            'session.mount("http://", HTTPAdapter(max_retries=retries))\n'
            'session.mount("https://", HTTPAdapter(max_retries=retries))\n'
            f"response = session.get(URL, timeout={self.written(plan.timeout)})"
        )
