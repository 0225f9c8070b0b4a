"""Generated from protos/atoll/api/agent/v1; see tools/gen_protos.py."""
