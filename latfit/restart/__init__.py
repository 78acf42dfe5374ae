"""Stage 7: law and policy to completion time."""

from latfit.restart.batches import Grouping, expected_maximum, optimal_grouping
from latfit.restart.compare import Comparison, compare_policies, load_of
from latfit.restart.completion import (
    completion_cdf,
    completion_pdf,
    completion_quantile,
    expected_duration,
    moment_bounds,
    moments,
    std_duration,
)
from latfit.restart.criteria import (
    QuantileBound,
    quantile_bound,
    tail_quantiles,
    tail_rate,
    variation,
)
from latfit.restart.derived import Copies
from latfit.restart.evaluate import PolicyOutcome, evaluate_policy, simulate_policy
from latfit.restart.optimum import earliest_timeout, evaluate_timeout, optimal_timeout
from latfit.restart.policies import Policy, parse_policy, policy_names
from latfit.restart.result import Optimum
from latfit.restart.schedule import (
    Schedule,
    Strategy,
    optimal_schedule,
    optimal_strategy,
    restart_helps,
    schedule_cdf,
    schedule_moments,
)
from latfit.restart.search import Budget, optimal_policy
