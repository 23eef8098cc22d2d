"""The report's own commands, one module each: ``run(arguments) -> exit code``."""
