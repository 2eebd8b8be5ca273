"""Data and sums of a pass: validation, tiles, stored features, sums, decompositions."""
