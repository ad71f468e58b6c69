"""Bridges: functions of robots, simulations and optimal control as objects of other libraries.

The modules `featherweight.casadi`, `gym`, `jax`, `torch` and `unisim` export the public names of a bridge each, and name the
extra to install if the library is missing. Only they import bridges, so a bridge is imported when it is used.

A bridge to a library of functions has these functions, which check their arguments by `arguments`:

    wrap(function)         a compiled function as a function of the library                       JAX, PyTorch, CasADi
    step(simulation)       a step of a simulation as a function of arrays, with gradients         JAX, PyTorch
    plan(ocp, **options)   solutions of optimal control as a function of arrays, with gradients   JAX, PyTorch

`jax_arrays` and `torch_tensors` have a file for each, with the class of its result, and `conversions` from and to NumPy's
arrays. A bridge to a library of environments implements the library's interface on simulations: `gymnasium_environments` and
`unisim_backend`. Modules do not have the names of libraries, so that `import jax` in a bridge can only mean the library.

Other packages use these modules:

    casadi_functions               compiled functions in CasADi
    gymnasium_environments         environments of Gymnasium
    jax_arrays.optimal_plan        solutions in JAX
    jax_arrays.simulated_step      steps in JAX
    jax_arrays.wrapped             compiled functions in JAX
    torch_tensors.optimal_plan     solutions in PyTorch
    torch_tensors.simulated_step   steps in PyTorch
    torch_tensors.wrapped          compiled functions in PyTorch
    unisim_backend                 a backend for UniSim
"""
