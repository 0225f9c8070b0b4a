"""Generated from protos/atoll/api/burst; see tools/gen_protos.py."""
