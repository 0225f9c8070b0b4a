"""Dispatch: hands decisions to agents in order, and makes their reports true."""
