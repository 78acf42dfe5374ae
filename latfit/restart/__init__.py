"""Stage 7: law and policy to completion time."""

from latfit.restart.agents import Strategy, optimal_strategy
from latfit.restart.amenability import restart_helps, stationarity
from latfit.restart.bounds import conservative_timeout, geometric_bounds, upper_bound_timeout
from latfit.restart.completion import (
    completion_cdf,
    completion_quantile,
    expected_duration,
    moments,
    simulate,
    std_duration,
    submissions,
)
from latfit.restart.copies import Copies
from latfit.restart.optimum import evaluate_timeout, optimal_timeout
from latfit.restart.result import Optimum
from latfit.restart.schedule import Schedule, evaluate_schedule, optimal_schedule, schedule_cdf, schedule_moments

__all__ = [
    "Copies",
    "Optimum",
    "Schedule",
    "Strategy",
    "completion_cdf",
    "completion_quantile",
    "conservative_timeout",
    "evaluate_schedule",
    "evaluate_timeout",
    "expected_duration",
    "geometric_bounds",
    "moments",
    "optimal_schedule",
    "optimal_strategy",
    "optimal_timeout",
    "restart_helps",
    "schedule_cdf",
    "schedule_moments",
    "simulate",
    "stationarity",
    "std_duration",
    "submissions",
    "upper_bound_timeout",
]
