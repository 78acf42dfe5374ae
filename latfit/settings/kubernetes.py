"""Kubernetes jobs."""

from latfit.settings.base import Plan, Tool, register


@register
class Kubernetes(Tool):
    """`backoffLimit` of a Job and `activeDeadlineSeconds` of its pod template."""

    name = "kubernetes"
    title = "Kubernetes Job"
    aliases = ("k8s",)
    counts = "retries"
    step = 1.0
    waits = False
    limits = "the life of one pod, the wait for a node and for images included"
    validated = "checked against the schema of Kubernetes 1.37; no cluster was run"
    traps = (
        "activeDeadlineSeconds belongs into the pod template: that of the job ends all retries",
        "the back-off between pods is 10, 20, 40 s … up to 6 min and cannot be set",
    )

    def pause(self, restart: int, cost: float) -> float:
        """10 s · 2ⁱ⁻¹, at most 360 s, and the user's own cost."""
        return cost + float(min(360, 10 * 2 ** min(restart - 1, 10)))

    def snippet(self, plan: Plan) -> str:
        """The specification of a Job."""
        return (
            "apiVersion: batch/v1\n"
            "kind: Job\n"
            "metadata: {name: NAME}\n"
            "spec:\n"
            f"  backoffLimit: {plan.retries}\n"
            "  template:\n"
            "    spec:\n"
            f"      activeDeadlineSeconds: {self.written(plan.timeout)}\n"
            "      restartPolicy: Never\n"
            "      containers: [{name: main, image: IMAGE}]"
        )
