"""Is a step of 50 ms short enough for the two masses? The reference has steps of 1 ms."""

from fmimaster import reference_path, simulate

masses = reference_path("systems/survey-two-mass-fmi3.ssp")
recorded = ["mass1.x", "mass1.v"]
reference = simulate(masses, step_size=0.001, stop_time=10, output_variables=recorded)
results = simulate(masses, step_size=0.05, stop_time=10, output_variables=recorded)

comparison = results.compare(reference, tolerance=0.01)
print(comparison)
print("short enough" if comparison.is_within else "too long")
results.plot(reference=reference).savefig("compare_with_reference.svg")
