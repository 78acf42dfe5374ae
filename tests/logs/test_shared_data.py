"""The real logs beside the checkout, read as they are: the counts of their README."""

import pytest

import latfit

# completed, failed, censored, lost; refused; skipped
COUNTS = {
    "haproxy-finance.log.gz": ([5347, 3, 0, 0], 0, 52),  # 28 of HAProxy's messages, 24 requests never sent on
    "nginx-request-time.log": ([49, 0, 0, 0], 0, 0),
    "access.ltsv": ([10, 0, 1, 0], 0, 3),  # no backend was asked for 3
    "aws-alb.log": ([9, 1, 0, 0], 0, 0),
    "k6-finance.csv.gz": ([60, 0, 0, 0], 0, 743),  # with the header
    "otel-spans.jsonl.gz": ([10, 0, 0, 0], 0, 0),
    "nextflow-trace.txt.gz": ([275, 0, 0, 0], 0, 0),
    "sge-accounting.gz": ([999, 0, 0, 0], 1, 4),
    "pbs-accounting.log": ([9, 0, 0, 0], 0, 0),
    "github-actions-runs.csv": ([51, 5, 0, 0], 0, 0),
    "sat18-exp.arff.gz": ([6380, 0, 6681, 0], 0, 7),
    "uptime-probes.csv.gz": ([8585, 0, 0, 3275], 0, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name, shared):
    counts, refused, skipped = COUNTS[name]
    log = latfit.read_log(shared / name)
    assert list(log.counts.values()) == counts
    assert log.facts.refused.count == refused
    assert sum(log.facts.skipped.values()) == skipped
    assert any(note.startswith("latency is ") for note in log.facts.notes)


def test_locust_holds_no_single_requests(shared):
    with pytest.raises(latfit.LogError, match="histogram"):
        latfit.read_log(shared / "locust-stats.csv")


def test_values(shared):
    haproxy = latfit.read_log(shared / "haproxy-finance.log.gz")
    assert haproxy.frame["latency"][0] == 0.002
    assert latfit.read_log(shared / "sat18-exp.arff.gz").frame["latency"].max() == 5000
    assert latfit.read_log(shared / "pbs-accounting.log").frame["latency"][0] == 99
    assert latfit.read_log(shared / "nextflow-trace.txt.gz").frame["latency"][0] == 79.759
