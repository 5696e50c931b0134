"""What a run claims: the result, its parts, the reader of ``result.json``, and gaps."""
