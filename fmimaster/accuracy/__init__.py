"""How accurate a run is, and which step sizes make it so: the choice of a controller, and pairs of runs that check it."""
