"""How kernels are fused: the common skeleton, kernels as operators, two solvers."""
