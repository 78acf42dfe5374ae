"""Stage 10: the current timeout under drift. A tracker inside a client; windows and a backtest of a log; a watch."""
