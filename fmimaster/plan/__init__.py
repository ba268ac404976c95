"""The order in which a system can be computed, and where its values lie."""
