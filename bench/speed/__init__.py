"""How fast the compiled core is, and what its speed depends on."""
