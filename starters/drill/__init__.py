"""`refund drill`: faults of every kind on real processes, and the outside books held against them.

`plan` is what one run goes through, `matrix` and `draw` make plans, `driver` carries one through on
a `site` of real processes that a `gate` can hold, `checks` reads what is left in the outside books,
and `expect` (with `rules` and `timing`) is a plain model of the rules to hold it against.
"""
