"""The bridge to PyTorch: functions of tensors."""
