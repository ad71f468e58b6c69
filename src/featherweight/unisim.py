"""A backend for UniSim: tasks written for `unisim` run on `featherweight.Simulation`.

    from unisim.scene import SceneCfg
    backend = FeatherweightBackend(SceneCfg(model_file="go2.xml"), num_envs=4096, sim_dt=0.005)
    backend.step_tensor(control, nsteps=4)

States are MuJoCo's: qpos and qvel in the order of the file, quaternions (w, x, y, z) (see `MujocoOrder`).
"""

from .extras import imports_from_extra

with imports_from_extra("unisim", "featherweight.unisim needs unisim-core", "unisim"):
    from .bridges.unisim_backend import FeatherweightBackend

__all__ = ["FeatherweightBackend"]
