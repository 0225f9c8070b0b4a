"""Generated from protos/atoll/api/events/v1; see tools/gen_protos.py."""
