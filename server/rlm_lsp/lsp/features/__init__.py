"""The features of the server, one module each: a handler for the request and pure functions that make its answer."""
