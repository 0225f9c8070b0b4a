"""What every process needs around its use cases: settings, logging, servers, loops."""
