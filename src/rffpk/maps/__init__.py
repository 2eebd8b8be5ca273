"""Maps of rows to features: random Fourier features, kernels, diffusion maps."""
