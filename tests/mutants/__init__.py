"""Every safeguard, broken in a copy of the tree, and the tests that must go red: `make mutants`.

A promise is only as good as the test that misses its safeguard. `tests.mutants.table` names the
safeguards; the runner breaks one after the other and says which tests have seen it.
"""
