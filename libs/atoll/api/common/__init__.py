"""Generated from protos/atoll/api/common; see tools/gen_protos.py."""
