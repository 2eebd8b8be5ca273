"""The tables and figures of the source papers, on the data sets that are available."""
