"""Results as figures: each function takes a result and an Axes (or makes one), draws, and returns the Axes."""

from latfit.plots.draw import COLOURS, STYLE
from latfit.plots.figures import (
    FIGURES,
    draw_figure,
    figure,
    plot_cdf,
    plot_completion,
    plot_drift,
    plot_ecdf,
    plot_expected_duration,
    plot_frontier,
    plot_jobs_tail,
    plot_qq,
    plot_ratio,
    plot_strategies,
    plot_survival,
    plot_time,
    save_drift,
    save_figure,
)

__all__ = [
    "COLOURS",
    "FIGURES",
    "STYLE",
    "draw_figure",
    "figure",
    "plot_cdf",
    "plot_completion",
    "plot_drift",
    "plot_ecdf",
    "plot_expected_duration",
    "plot_frontier",
    "plot_jobs_tail",
    "plot_qq",
    "plot_ratio",
    "plot_strategies",
    "plot_survival",
    "plot_time",
    "save_drift",
    "save_figure",
]
