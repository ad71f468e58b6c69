"""Derivatives of steps: of the acceleration with contacts, of the state after a step, and by differences."""
