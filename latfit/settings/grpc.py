"""gRPC in Python (and C++): a deadline for each attempt, in a loop."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Grpc(Tool):
    """`stub(request, timeout=T)` in a loop of K attempts."""

    name = "grpc"
    title = "gRPC (Python, C++)"
    aliases = ("grpc-python", "grpcio")
    counts = "attempts"
    limits = "one call: the deadline of the attempt, also for its stream"
    validated = "real: grpcio 1.85.1, arrivals at 0, t, 2t"
    traps = (
        "hedgingPolicy is ignored without a word by Python and C++",
        "the timeout of a service config spans all attempts, and its maxAttempts is cut to 5: hence the loop",
    )

    def snippet(self, plan: Plan) -> str:
        """A function to call instead of the stub's method."""
        codes = ["DEADLINE_EXCEEDED", *(["UNAVAILABLE", "INTERNAL", "UNKNOWN"] if plan.failures else [])]
        retried = ", ".join(f"grpc.StatusCode.{code}" for code in codes)
        pause = f"            time.sleep({number(plan.pause)})\n" if plan.pause else ""
        imports = "import time\n\n" if plan.pause else ""
        return (
            f"{imports}import grpc\n\n"
            "def call(method, request):\n"
            f"    for attempt in range({plan.attempts}):\n"
            "        try:\n"
            f"            return method(request, timeout={self.written(plan.timeout)})\n"
            "        except grpc.RpcError as error:\n"
            f"            if attempt == {plan.retries} or error.code() not in ({retried},):\n"
            "                raise\n"
            f"{pause}"
        ).rstrip("\n")
