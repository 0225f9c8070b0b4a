"""Forecasts of demand: models from libraries, combined, calibrated and kept in order."""
