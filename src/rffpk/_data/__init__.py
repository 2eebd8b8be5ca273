"""Rows on their way to the pass: validation, tiles, stored features, sums, decompositions."""
