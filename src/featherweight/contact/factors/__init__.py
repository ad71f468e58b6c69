"""The matrix of a contact problem, its factors and linear equations."""
