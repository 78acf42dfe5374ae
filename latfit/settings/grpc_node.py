"""gRPC in JavaScript, Java and .NET: hedging by the service config."""

from latfit.settings.base import Plan, Tool, register


@register
class GrpcNode(Tool):
    """`"hedgingPolicy": {"maxAttempts": K, "hedgingDelay": "0.350000000s"}`."""

    name = "grpc-node"
    title = "gRPC (Node, Java, .NET)"
    aliases = ("grpc-java", "grpc-dotnet", "grpc-js")
    counts = "attempts"
    hedges = True
    cap = 5
    fewest = 2
    waits = False
    limits = (
        "the delay until the next attempt is sent beside the earlier ones; the deadline of the call is yours to set"
    )
    validated = "real: grpc-js 1.14.7 (Node), arrivals at 0, t, 2t; Java and .NET not run"
    traps = (
        'grpc-js reads "0.35s" as 35 ns: always write nine decimals',
        "the method has to be safe to run twice: several attempts are under way at once",
    )

    def written(self, timeout: float) -> str:
        """Seconds with nine decimals."""
        return f"{timeout:.9f}s"

    def snippet(self, plan: Plan) -> str:
        """The service config."""
        delay = self.written(plan.timeout)
        codes = ', "nonFatalStatusCodes": ["UNAVAILABLE", "INTERNAL", "UNKNOWN"]' if plan.failures else ""
        return (
            '{"methodConfig": [{\n'
            '  "name": [{"service": "SERVICE"}],\n'
            f'  "hedgingPolicy": {{"maxAttempts": {plan.attempts}, "hedgingDelay": "{delay}"{codes}}}\n'
            "}]}"
        )
