"""Four mechanisms, each as a URDF file, as an MJCF file, and in Python: gears, a differential, a four-bar, a parallel ankle.

Bodies weigh 0.5 kg. The three forms describe the same mechanism; `closed_chains.py` compares them.
"""

import featherweight as fw

# ---- bodies and joints in each format


def link(name, center="0 0 0"):
    inertia = '<mass value="0.5"/><inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/>'
    return f'<link name="{name}"><inertial><origin xyz="{center}"/>{inertia}</inertial></link>'


def hinge(name, parent, child, axis, at="0 0 0", more=""):
    where = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/><axis xyz="{axis}"/>'
    return f'<joint name="{name}" type="continuous">{where}{more}</joint>'


def urdf(*parts):
    return f'<robot name="mechanism"><link name="base"/>{"".join(parts)}</robot>'


def body(name, joint, axis, at="0 0 0", center="0 0 0", *inside):
    inertial = f'<inertial pos="{center}" mass="0.5" diaginertia="1e-3 1e-3 1e-3"/>'
    return f'<body name="{name}" pos="{at}"><joint name="{joint}" axis="{axis}"/>{inertial}{"".join(inside)}</body>'


def mjcf(*bodies, equality, tendon=""):
    return f"<mujoco><worldbody>{''.join(bodies)}</worldbody>{tendon}<equality>{equality}</equality></mujoco>"


def part(name, joint, axis, parent=None, at=(0.0, 0.0, 0.0), center=(0.0, 0.0, 0.0)):
    inertia = fw.Inertia(0.5, center, (1e-3, 0.0, 0.0, 1e-3, 0.0, 1e-3))
    return fw.Body(name, inertia), fw.Joint(joint, fw.JointType.CONTINUOUS, parent, name, fw.Pose(p=at), axis)


def python(*parts, **closing):
    bodies, joints = zip(*parts, strict=True)
    return fw.describe(bodies, joints, **closing)


X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
Z_ALONG_Y = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0))  # loops turn about the z axes of their frames


# ---- the arm turns at a fifth of the motor's speed, in the opposite direction

GEARS = (
    urdf(
        link("rotor"),
        link("forearm", "0.2 0 0"),
        hinge("motor", "base", "rotor", "0 1 0"),
        hinge("arm", "base", "forearm", "0 1 0", "0.1 0 0", '<mimic joint="motor" multiplier="-0.2"/>'),
    ),
    mjcf(
        body("rotor", "motor", "0 1 0"),
        body("forearm", "arm", "0 1 0", "0.1 0 0", "0.2 0 0"),
        equality='<joint joint1="arm" joint2="motor" polycoef="0 -0.2 0 0 0"/>',
    ),
    python(
        part("rotor", "motor", Y),
        part("forearm", "arm", Y, at=(0.1, 0.0, 0.0), center=(0.2, 0.0, 0.0)),
        couplings=[fw.Coupling("gears", "arm", (("motor", (-0.2,)),))],
    ),
)

# ---- two motors: half the sum of their angles lifts the wrist, half the difference rolls it

DIFFERENTIAL = (
    urdf(
        *(link(name) for name in ("rotor1", "rotor2")),
        link("carrier", "0.05 0 0"),
        link("wrist", "0.1 0 0"),
        hinge("motor1", "base", "rotor1", "0 1 0"),
        hinge("motor2", "base", "rotor2", "0 1 0"),
        hinge("lift", "base", "carrier", "0 1 0"),
        hinge("roll", "carrier", "wrist", "1 0 0"),
        '<coupling name="sum" joint="lift"><term joint="motor1" coefficients="0.5"/>'
        '<term joint="motor2" coefficients="0.5"/></coupling>',
        '<coupling name="difference" joint="roll"><term joint="motor1" coefficients="0.5"/>'
        '<term joint="motor2" coefficients="-0.5"/></coupling>',
    ),
    mjcf(
        body("rotor1", "motor1", "0 1 0"),
        body("rotor2", "motor2", "0 1 0"),
        body("carrier", "lift", "0 1 0", "0 0 0", "0.05 0 0", body("wrist", "roll", "1 0 0", "0 0 0", "0.1 0 0")),
        tendon='<tendon><fixed name="sum"><joint joint="lift" coef="-1"/><joint joint="motor1" coef="0.5"/>'
        '<joint joint="motor2" coef="0.5"/></fixed><fixed name="difference"><joint joint="roll" coef="-1"/>'
        '<joint joint="motor1" coef="0.5"/><joint joint="motor2" coef="-0.5"/></fixed></tendon>',
        equality='<tendon tendon1="sum"/><tendon tendon1="difference"/>',
    ),
    python(
        part("rotor1", "motor1", Y),
        part("rotor2", "motor2", Y),
        part("carrier", "lift", Y, center=(0.05, 0.0, 0.0)),
        part("wrist", "roll", X, "carrier", center=(0.1, 0.0, 0.0)),
        couplings=[
            fw.Coupling("sum", "lift", (("motor1", (0.5,)), ("motor2", (0.5,)))),
            fw.Coupling("difference", "roll", (("motor1", (0.5,)), ("motor2", (-0.5,)))),
        ],
    ),
)

