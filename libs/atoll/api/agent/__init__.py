"""Generated from protos/atoll/api/agent; see tools/gen_protos.py."""
