"""Protobuf <-> model. Protobuf types stop here: what lies below speaks model types only.

`x_to_proto` never fails on a valid value. `x_from_proto` and `decode_x` raise `WireError` for what
no version of this program can have meant; they check shapes, not rules.
"""
