"""The whole control plane on one machine: `atoll up`, `down`, `status`.

A supervisor process starts PostgreSQL, etcd and Valkey from what is installed with
the package, applies the migrations, and runs every service as a process of its own.
"""
