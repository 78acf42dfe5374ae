"""Seeded damage to logs, laws and options, and the rule that latfit keeps under it.

logs → mutate → count → cases → rule. `cases.make_case(seed)` is the same case for ever; `rule.broken(case, folder)`
says which parts of the rule it breaks. tests/test_fuzz.py runs some hundreds, scripts/fuzz as many as you like.
"""
