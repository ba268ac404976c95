"""Elements of semantic adaptation as instances: they act in Event Mode, as FMUs with clocks do."""
