"""What a pass runs over: rows, sparse ones, sources, samples; the passes and their sums."""
