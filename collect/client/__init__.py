"""The one place that imports httpx: what sends a request, and what looks at a server."""
