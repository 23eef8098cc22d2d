"""Plan to data: the only code that sends a request."""
