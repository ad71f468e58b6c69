"""Changes to descriptions, one file each: functions that take one and return another of the same class."""
