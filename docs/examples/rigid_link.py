"""A constraint: two masses, joined rigidly by a component that has no FMU."""

from fmimaster import reference_path, simulate

results = simulate(reference_path("systems/rigid-link-fmi3.ssp"))
print(f"largest gap {abs(results['link.gap']).max():.1e} m")
results.plot(["mass1.x", "mass3.x", "link.force"], title="Rigid link").savefig("rigid_link.svg")
