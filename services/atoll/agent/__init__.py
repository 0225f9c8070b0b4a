"""The agent of one cluster: takes decisions from dispatch, drives a backend, reports."""
