"""Generated from protos/atoll/api; see tools/gen_protos.py."""
