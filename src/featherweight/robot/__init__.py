"""Robots and their functions, contacts, inverse kinematics and trajectories.

`Robot` is one class whose functions are members from the modules of their topics; `ClosedRobot` is a robot with loops.

Other packages use these modules:

    arguments                               declarations of a function's arguments
    build                                   load, read, build
    camera_placement                        placements of cameras
    checked_states                          checks of states
    closed                                  robots with loops
    collision.shape_pairs                   pairs of shapes that may touch
    collision.shape_queries                 collisions and distances of pairs
    collision.shape_rays                    distances along rays
    constraints.constraint                  constraints that are no contacts
    constraints.contact                     bilateral contacts
    constraints.operational_space           dynamics under constraints
    dynamics_derivatives                    derivatives by recursion
    factorization                           sparse factors
    inverse_kinematics.inverse_kinematics   the solver
    inverse_kinematics.targets              targets in one array
    inverse_kinematics.tasks                tasks, and their tables for kernels
    left_out_at_joints                      forces at joints that simulations ignore
    linear_parameters                       regressors
    mujoco_order                            states in MuJoCo's order
    not_simulated                           parts of a file that simulations ignore
    parametric                              inertias as arguments
    qpos_qvel                               MuJoCo's order in kernels
    robot                                   the class
    spanning_motion                         motions of spanning trees
    standalone_facts                        names and limits for programs without Python
    system                                  a model's parts and limits, and the binding of kernels
    tendons.length_functions                lengths at configurations
    tendons.lengths                         lengths in kernels
    tendons.tendon_table                    tables of lengths
    trajectory                              recorded motions
    wrenches                                forces at frames, for users
"""
