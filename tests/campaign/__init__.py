"""Random problems, options and mutations against enumeration in exact arithmetic (``pytest --campaign SECONDS``).

`case` is one problem with its options, `generator` draws it, `exact` and `space` know the truth about it, `driver` runs
it, `checks` holds what comes out against the truth, `shrink` makes a failing case small, and `tally` counts.
"""
