"""Replays traces of jobs through a running control plane, and checks what came of it."""
