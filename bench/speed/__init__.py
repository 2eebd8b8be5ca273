"""The speed of the package, of its peers, and of the parts of the compiled core."""
