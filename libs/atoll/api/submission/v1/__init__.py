"""Generated from protos/atoll/api/submission/v1; see tools/gen_protos.py."""
