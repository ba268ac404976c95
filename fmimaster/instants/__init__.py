"""Exact times: instants, grids, the calendar of clocks."""