# ---- a crank of 0.1 m that rotates fully, a bar of 0.32 m, and a rocker of 0.2 m that swings

FOUR_BAR = (
    urdf(
        *(link(name, center) for name, center in (("crank", "0.05 0 0"), ("bar", "0.16 0 0"), ("rocker", "0.1 0 0"))),
        hinge("motor", "base", "crank", "0 1 0"),
        hinge("pin", "crank", "bar", "0 1 0", "0.1 0 0"),
        hinge("swing", "base", "rocker", "0 1 0", "0.3 0 0"),
        '<loop name="end" type="revolute"><predecessor link="bar"><origin xyz="0.32 0 0"/></predecessor>'
        '<successor link="rocker"><origin xyz="0.2 0 0"/></successor><axis xyz="0 1 0"/></loop>',
    ),
    mjcf(
        body(
            "crank", "motor", "0 1 0", "0 0 0", "0.05 0 0",
            body("bar", "pin", "0 1 0", "0.1 0 0", "0.16 0 0", '<site name="end" pos="0.32 0 0"/>'),
        ),
        body("rocker", "swing", "0 1 0", "0.3 0 0", "0.1 0 0", '<site name="top" pos="0.2 0 0"/>'),
        equality='<connect site1="end" site2="top"/>',
    ),
    python(
        part("crank", "motor", Y, center=(0.05, 0.0, 0.0)),
        part("bar", "pin", Y, "crank", (0.1, 0.0, 0.0), (0.16, 0.0, 0.0)),
        part("rocker", "swing", Y, at=(0.3, 0.0, 0.0), center=(0.1, 0.0, 0.0)),
        loops=[
            fw.Loop(
                "end", fw.LoopType.REVOLUTE, "bar", "rocker",
                fw.Pose(Z_ALONG_Y, (0.32, 0.0, 0.0)), fw.Pose(Z_ALONG_Y, (0.2, 0.0, 0.0)),
            )
        ],
    ),
)  # fmt: skip

# ---- two motors push and pull the foot by rods, behind an ankle that pitches and rolls

SIDES = (("left", 0.05), ("right", -0.05))
ANKLE = (
    urdf(
        link("cross"),
        link("foot", "0.05 0 -0.03"),
        hinge("pitch", "base", "cross", "0 1 0"),
        hinge("roll", "cross", "foot", "1 0 0"),
        *(
            link(f"{side}_crank", "-0.02 0 0")
            + link(f"{side}_yoke")
            + link(f"{side}_rod", "0 0 -0.1")
            + hinge(f"{side}_motor", "base", f"{side}_crank", "0 1 0", f"-0.05 {y} 0.2")
            + hinge(f"{side}_tilt", f"{side}_crank", f"{side}_yoke", "1 0 0", "-0.05 0 0")
            + hinge(f"{side}_turn", f"{side}_yoke", f"{side}_rod", "0 1 0")
            + f'<loop name="{side}_ball" type="ball"><predecessor link="{side}_rod"><origin xyz="0 0 -0.2"/></predecessor>'
            f'<successor link="foot"><origin xyz="-0.1 {y} 0"/></successor></loop>'
            for side, y in SIDES
        ),
    ),
    mjcf(
        body(
            "cross", "pitch", "0 1 0", "0 0 0", "0 0 0",
            body(
                "foot", "roll", "1 0 0", "0 0 0", "0.05 0 -0.03",
                *(f'<site name="{side}_heel" pos="-0.1 {y} 0"/>' for side, y in SIDES),
            ),
        ),
        *(
            body(
                f"{side}_crank", f"{side}_motor", "0 1 0", f"-0.05 {y} 0.2", "-0.02 0 0",
                body(
                    f"{side}_yoke", f"{side}_tilt", "1 0 0", "-0.05 0 0", "0 0 0",
                    body(
                        f"{side}_rod", f"{side}_turn", "0 1 0", "0 0 0", "0 0 -0.1",
                        f'<site name="{side}_end" pos="0 0 -0.2"/>',
                    ),
                ),
            )
            for side, y in SIDES
        ),
        equality="".join(f'<connect site1="{side}_end" site2="{side}_heel"/>' for side, _ in SIDES),
    ),
    python(
        part("cross", "pitch", Y),
        part("foot", "roll", X, "cross", center=(0.05, 0.0, -0.03)),
        *(
            one
            for side, y in SIDES
            for one in (
                part(f"{side}_crank", f"{side}_motor", Y, at=(-0.05, y, 0.2), center=(-0.02, 0.0, 0.0)),
                part(f"{side}_yoke", f"{side}_tilt", X, f"{side}_crank", (-0.05, 0.0, 0.0)),
                part(f"{side}_rod", f"{side}_turn", Y, f"{side}_yoke", center=(0.0, 0.0, -0.1)),
            )
        ),
        loops=[
            fw.Loop(
                f"{side}_ball", fw.LoopType.SPHERICAL, f"{side}_rod", "foot",
                fw.Pose(p=(0.0, 0.0, -0.2)), fw.Pose(p=(-0.1, y, 0.0)),
            )
            for side, y in SIDES
        ],
    ),
)  # fmt: skip
