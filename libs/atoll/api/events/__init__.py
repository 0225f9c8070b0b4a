"""Generated from protos/atoll/api/events; see tools/gen_protos.py."""
