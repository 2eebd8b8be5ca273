"""Functions with the names, arguments and orientation of other packages."""
