"""The ports, implemented over real servers and, for tests and the simulator, in memory."""
