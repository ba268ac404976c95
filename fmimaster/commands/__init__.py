"""The commands of the command line, one file each: ``HELP``, ``add_arguments(parser)``, ``run(arguments) -> status``."""
