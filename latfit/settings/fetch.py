"""fetch of JavaScript, in a loop."""

from latfit.settings.base import Plan, Tool, register


@register
class Fetch(Tool):
    """`AbortSignal.timeout(ms)` in a loop of K attempts."""

    name = "fetch"
    title = "fetch (JavaScript)"
    aliases = ("javascript", "node")
    counts = "attempts"
    unit = "ms"
    limits = "the whole request of one attempt, the body included"
    validated = "real: node 20.20.2, arrivals at 0, t, 2t"
    traps = ("AbortSignal.timeout takes milliseconds",)

    def written(self, timeout: float) -> str:
        """Whole milliseconds."""
        return str(round(timeout * 1000))

    def snippet(self, plan: Plan) -> str:
        """A function to call instead of `fetch`."""
        pause = f"      await new Promise((done) => setTimeout(done, {round(plan.pause * 1000)}));\n"
        again = "" if plan.failures else ' || error.name !== "TimeoutError"'
        check = (
            "      if (response.status >= 500) throw new Error(`HTTP ${response.status}`);\n" if plan.failures else ""
        )
        limit = f"AbortSignal.timeout({self.written(plan.timeout)})"
        return (
            "async function get(url) {\n"
            "  for (let attempt = 1; ; attempt++) {\n"
            "    try {\n"
            f"      const response = await fetch(url, {{ signal: {limit} }});\n"
            f"{check}"
            "      return await response.text();\n"
            "    } catch (error) {\n"
            f"      if (attempt === {plan.attempts}{again}) throw error;\n"
            f"{pause if plan.pause else ''}"
            "    }\n"
            "  }\n"
            "}"
        )
