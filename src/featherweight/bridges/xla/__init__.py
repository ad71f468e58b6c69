"""XLA's foreign function interface: handlers around machine code and kernels, in LLVM IR. JAX's bridge registers them."""
