"""What the server offers, a module a feature: a handler for the request and pure functions that make its answer."""
