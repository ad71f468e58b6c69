"""The bridge to JAX: functions of JAX's arrays."""
