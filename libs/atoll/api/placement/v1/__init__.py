"""Generated from protos/atoll/api/placement/v1; see tools/gen_protos.py."""
