"""Better trigger sequences by simulations: stands above :mod:`fmimaster.front.simulation`."""
