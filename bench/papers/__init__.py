"""The tables and figures of the source papers, on the data that can be had."""
