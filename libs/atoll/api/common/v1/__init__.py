"""Generated from protos/atoll/api/common/v1; see tools/gen_protos.py."""
