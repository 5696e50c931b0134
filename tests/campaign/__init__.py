"""Random problems, options and mutations against enumeration in exact arithmetic (``pytest --campaign SECONDS``).

`case` is one problem with its options, `generator` draws it, `exact` and `space` enumerate and score its structures,
`driver` runs it, `checks` compares the answer with the exact scores, `shrink` makes a failing case small, and `tally`
counts.
"""
