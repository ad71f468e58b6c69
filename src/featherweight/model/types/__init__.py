"""The contents of a robot file as small frozen types, by subject; all are imported from this package."""

from .actuators import *
from .bodies import *
from .contents import *
from .frames import *
from .joints import *
from .sensors import *
