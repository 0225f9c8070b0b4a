"""Generated from protos/atoll/api/reservation; see tools/gen_protos.py."""
