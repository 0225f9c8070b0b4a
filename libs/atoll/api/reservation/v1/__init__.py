"""Generated from protos/atoll/api/reservation/v1; see tools/gen_protos.py."""
