"""Generated from protos/atoll/api/submission; see tools/gen_protos.py."""
