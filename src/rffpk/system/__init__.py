"""Threads, messages, linear algebra, files: what knows nothing of rows."""
