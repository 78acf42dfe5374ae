"""The Grid Workload Format of the Grid Workloads Archive."""

from latfit.logs.formats import register
from latfit.logs.swf import Workload


@register
class Gwf(Workload):
    """GWF, 29 fields."""

    name = "gwf"
    description = "Grid Workload Format (Grid Workloads Archive); latency = wait"
    rank = 30
    comment = "#"
    fields = (
        "id", "submit", "wait", "run", "procs", "usedcpu", "mem", "reqprocs", "reqtime", "reqmem", "status", "user",
        "group", "exe", "queue", "partition", "origsite", "lastsite", "structure", "structureparams", "network", "disk",
        "resources", "reqplatform", "reqnetwork", "reqdisk", "reqresources", "vo", "project",
    )  # fmt: skip
