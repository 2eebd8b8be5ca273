"""What nothing of clustering is known in: validation, threads, linear algebra, files, progress."""
