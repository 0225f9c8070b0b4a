"""Generated from protos/atoll/api/burst/v1; see tools/gen_protos.py."""
