"""Generated from protos/atoll/api/placement; see tools/gen_protos.py."""
